//! Reading a JSON Schema far enough to know what a value should look like.
//!
//! Only what mending needs: local references, types, properties and items. Whether a value fits is the validator's
//! business, not this module's.

use serde_json::{Map, Value};

/// References followed in a row before giving up: schemas may refer to themselves.
const MAX_REFS: usize = 16;

/// JSON types, as a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Types(u8);

impl Types {
    pub(crate) const NULL: Types = Types(1);
    pub(crate) const BOOLEAN: Types = Types(2);
    pub(crate) const INTEGER: Types = Types(4);
    /// Any number; holds [`INTEGER`](Self::INTEGER).
    pub(crate) const NUMBER: Types = Types(4 | 8);
    pub(crate) const STRING: Types = Types(16);
    pub(crate) const ARRAY: Types = Types(32);
    pub(crate) const OBJECT: Types = Types(64);
    pub(crate) const ANY: Types = Types(127);
    const NONE: Types = Types(0);

    pub(crate) fn has(self, other: Types) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) fn of(value: &Value) -> Types {
        match value {
            Value::Null => Types::NULL,
            Value::Bool(_) => Types::BOOLEAN,
            Value::Number(n) if n.is_f64() => Types::NUMBER,
            Value::Number(_) => Types::INTEGER,
            Value::String(_) => Types::STRING,
            Value::Array(_) => Types::ARRAY,
            Value::Object(_) => Types::OBJECT,
        }
    }

    fn named(name: &str) -> Types {
        match name {
            "null" => Types::NULL,
            "boolean" => Types::BOOLEAN,
            "integer" => Types::INTEGER,
            "number" => Types::NUMBER,
            "string" => Types::STRING,
            "array" => Types::ARRAY,
            "object" => Types::OBJECT,
            _ => Types::NONE,
        }
    }

    fn or(self, other: Types) -> Types {
        Types(self.0 | other.0)
    }
}

/// A place in a schema, with the document it is part of.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    root: &'a Value,
    at: &'a Value,
}

impl<'a> Place<'a> {
    pub(crate) fn root(root: &'a Value) -> Self {
        Self { root, at: root }.followed()
    }

    fn go(self, at: &'a Value) -> Self {
        Self { at, ..self }.followed()
    }

    fn followed(mut self) -> Self {
        for _ in 0..MAX_REFS {
            let target = self
                .get("$ref")
                .and_then(Value::as_str)
                .and_then(|reference| reference.strip_prefix('#'))
                .and_then(|pointer| self.root.pointer(pointer));
            match target {
                Some(target) => self.at = target,
                None => break,
            }
        }
        self
    }

    fn get(self, keyword: &str) -> Option<&'a Value> {
        self.at.get(keyword)
    }

    /// Alternatives, where the schema is a choice.
    fn choices(self) -> impl Iterator<Item = Place<'a>> {
        ["anyOf", "oneOf"]
            .into_iter()
            .filter_map(move |keyword| self.get(keyword).and_then(Value::as_array))
            .flatten()
            .map(move |choice| self.go(choice))
    }

    /// The types that may fit here.
    pub(crate) fn types(self) -> Types {
        self.types_within(MAX_REFS)
    }

    fn types_within(self, depth: usize) -> Types {
        if let Some(kind) = self.get("type") {
            return match kind {
                Value::String(name) => Types::named(name),
                Value::Array(names) => {
                    names.iter().filter_map(Value::as_str).map(Types::named).fold(Types::NONE, Types::or)
                }
                _ => Types::ANY,
            };
        }
        if let Some(values) = self.get("enum").and_then(Value::as_array) {
            return values.iter().map(Types::of).fold(Types::NONE, Types::or);
        }
        if let Some(value) = self.get("const") {
            return Types::of(value);
        }
        let choices = self.choices().map(|c| if depth == 0 { Types::ANY } else { c.types_within(depth - 1) });
        choices.reduce(Types::or).unwrap_or(Types::ANY)
    }

    /// The one alternative that describes values of this type: the schema itself, or the only fitting choice.
    pub(crate) fn describing(self, types: Types) -> Option<Place<'a>> {
        let mut fitting = self.choices().filter(|choice| choice.types().has(types));
        match (fitting.next(), fitting.next()) {
            (None, _) => Some(self),
            (Some(only), None) if self.get("properties").is_none() => Some(only),
            _ => None,
        }
    }

    pub(crate) fn properties(self) -> Option<&'a Map<String, Value>> {
        self.get("properties").and_then(Value::as_object)
    }

    pub(crate) fn property(self, name: &str) -> Option<Place<'a>> {
        self.properties().and_then(|all| all.get(name)).map(|schema| self.go(schema))
    }

    pub(crate) fn required(self) -> impl Iterator<Item = &'a str> {
        self.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    }

    pub(crate) fn items(self) -> Option<Place<'a>> {
        self.get("items").filter(|items| items.is_object()).map(|items| self.go(items))
    }

    /// Whether a property that is not listed can only be a mistake.
    pub(crate) fn is_closed(self) -> bool {
        let open_by =
            ["patternProperties", "allOf", "anyOf", "oneOf", "if", "$ref", "$dynamicRef", "unevaluatedProperties"];
        match self.get("additionalProperties") {
            Some(Value::Bool(false)) => true,
            Some(_) => false,
            None => self.properties().is_some() && !open_by.iter().any(|keyword| self.get(keyword).is_some()),
        }
    }

    /// A few words for a person or a model: `{path: string, offset?: integer}`.
    pub(crate) fn shape(self) -> String {
        self.shape_within(2)
    }

    fn shape_within(self, depth: usize) -> String {
        if let Some(values) = self.get("enum").and_then(Value::as_array) {
            return values.iter().map(Value::to_string).collect::<Vec<_>>().join("|");
        }
        let types = self.types();
        if types.has(Types::OBJECT) && types != Types::ANY {
            let Some(place) = self.describing(Types::OBJECT).filter(|_| depth > 0) else { return "object".into() };
            let required: Vec<&str> = place.required().collect();
            let fields = place.properties().into_iter().flatten().map(|(name, schema)| {
                let optional = if required.contains(&name.as_str()) { "" } else { "?" };
                format!("{name}{optional}: {}", place.go(schema).shape_within(depth - 1))
            });
            return format!("{{{}}}", fields.collect::<Vec<_>>().join(", "));
        }
        if types.has(Types::ARRAY) && types != Types::ANY {
            let items = self.describing(Types::ARRAY).and_then(Place::items);
            return items.map_or("array".into(), |items| format!("[{}]", items.shape_within(depth)));
        }
        types.to_string()
    }
}

impl std::fmt::Display for Types {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if *self == Types::ANY {
            return f.write_str("any");
        }
        let number = if self.has(Types::NUMBER) { (Types::NUMBER, "number") } else { (Types::INTEGER, "integer") };
        let named = [
            (Types::STRING, "string"),
            number,
            (Types::BOOLEAN, "boolean"),
            (Types::ARRAY, "array"),
            (Types::OBJECT, "object"),
        ];
        let names: Vec<&str> = named.iter().filter(|(types, _)| self.has(*types)).map(|(_, name)| *name).collect();
        f.write_str(&names.join("|"))
    }
}
