//! Mending of arguments that mean one thing and say it a little differently than the schema.
//!
//! Directed by the schema alone and pure. What could mean two things is left as it is, for the validator to refuse;
//! text that may be text stays exactly as it came.

use serde_json::{Map, Number, Value};

use crate::schema::{Place, Types};
use crate::set::plain;

/// Nesting that is looked into. Deeper values are left to the validator.
const MAX_DEPTH: usize = 48;
/// Unknown arguments named in the note; one is usual, a hundred are noise.
const NAMED_UNKNOWNS: usize = 4;
/// The largest integer that a JSON number carries everywhere without loss.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// Other spellings of argument names: `(other, ours)`.
pub(crate) type Aliases = &'static [(&'static str, &'static str)];

/// Mends arguments in place. Returns what the model should hear about it.
pub(crate) fn mend(arguments: &mut Map<String, Value>, schema: Place<'_>, aliases: Aliases) -> Vec<String> {
    let mut mender = Mender { aliases, unknown: Vec::new() };
    mender.object(arguments, schema, 0);
    mender.notes()
}

struct Mender {
    aliases: Aliases,
    unknown: Vec<String>,
}

impl Mender {
    fn object(&mut self, object: &mut Map<String, Value>, schema: Place<'_>, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        self.names(object, schema);
        object.retain(|name, value| {
            let Some(place) = schema.property(name) else { return true };
            // Null where null means nothing is how many models leave an argument out.
            if value.is_null() && !place.types().has(Types::NULL) {
                return false;
            }
            self.value(value, place, depth + 1);
            true
        });
    }

    /// Gives every argument the schema's own name and drops what the schema cannot know.
    fn names(&mut self, object: &mut Map<String, Value>, schema: Place<'_>) {
        let Some(known) = schema.properties() else { return };
        if object.keys().all(|name| known.contains_key(name)) {
            return;
        }
        let given = std::mem::take(object);
        let exact: Vec<String> = given.keys().filter(|name| known.contains_key(*name)).cloned().collect();
        for (name, value) in given {
            if known.contains_key(&name) {
                object.insert(name, value);
                continue;
            }
            match self.meant(&name, known) {
                Some(ours) if !exact.iter().any(|e| e == ours) && !object.contains_key(ours) => {
                    object.insert(ours.to_owned(), value);
                }
                Some(_) => self.unknown.push(name),
                None if schema.is_closed() => self.unknown.push(name),
                None => {
                    object.insert(name, value);
                }
            }
        }
    }

    fn meant<'a>(&self, name: &str, known: &'a Map<String, Value>) -> Option<&'a str> {
        let name = plain(name);
        let alias = self.aliases.iter().find(|(other, ours)| plain(other) == name && known.contains_key(*ours));
        if let Some((_, ours)) = alias {
            return known.get_key_value(*ours).map(|(ours, _)| ours.as_str());
        }
        let mut alike = known.keys().filter(|ours| plain(ours) == name);
        match (alike.next(), alike.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        }
    }

    fn value(&mut self, value: &mut Value, schema: Place<'_>, depth: usize) {
        if depth > MAX_DEPTH {
            return;
        }
        let wanted = schema.types();
        if !wanted.has(Types::of(value)) {
            reshape(value, schema, wanted);
        }
        match value {
            Value::Object(object) => {
                if let Some(place) = schema.describing(Types::OBJECT) {
                    self.object(object, place, depth);
                }
            }
            Value::Array(array) => {
                if let Some(items) = schema.describing(Types::ARRAY).and_then(Place::items) {
                    array.iter_mut().for_each(|item| self.value(item, items, depth + 1));
                }
            }
            _ => {}
        }
    }

    fn notes(self) -> Vec<String> {
        if self.unknown.is_empty() {
            return Vec::new();
        }
        let mut names: Vec<String> =
            self.unknown.iter().take(NAMED_UNKNOWNS).map(|name| name.chars().take(40).collect()).collect();
        if self.unknown.len() > names.len() {
            names.push(format!("{} more", self.unknown.len() - names.len()));
        }
        let (noun, was) = if self.unknown.len() == 1 { ("argument", "was") } else { ("arguments", "were") };
        vec![format!("unknown {noun} {} {was} ignored", names.join(", "))]
    }
}

/// Turns a value of a type the schema does not take into the one it can only mean.
fn reshape(value: &mut Value, schema: Place<'_>, wanted: Types) {
    let mended = match &*value {
        Value::String(text) => from_text(text, schema, wanted),
        Value::Number(number) => from_number(number, wanted),
        Value::Object(_) if items_are(schema, Types::OBJECT) => Some(Value::Array(vec![value.take()])),
        _ => None,
    };
    if let Some(mended) = mended {
        *value = mended;
    }
}

/// Text where the schema does not take text.
fn from_text(text: &str, schema: Place<'_>, wanted: Types) -> Option<Value> {
    let trimmed = text.trim();
    if wanted.has(Types::INTEGER) {
        let number: Option<Number> = serde_json::from_str(trimmed).ok();
        if let Some(number) = number {
            let fits = wanted.has(Types::of(&Value::Number(number.clone())));
            return if fits { Some(Value::Number(number)) } else { from_number(&number, wanted) };
        }
    }
    if wanted.has(Types::BOOLEAN) {
        match trimmed.to_ascii_lowercase().as_str() {
            "true" => return Some(Value::Bool(true)),
            "false" => return Some(Value::Bool(false)),
            _ => {}
        }
    }
    let opens = trimmed.chars().next();
    if matches!(opens, Some('[' | '{')) {
        let decoded: Option<Value> = serde_json::from_str(trimmed).ok();
        return match decoded {
            Some(decoded) if wanted.has(Types::of(&decoded)) => Some(decoded),
            Some(decoded @ Value::Object(_)) if items_are(schema, Types::OBJECT) => Some(Value::Array(vec![decoded])),
            _ => None,
        };
    }
    (!trimmed.is_empty() && items_are(schema, Types::STRING)).then(|| Value::Array(vec![text.into()]))
}

/// A number where the schema does not take this kind of number.
fn from_number(number: &Number, wanted: Types) -> Option<Value> {
    if wanted.has(Types::INTEGER) {
        let float = number.as_f64().filter(|f| f.fract() == 0.0)?;
        // The cast is exact within these bounds. Beyond them a validator would call it an integer, and no tool could
        // read it as one: as text it is refused.
        return Some(if float.abs() <= MAX_EXACT { Value::from(float as i64) } else { number.to_string().into() });
    }
    // An id such as 7 where ids are text. Fractions are left: their spelling is not kept by a number.
    (wanted.has(Types::STRING) && !number.is_f64()).then(|| Value::String(number.to_string()))
}

fn items_are(schema: Place<'_>, types: Types) -> bool {
    let takes_array = schema.types().has(Types::ARRAY);
    let items = schema.describing(Types::ARRAY).and_then(Place::items);
    takes_array && items.is_some_and(|items| items.types() != Types::ANY && items.types().has(types))
}
