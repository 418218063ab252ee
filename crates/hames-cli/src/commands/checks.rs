//! What a check found, in one line for people or one object for programs: the words of `doctor` and `providers test`.

use serde_json::{Value, json};

use crate::exit::Stop;
use crate::output::{Out, Style, clean};

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Good,
    /// Works, but somebody should know.
    Odd,
    Bad,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    pub(crate) state: State,
    pub(crate) what: String,
    /// What to do about it.
    pub(crate) remedy: Option<String>,
}

impl Check {
    pub(crate) fn good(name: &'static str, what: impl Into<String>) -> Check {
        Check { name, state: State::Good, what: what.into(), remedy: None }
    }

    pub(crate) fn odd(name: &'static str, what: impl Into<String>) -> Check {
        Check { state: State::Odd, ..Self::good(name, what) }
    }

    pub(crate) fn bad(name: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Check {
        Check { state: State::Bad, ..Self::good(name, what) }.with_remedy(remedy)
    }

    pub(crate) fn with_remedy(mut self, remedy: impl Into<String>) -> Check {
        self.remedy = Some(remedy.into());
        self
    }

    /// Prints it as it is found: somebody waits.
    pub(crate) fn print(&self, style: Style, out: &mut Out) -> Result<(), Stop> {
        /// Columns before what was found.
        const INDENT: &str = "                ";
        let state = match self.state {
            State::Good => style.green("ok  "),
            State::Odd => style.yellow("note"),
            State::Bad => style.red("FAIL"),
        };
        let what = clean::block(self.what.trim_end()).replace('\n', &format!("\n{INDENT}"));
        out.line(format!("{state}  {:<9} {what}", self.name))?;
        if let Some(remedy) = &self.remedy {
            let remedy = clean::block(remedy.trim_end()).replace('\n', &format!("\n{INDENT}  "));
            out.line(format!("{INDENT}→ {remedy}"))?;
        }
        Ok(())
    }

    pub(crate) fn json(&self) -> Value {
        let state = match self.state {
            State::Good => "ok",
            State::Odd => "note",
            State::Bad => "failed",
        };
        json!({"name": self.name, "state": state, "what": self.what, "remedy": self.remedy})
    }
}
