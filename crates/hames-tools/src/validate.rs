//! Whether arguments fit a tool's schema, and saying so in words a model can act on.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value};

use crate::mend::{Aliases, mend};
use crate::parse::parse_arguments;
use crate::schema::Place;

/// Characters a message to the model has at most: it is read at every later step.
const MAX_MESSAGE: usize = 300;
/// Faults named at once.
const NAMED_FAULTS: usize = 3;
/// Characters of a value that are quoted back.
const QUOTED: usize = 40;
/// Levels arguments may be nested. JSON readers give up at 128, and events carry arguments some levels down.
const MAX_DEPTH: usize = 64;

/// Arguments as they will be used, or why they cannot be.
pub(crate) struct Checked {
    /// The arguments; absent where they could not be read at all.
    pub(crate) input: Option<Value>,
    /// What was done to them that the model should know.
    pub(crate) notes: Vec<String>,
    /// Why the call cannot run.
    pub(crate) fault: Option<String>,
}

/// A schema, compiled.
pub(crate) struct Checker {
    schema: Value,
    /// `None` where the schema itself cannot be compiled (a server's fault): then only what is required is checked.
    validator: Option<Validator>,
}

impl Checker {
    pub(crate) fn new(schema: &Value) -> Self {
        Self { schema: schema.clone(), validator: jsonschema::validator_for(schema).ok() }
    }

    /// Reads, mends and validates the arguments of one call.
    pub(crate) fn check(&self, text: &str, aliases: Aliases) -> Checked {
        let place = Place::root(&self.schema);
        let mut arguments = match parse_arguments(text) {
            Ok(arguments) => arguments,
            Err(fault) => return Checked { input: None, notes: Vec::new(), fault: Some(brief(fault)) },
        };
        let notes = mend(&mut arguments, place, aliases);
        let missing = missing(&arguments, place);
        let input = Value::Object(arguments);
        if is_deeper(&input, MAX_DEPTH) {
            let fault = format!("the arguments are nested more than {MAX_DEPTH} levels deep. Make them flatter.");
            return Checked { input: None, notes, fault: Some(fault) };
        }
        let fault = missing.or_else(|| self.misfit(&input)).map(brief);
        Checked { input: Some(input), notes, fault }
    }

    fn misfit(&self, input: &Value) -> Option<String> {
        let validator = self.validator.as_ref()?;
        let faults: Vec<String> = validator.iter_errors(input).take(NAMED_FAULTS).map(|e| describe(&e)).collect();
        (!faults.is_empty()).then(|| format!("{}.", faults.join("; ")))
    }
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper(item, levels - 1)),
        Value::Object(fields) => levels == 0 || fields.values().any(|field| is_deeper(field, levels - 1)),
        _ => false,
    }
}

fn missing(arguments: &Map<String, Value>, place: Place<'_>) -> Option<String> {
    let missing: Vec<&str> = place.required().filter(|name| !arguments.contains_key(*name)).collect();
    if missing.is_empty() {
        return None;
    }
    let verb = if missing.len() == 1 { "is" } else { "are" };
    Some(format!("{} {verb} missing. Expected {}", missing.join(", "), place.shape()))
}

fn describe(error: &ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    let field = match place.trim_start_matches('/') {
        "" => "the arguments".to_owned(),
        path => path.replace('/', "."),
    };
    match error.kind() {
        ValidationErrorKind::Type { kind } => {
            let wanted = match kind {
                TypeKind::Single(kind) => kind.to_string(),
                TypeKind::Multiple(kinds) => kinds.iter().map(|kind| kind.to_string()).collect::<Vec<_>>().join(" or "),
            };
            let article = if wanted.starts_with(['a', 'i', 'o']) { "an" } else { "a" };
            format!("{field} must be {article} {wanted}, not {}", quoted(error.instance()))
        }
        ValidationErrorKind::Enum { options } => {
            let options = options.as_array().map(|all| all.iter().map(Value::to_string).collect::<Vec<_>>().join(", "));
            format!("{field} must be one of {}, not {}", options.unwrap_or_default(), quoted(error.instance()))
        }
        ValidationErrorKind::Required { property } => {
            format!("{} is missing in {field}", property.as_str().unwrap_or_default())
        }
        _ => format!("{field}: {}", error.masked_with(quoted(error.instance()))),
    }
}

fn quoted(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(_) => "an object".into(),
        other => {
            let text = other.to_string();
            match text.char_indices().nth(QUOTED) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        }
    }
}

fn brief(message: String) -> String {
    match message.char_indices().nth(MAX_MESSAGE - 1) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message,
    }
}

#[cfg(test)]
mod tests;
