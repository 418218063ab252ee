//! JSON Schema of the protocol, generated from the types so that it cannot drift from them.

mod openapi;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::{Envelope, Settings, ToolSpec, WindowPreview, WindowReport};

pub use openapi::openapi;

/// One JSON Schema (2020-12) document: the envelope at the root, every other type under `$defs`.
pub fn protocol_schema() -> Value {
    let mut generator: SchemaGenerator = SchemaSettings::draft2020_12().into_generator();
    generator.subschema_for::<Settings>();
    generator.subschema_for::<ToolSpec>();
    generator.subschema_for::<WindowReport>();
    generator.subschema_for::<WindowPreview>();
    let root = generator.root_schema_for::<Envelope>();
    let mut value = root.to_value();
    value["$id"] = json!("hames-protocol");
    value["title"] = json!("Hames event envelope");
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_names_every_event_type() {
        let text = protocol_schema().to_string();
        for name in
            ["session.created", "run.done", "tool.call", "file.changed", "changes.apply_started", "step.snapshot"]
        {
            assert!(text.contains(name), "{name} is missing from the schema");
        }
    }
}
