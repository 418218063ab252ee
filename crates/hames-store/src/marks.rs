//! Which blobs a log names: read from the text of its events, so that those of types this version does not know count too.

use std::collections::HashSet;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

use crate::fault::Fault;
use crate::row::key;

/// How a hash and an output's name stand in the JSON of an event, as it is written.
const HASH: &[u8] = b"\"hash\":\"";
const NAME: &[u8] = b"\"name\":\"out-";
const HASH_DIGITS: usize = 64;
/// Digits of an output's number at most.
const NAME_DIGITS: usize = 10;

/// Hashes and names of outputs that events mention. More than blobs are mentioned by hash; that does no harm.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    pub(crate) hashes: HashSet<String>,
    pub(crate) names: HashSet<String>,
}

impl Marks {
    /// Those of the events of session `number` with seqs in `from..=to`.
    pub(crate) fn of(db: &Connection, number: i64, from: u64, to: u64) -> Result<Marks, Fault> {
        let mut marks = Marks::default();
        let mut statement = db.prepare_cached("SELECT body FROM events WHERE key BETWEEN ?1 AND ?2")?;
        let mut rows = statement.query([key(number, from), key(number, to)])?;
        while let Some(row) = rows.next()? {
            if let ValueRef::Text(body) | ValueRef::Blob(body) = row.get_ref(0)? {
                marks.add(body);
            }
        }
        Ok(marks)
    }

    /// Takes in the text of one event.
    pub(crate) fn add(&mut self, body: &[u8]) {
        for at in memchr::memmem::find_iter(body, HASH) {
            let digits = body.get(at + HASH.len()..at + HASH.len() + HASH_DIGITS);
            if let Some(hash) = digits.filter(|hash| hash.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))) {
                self.hashes.insert(String::from_utf8_lossy(hash).into_owned());
            }
        }
        for at in memchr::memmem::find_iter(body, NAME) {
            let rest = &body[at + NAME.len()..];
            let digits = rest.iter().take(NAME_DIGITS).take_while(|b| b.is_ascii_digit()).count();
            if digits > 0 && rest.get(digits) == Some(&b'"') {
                self.names.insert(format!("out-{}", String::from_utf8_lossy(&rest[..digits])));
            }
        }
    }

    pub(crate) fn hashes_as_json(&self) -> String {
        as_json(&self.hashes)
    }

    pub(crate) fn names_as_json(&self) -> String {
        as_json(&self.names)
    }

    /// The highest number among the names; 0 where there is none.
    pub(crate) fn last_output(&self) -> u32 {
        let numbers = self.names.iter().filter_map(|name| name.strip_prefix("out-")?.parse().ok());
        numbers.max().unwrap_or(0)
    }
}

fn as_json(texts: &HashSet<String>) -> String {
    serde_json::to_string(texts).unwrap_or_else(|_| "[]".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_and_names_are_found_wherever_they_stand() {
        let hash = "0a".repeat(32);
        let cases: [(String, usize, &[&str]); 8] = [
            (format!(r#"{{"type":"x","blob":{{"hash":"{hash}","bytes":1,"name":"out-17"}}}}"#), 1, &["out-17"]),
            (format!(r#"{{"type":"later","deep":[{{"k":{{"hash":"{hash}"}}}}]}}"#), 1, &[]),
            (format!(r#"{{"hash":"{}"}}"#, hash.to_uppercase()), 0, &[]),
            (format!(r#"{{"hash":"{}"}}"#, &hash[..63]), 0, &[]),
            (r#"{"name":"out-","hash":""#.to_owned(), 0, &[]),
            (r#"{"name":"out-12345678901"}"#.to_owned(), 0, &[]),
            (r#"{"name":"out-3","x":{"name":"out-4"},"name":"out-5x"}"#.to_owned(), 0, &["out-3", "out-4"]),
            // A text that only quotes such a thing has its quotes escaped.
            (serde_json::json!({"text": format!(r#"{{"hash":"{hash}","name":"out-1"}}"#)}).to_string(), 0, &[]),
        ];
        for (body, hashes, names) in cases {
            let mut marks = Marks::default();
            marks.add(body.as_bytes());
            let mut found: Vec<&str> = marks.names.iter().map(String::as_str).collect();
            found.sort_unstable();
            assert_eq!((marks.hashes.len(), found.as_slice()), (hashes, names), "{body}");
        }
    }
}
