//! The OpenAPI 3.1 document: the table of endpoints and the schemas of the types they name.

use std::collections::BTreeMap;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::Envelope;
use crate::api::endpoint::{
    Answer, Body, COMMON_REFUSALS, ENDPOINTS, Endpoint, MAX_PARAMETER, MAX_SEGMENT, Parameter, ParameterKind,
};
use crate::api::{API_VERSION, ApiError, ApiErrorCode};

const DESCRIPTION: &str = "The API of the local server of Hames, over its unix socket or loopback TCP. Bodies are JSON in \
snake case, times are Unix milliseconds, and every refusal is an ApiError. Over TCP every request but health needs the \
token of the server, a Host that names the loopback interface, and no foreign Origin.";

const EVENTS: &str = "Server-sent events. Each has an Envelope as its data; durable ones have their seq as id, live ones none. \
A frame of the name refusal has an ApiError and is the last one. Comments are heartbeats: at least one frame or comment \
comes every 15 seconds.";

/// The document.
pub fn openapi() -> Value {
    let mut generator: SchemaGenerator =
        SchemaSettings::draft2020_12().with(|settings| settings.definitions_path = "/components/schemas".into()).into();
    generator.subschema_for::<ApiError>();
    generator.subschema_for::<Envelope>();
    let mut paths: Map<String, Value> = Map::new();
    for endpoint in ENDPOINTS {
        let operation = operation(endpoint, &mut generator);
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        path[endpoint.method.as_str().to_ascii_lowercase()] = operation;
    }
    let mut schemas: Value = generator.take_definitions(true).into_iter().collect::<Map<String, Value>>().into();
    keep_siblings(&mut schemas);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Hames",
            "version": format!("{}.{}", API_VERSION.major, API_VERSION.minor),
            "description": DESCRIPTION,
            "license": {"name": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "http://localhost"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    })
}

fn operation(endpoint: &Endpoint, generator: &mut SchemaGenerator) -> Value {
    let mut operation = json!({
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "parameters": parameters(endpoint),
        "responses": responses(endpoint, generator),
    });
    if let Some(content) = content_of_body(endpoint.body, generator) {
        operation["requestBody"] = json!({"required": true, "content": content});
    }
    operation
}

fn parameters(endpoint: &Endpoint) -> Value {
    let in_path = endpoint.path_parameters().map(
        |name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "minLength": 1, "maxLength": MAX_SEGMENT}}),
    );
    let in_query = endpoint.query.iter().map(parameter);
    let header = matches!(endpoint.answer, Answer::Events).then(|| {
        json!({
            "name": "Last-Event-ID", "in": "header", "required": false,
            "description": "The last seq that is known, as browsers send it when they reconnect.",
            "schema": {"type": "string"},
        })
    });
    in_path.chain(in_query).chain(header).collect()
}

fn parameter(parameter: &Parameter) -> Value {
    let schema = match parameter.kind {
        ParameterKind::Text if parameter.is_required => {
            json!({"type": "string", "minLength": 1, "maxLength": MAX_PARAMETER})
        }
        ParameterKind::Text => json!({"type": "string", "maxLength": MAX_PARAMETER}),
        ParameterKind::Number { min, max, default } => {
            let mut schema = json!({"type": "integer", "minimum": min, "maximum": max});
            if let Some(default) = default {
                schema["default"] = json!(default);
            }
            schema
        }
    };
    json!({
        "name": parameter.name, "in": "query", "required": parameter.is_required,
        "description": parameter.summary, "schema": schema,
    })
}

fn content_of_body(body: Body, generator: &mut SchemaGenerator) -> Option<Value> {
    Some(match body {
        Body::Nothing => return None,
        Body::Json(of) => json!({"application/json": {"schema": (of.schema)(generator)}}),
        Body::Bytes { .. } => json!({"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}),
        Body::Lines => json!({"application/x-ndjson": {"schema": {"type": "string"}}}),
    })
}

fn responses(endpoint: &Endpoint, generator: &mut SchemaGenerator) -> Value {
    let answer = match endpoint.answer {
        Answer::Nothing => ("204", json!({"description": "It is done."})),
        Answer::Json(of) => {
            let schema = (of.schema)(generator);
            ("200", json!({"description": (of.name)(), "content": {"application/json": {"schema": schema}}}))
        }
        Answer::Bytes => {
            let schema = json!({"type": "string", "format": "binary"});
            ("200", json!({"description": "The bytes.", "content": {"application/octet-stream": {"schema": schema}}}))
        }
        Answer::Lines => {
            let schema = json!({"type": "string"});
            ("200", json!({"description": "The lines.", "content": {"application/x-ndjson": {"schema": schema}}}))
        }
        Answer::Events => {
            let schema = json!({"type": "string"});
            ("200", json!({"description": EVENTS, "content": {"text/event-stream": {"schema": schema}}}))
        }
    };
    let mut by_status: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    for code in COMMON_REFUSALS.iter().chain(endpoint.refusals) {
        by_status.entry(code.status()).or_default().push(word(*code));
    }
    let refusals = by_status.into_iter().map(|(status, codes)| {
        let schema = json!({"$ref": "#/components/schemas/ApiError"});
        let content = json!({"application/json": {"schema": schema}});
        (status.to_string(), json!({"description": codes.join(", "), "content": content}))
    });
    // Said before there is a request to answer, so without a body.
    let large = ("431".to_owned(), json!({"description": "The head of the request is too large."}));
    [(answer.0.to_owned(), answer.1)].into_iter().chain(refusals).chain([large]).collect::<Map<_, _>>().into()
}

/// A code as it is written.
fn word(code: ApiErrorCode) -> String {
    serde_json::to_value(code).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Some generators of types drop what stands beside a `$ref` (the tag of an event): both go into an `allOf`.
fn keep_siblings(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(keep_siblings);
            let has_shape = members.contains_key("properties");
            if has_shape && let Some(reference) = members.shift_remove("$ref") {
                let mut beside = std::mem::take(members);
                let description = beside.shift_remove("description");
                members.insert("allOf".into(), json!([{"$ref": reference}, beside]));
                members.extend(description.map(|text| ("description".to_owned(), text)));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(keep_siblings),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every `$ref` of a document.
    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
                members.values().for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_of_the_document_leads_somewhere() {
        let document = openapi();
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        assert!(found.len() > 50, "{}", found.len());
        for reference in found {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }

    #[test]
    fn rows_of_the_table_differ_in_name_and_in_method_and_path() {
        let names: BTreeSet<_> = ENDPOINTS.iter().map(|row| row.name).collect();
        let places: BTreeSet<_> = ENDPOINTS.iter().map(|row| (row.method, row.path)).collect();
        assert_eq!((names.len(), places.len()), (ENDPOINTS.len(), ENDPOINTS.len()));
    }

    #[test]
    fn an_event_keeps_its_tag_beside_the_reference_to_its_body() {
        let document = openapi();
        let first = &document["components"]["schemas"]["Event"]["anyOf"][0];
        assert_eq!(first["allOf"][0]["$ref"], "#/components/schemas/SessionCreated");
        assert_eq!(first["allOf"][1]["properties"]["type"]["const"], "session.created");
    }
}
