//! Requests that are nearly right, for every row of the table: no 500, no hang, every refusal in the one shape.

use hames_protocol::api::endpoint::{Body, ENDPOINTS, Endpoint, ParameterKind};
use hames_protocol::schema::openapi;
use serde_json::{Map, Value, json};

use super::kit::{Answer, Served};

/// Requests in the tests; a soak makes more of them.
const REQUESTS: u64 = 600;

#[tokio::test]
async fn no_request_makes_the_server_fail_or_hang() {
    let seed: u64 = number("HAMES_SEED").unwrap_or(7);
    let requests = if std::env::var_os("HAMES_SOAK").is_some() { 20_000 } else { REQUESTS };
    let served = Served::start().await;
    let document = openapi();
    let mut dice = Dice(seed.max(1));
    for n in 0..requests {
        let row = &ENDPOINTS[dice.below(ENDPOINTS.len())];
        // A server that stops has nothing to find.
        if row.name == "stop_server" {
            continue;
        }
        let (target, headers, body) = request(&mut dice, row, &document, served.home.path().to_str().unwrap());
        let answer = served.ask(row.method.as_str(), &target, &headers, &body).await;
        check(&answer, &format!("seed {seed}, request {n}: {} {target}\n{}", row.name, String::from_utf8_lossy(&body)));
    }
    assert_eq!(served.ask("GET", "/v1/health", "", b"").await.status, 200);
    served.stop().await;
}

fn check(answer: &Answer, what: &str) {
    assert_ne!(answer.status, 0, "{what}");
    assert!(answer.status < 500, "{what}\n{answer:?}");
    if answer.status >= 400 {
        answer.refusal();
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Small, the same on every machine.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    fn once_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

const TEXTS: [&str; 14] = [
    "",
    "x",
    "/",
    "/tmp",
    "/proc/self",
    "../../etc",
    "nothing-here",
    "0193b5a0-0000-7000-8000-000000000000",
    "a\u{0}b",
    "\u{202e}txt",
    "\u{1f600}",
    "' OR 1=1 --",
    "\"\"\" AND * NEAR(",
    "%s%n%00",
];

const NUMBERS: [&str; 10] =
    ["0", "1", "50", "-1", "1e3", "1.0", "9007199254740991", "9007199254740992", "18446744073709551616", ""];

fn request(dice: &mut Dice, row: &Endpoint, document: &Value, folder: &str) -> (String, String, Vec<u8>) {
    let segments = row.path.split('/').map(|segment| match segment.strip_prefix('{') {
        Some(_) => escaped(dice.pick(&TEXTS)),
        None => segment.to_owned(),
    });
    let mut target = segments.collect::<Vec<_>>().join("/");
    let mut separator = '?';
    for parameter in row.query {
        if dice.once_in(4) {
            continue;
        }
        let value = match parameter.kind {
            _ if parameter.name == "folder" && dice.once_in(2) => folder,
            ParameterKind::Text => dice.pick(&TEXTS),
            ParameterKind::Number { .. } => dice.pick(&NUMBERS),
        };
        target.push_str(&format!("{separator}{}={}", parameter.name, escaped(value)));
        separator = '&';
    }
    let (media_type, body) = match row.body {
        Body::Nothing => return (target, String::new(), Vec::new()),
        Body::Json(of) => ("application/json", json_body(dice, &(of.name)(), document, folder)),
        Body::Bytes { .. } => ("application/octet-stream", vec![b'\xff'; dice.below(300)]),
        Body::Lines => ("application/x-ndjson", lines(dice)),
    };
    let media_type = if dice.once_in(20) { "text/plain" } else { media_type };
    (target, format!("content-type: {media_type}\r\n"), body)
}

fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn lines(dice: &mut Dice) -> Vec<u8> {
    let texts =
        ["", "{}", "[]", "{\"v\":1,\"seq\":1,\"at\":0,\"event\":{\"type\":\"session.created\"}}", "\u{0}", "{\"v\":9}"];
    (0..dice.below(5)).map(|_| dice.pick(&texts)).collect::<Vec<_>>().join("\n").into_bytes()
}

fn json_body(dice: &mut Dice, name: &str, document: &Value, folder: &str) -> Vec<u8> {
    let schemas = &document["components"]["schemas"];
    let mut value = shaped(dice, &schemas[name], schemas, 0);
    if dice.once_in(2)
        && let Some(place) = value.get_mut("folder")
    {
        *place = json!(folder);
    }
    let mut bytes = serde_json::to_vec(&value).unwrap();
    if dice.once_in(10) {
        // A byte that is not what it was.
        let at = dice.below(bytes.len());
        bytes[at] = dice.next() as u8;
    }
    bytes
}

/// A value of this schema, now and then of another.
fn shaped(dice: &mut Dice, schema: &Value, schemas: &Value, depth: usize) -> Value {
    if dice.once_in(25) || depth > 8 {
        return [json!(null), json!([]), json!({}), json!(-1), json!("x"), json!(1.5), json!(true)][dice.below(7)]
            .clone();
    }
    if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
        return shaped(dice, &schemas[name], schemas, depth + 1);
    }
    if let Some(only) = schema.get("const") {
        return only.clone();
    }
    for choice in ["oneOf", "anyOf", "enum"] {
        if let Some(choices) = schema[choice].as_array().filter(|choices| !choices.is_empty()) {
            let chosen = &choices[dice.below(choices.len())];
            return if choice == "enum" { chosen.clone() } else { shaped(dice, chosen, schemas, depth + 1) };
        }
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds[dice.below(kinds.len())].as_str(),
        kind => kind.as_str(),
    };
    match kind {
        Some("object") => {
            let mut members = Map::new();
            for (name, member) in schema["properties"].as_object().into_iter().flatten() {
                let is_required =
                    schema["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name));
                if is_required || dice.once_in(2) {
                    members.insert(name.clone(), shaped(dice, member, schemas, depth + 1));
                }
            }
            Value::Object(members)
        }
        Some("array") => (0..dice.below(4)).map(|_| shaped(dice, &schema["items"], schemas, depth + 1)).collect(),
        Some("string") => json!(dice.pick(&TEXTS)),
        Some("integer" | "number") => serde_json::from_str(dice.pick(&NUMBERS)).unwrap_or(Value::Null),
        Some("boolean") => json!(dice.once_in(2)),
        _ => Value::Null,
    }
}
