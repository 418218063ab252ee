//! The tools a run has, by name.
//!
//! A set is an ordered list with unique names: the order is the one in which tools are advertised, so it never
//! changes by itself. Names as models write them are matched here too; what a tool does is never read from its name.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use hames_protocol::{Declaration, Diff, Label, ToolSpec};
use serde_json::Value;

use crate::validate::Checker;
use crate::{Tool, ToolCx, ToolFailure, ToolOutput};

/// Names listed when a model asks for a tool that is not there: enough to choose from, short enough to read.
const LISTED_NAMES: usize = 24;
/// Similarity from which a name is offered as what was probably meant.
const NEAR_NAME: f64 = 0.8;

/// Why a set cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolSetError {
    /// Two tools have one name.
    #[error("two tools are named {0}; rename one of them")]
    Duplicate(String),
    /// A name that providers do not accept.
    #[error("{0:?} cannot be a tool's name; use 1 to 64 of A-Z, a-z, 0-9, _ and -")]
    BadName(String),
    /// Parameters that are no JSON Schema of an object.
    #[error("the parameters of tool {0} are no JSON Schema of type object")]
    BadParameters(String),
    /// A name that is not in the set.
    #[error("there is no tool named {0}; there are: {1}")]
    NoSuchTool(String, String),
}

/// A tool with what the door needs to check its arguments, made when first needed.
pub(crate) struct Known {
    pub(crate) tool: Arc<dyn Tool>,
    checker: OnceLock<Checker>,
}

impl Known {
    fn new(tool: Arc<dyn Tool>) -> Result<Self, ToolSetError> {
        let spec = tool.spec();
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if spec.name.is_empty() || spec.name.len() > 64 || !spec.name.chars().all(fits) {
            return Err(ToolSetError::BadName(spec.name.clone()));
        }
        if spec.parameters.get("type").and_then(Value::as_str) != Some("object") {
            return Err(ToolSetError::BadParameters(spec.name.clone()));
        }
        Ok(Self { tool, checker: OnceLock::new() })
    }

    pub(crate) fn name(&self) -> &str {
        &self.tool.spec().name
    }

    pub(crate) fn checker(&self) -> &Checker {
        self.checker.get_or_init(|| Checker::new(&self.tool.spec().parameters))
    }
}

/// Tools in a fixed order, each with a name of its own.
#[derive(Clone, Default)]
pub struct ToolSet {
    tools: Vec<Arc<Known>>,
}

impl ToolSet {
    /// A set of these tools, in this order.
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Result<Self, ToolSetError> {
        let mut set = Self { tools: Vec::with_capacity(tools.len()) };
        for tool in tools {
            set.push(tool)?;
        }
        Ok(set)
    }

    /// Adds a tool at the end.
    pub fn push(&mut self, tool: Arc<dyn Tool>) -> Result<(), ToolSetError> {
        let known = Known::new(tool)?;
        if self.known(known.name()).is_some() {
            return Err(ToolSetError::Duplicate(known.name().to_owned()));
        }
        self.tools.push(Arc::new(known));
        Ok(())
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The tool with exactly this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.known(name).map(|known| &known.tool)
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|known| known.name())
    }

    /// What is advertised, in order.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|known| known.tool.spec().clone()).collect()
    }

    /// Only these tools, in the order of `names`.
    pub fn select(&self, names: &[&str]) -> Result<Self, ToolSetError> {
        let mut chosen = Self::default();
        for name in names {
            let known = self.known(name).ok_or_else(|| self.no_such(name))?;
            if chosen.known(name).is_some() {
                return Err(ToolSetError::Duplicate((*name).to_owned()));
            }
            chosen.tools.push(known.clone());
        }
        Ok(chosen)
    }

    /// The same set with one tool under another name. It keeps its place.
    pub fn rename(mut self, from: &str, to: &str) -> Result<Self, ToolSetError> {
        let at = self.tools.iter().position(|known| known.name() == from).ok_or_else(|| self.no_such(from))?;
        if from != to && self.known(to).is_some() {
            return Err(ToolSetError::Duplicate(to.to_owned()));
        }
        let inner = self.tools[at].tool.clone();
        let spec = ToolSpec { name: to.to_owned(), ..inner.spec().clone() };
        self.tools[at] = Arc::new(Known::new(Arc::new(Renamed { inner, spec }))?);
        Ok(self)
    }

    fn no_such(&self, name: &str) -> ToolSetError {
        ToolSetError::NoSuchTool(name.to_owned(), self.listing())
    }

    /// The tool that gives back what was kept, if there is one.
    pub(crate) fn recaller(&self) -> Option<&str> {
        self.tools.iter().find(|known| known.tool.recalls()).map(|known| known.name())
    }

    fn known(&self, name: &str) -> Option<&Arc<Known>> {
        self.tools.iter().find(|known| known.name() == name)
    }

    /// The tool a model means: the exact name, else the one whose name differs only in case, separators or a namespace
    /// in front. `None` where that fits no tool, or more than one.
    pub(crate) fn find(&self, written: &str) -> Option<&Arc<Known>> {
        // Some open models leak a control token behind the name, or the ordinal that ends their call's id.
        let name = written.split("<|").next().unwrap_or("").trim();
        let name = match name.rsplit_once(':') {
            Some((name, ordinal)) if !ordinal.is_empty() && ordinal.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => name,
        };
        if let Some(known) = self.known(name) {
            return Some(known);
        }
        let bare = name.rsplit(['.', '/', ':']).next().unwrap_or("").trim();
        self.known(bare).or_else(|| self.only_alike(name)).or_else(|| self.only_alike(bare))
    }

    fn only_alike(&self, name: &str) -> Option<&Arc<Known>> {
        let wanted = plain(name);
        let mut alike = self.tools.iter().filter(|known| !wanted.is_empty() && plain(known.name()) == wanted);
        match (alike.next(), alike.next()) {
            (Some(known), None) => Some(known),
            _ => None,
        }
    }

    /// What a model is told that asked for a tool that is not there.
    pub(crate) fn unknown(&self, written: &str) -> String {
        let shown: String = written.chars().take(64).filter(|c| !c.is_control()).collect();
        let near = self
            .names()
            .map(|name| (strsim::jaro_winkler(&plain(name), &plain(&shown)), name))
            .filter(|(likeness, _)| *likeness >= NEAR_NAME)
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let hint = near.map(|(_, name)| format!(" Did you mean {name}?")).unwrap_or_default();
        format!("There is no tool named \"{shown}\".{hint} The tools are: {}.", self.listing())
    }

    fn listing(&self) -> String {
        let mut names: Vec<&str> = self.names().take(LISTED_NAMES).collect();
        if names.is_empty() {
            return "none".into();
        }
        let more = format!("and {} more", self.len() - names.len());
        if self.len() > names.len() {
            names.push(&more);
        }
        names.join(", ")
    }
}

impl std::fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// A name without case and separators.
pub(crate) fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

/// A tool under another name.
struct Renamed {
    inner: Arc<dyn Tool>,
    spec: ToolSpec,
}

#[async_trait]
impl Tool for Renamed {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    fn aliases(&self) -> &'static [(&'static str, &'static str)] {
        self.inner.aliases()
    }
    fn declare(&self, input: &Value) -> Declaration {
        self.inner.declare(input)
    }
    fn label(&self, input: &Value) -> Label {
        Label { tool: self.spec.name.clone(), ..self.inner.label(input) }
    }
    fn recalls(&self) -> bool {
        self.inner.recalls()
    }
    async fn preview(&self, input: &Value, cx: &ToolCx) -> Result<Vec<Diff>, ToolFailure> {
        self.inner.preview(input, cx).await
    }
    async fn run(&self, input: &Value, cx: &ToolCx) -> Result<ToolOutput, ToolFailure> {
        self.inner.run(input, cx).await
    }
}
