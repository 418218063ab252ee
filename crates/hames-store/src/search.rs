//! Search in what was said: user messages, answers, and the labels of calls; newest first.
//!
//! No append waits for the index. It is brought up to date in small transactions when the writer has nothing else to
//! do, and before a search. Any text is a safe query: its words must all occur, as parts of words too. Words of three
//! characters and more go through the trigram index; shorter ones (most Chinese words) are compared one by one.

use hames_protocol::{Event, LogError, Part, SessionId, is_unprintable};
use rusqlite::{Connection, Row};
use serde::Serialize;

use crate::fault::Fault;
use crate::row::{self, key, seq_of, uint};
use crate::sessions::{self, SessionInfo};

/// Events taken into the index in one transaction: a few milliseconds.
const BATCH: usize = 200;
/// Bytes of one text that are indexed.
const TEXT_LIMIT: usize = 64 * 1024;
/// Words of a query that count.
const WORDS: usize = 16;
/// Characters a word needs for the trigram index.
const TRIGRAM: usize = 3;
/// Characters of a snippet before and after its match.
const BEFORE: usize = 40;
const AFTER: usize = 100;

/// What a hit was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchKind {
    /// The user said it.
    User,
    /// The model answered it.
    Answer,
    /// A call's label.
    Call,
}

impl SearchKind {
    fn as_str(self) -> &'static str {
        match self {
            SearchKind::User => "user",
            SearchKind::Answer => "answer",
            SearchKind::Call => "call",
        }
    }

    fn from_text(text: &str) -> SearchKind {
        match text {
            "user" => SearchKind::User,
            "call" => SearchKind::Call,
            _ => SearchKind::Answer,
        }
    }
}

/// A place where the words of a search occur.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SearchHit {
    /// The session.
    pub session: SessionInfo,
    /// The event.
    pub seq: u64,
    /// When, in Unix milliseconds.
    pub at: u64,
    /// The match with a little around it, on one line.
    pub snippet: String,
    /// What it was.
    pub kind: SearchKind,
}

/// Takes the next events into the index; `true` while there are more. Runs inside a transaction.
pub(crate) fn index_some(db: &Connection) -> Result<bool, Fault> {
    let behind = "SELECT n, id, indexed_seq, last_seq FROM sessions WHERE indexed_seq < last_seq ORDER BY n LIMIT 1";
    let mut statement = db.prepare_cached(behind)?;
    let mut rows = statement.query([])?;
    let Some(row) = rows.next()? else { return Ok(false) };
    let number: i64 = row.get(0)?;
    let id = SessionId::from(row.get::<_, String>(1)?);
    let (from, last) = (uint(row, 2), uint(row, 3));
    drop(rows);

    let mut statement = db.prepare_cached(&format!(
        "SELECT {} FROM events WHERE key > ?1 AND key <= ?2 AND type IN ('message.user', 'text.done', 'tool.call')
         ORDER BY key LIMIT ?3",
        row::COLUMNS
    ))?;
    let mut rows = statement.query((key(number, from), key(number, last), row::int(BATCH as u64)))?;
    let (mut seen, mut reached) = (0, from);
    while let Some(row) = rows.next()? {
        seen += 1;
        let envelope = row::decode(row, &id)?;
        reached = envelope.seq.unwrap_or(reached);
        if let Some((kind, text)) = said(&envelope.event) {
            db.prepare_cached("INSERT OR IGNORE INTO said (key, at, kind, text) VALUES (?1, ?2, ?3, ?4)")?
                .execute((key(number, reached), row::int(envelope.at), kind.as_str(), text))?;
        }
    }
    let reached = if seen < BATCH { last } else { reached };
    db.prepare_cached("UPDATE sessions SET indexed_seq = ?2 WHERE n = ?1")?.execute((number, row::int(reached)))?;
    Ok(true)
}

fn said(event: &Event) -> Option<(SearchKind, String)> {
    let (kind, mut text) = match event {
        Event::MessageUser(message) => {
            let texts = message.parts.iter().filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                _ => None,
            });
            (SearchKind::User, texts.collect::<Vec<_>>().join("\n"))
        }
        Event::TextDone(done) => (SearchKind::Answer, done.text.clone()),
        Event::ToolCall(call) => (SearchKind::Call, format!("{} {}", call.label.tool, call.label.target)),
        _ => return None,
    };
    let end = (0..=TEXT_LIMIT.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.truncate(end);
    (!text.trim().is_empty()).then_some((kind, text))
}

/// The trees in the database that are here for the search alone.
pub(crate) const TREES: &[&str] = &["said", "said_index_data", "said_index_idx", "said_index_docsize"];

/// Makes the index one piece again. Takes as long as writing it.
pub(crate) fn optimize(db: &Connection) -> Result<(), Fault> {
    db.execute("INSERT INTO said_index (said_index) VALUES ('optimize')", [])?;
    Ok(())
}

/// Removes what was said in a session from one event on.
pub(crate) fn forget(db: &Connection, number: i64, from: u64) -> Result<(), Fault> {
    db.execute("DELETE FROM said WHERE key BETWEEN ?1 AND ?2", [key(number, from), key(number, row::SEQ_MAX)])?;
    Ok(())
}

/// Searches what is indexed.
pub(crate) fn search(
    db: &Connection,
    query: &str,
    folder: Option<&str>,
    limit: usize,
) -> Result<Vec<SearchHit>, Fault> {
    let words: Vec<String> = query.split_whitespace().take(WORDS).map(str::to_lowercase).collect();
    if words.is_empty() {
        return Ok(vec![]);
    }
    let indexed: Vec<String> = words
        .iter()
        .filter(|word| word.chars().count() >= TRIGRAM)
        .map(|word| format!("\"{}\"", word.replace(['"', '\0'], " ").trim()))
        .filter(|word| word.chars().count() >= TRIGRAM + 2)
        .collect();
    let by_index = match indexed.is_empty() {
        true => "?2 IS NULL",
        false => "m.key IN (SELECT rowid FROM said_index WHERE said_index MATCH ?2)",
    };
    // Only keys are sorted; the texts are read one by one, until there are enough hits.
    let mut keys = db.prepare_cached(&format!(
        "SELECT m.key FROM said m JOIN sessions s ON s.n = m.key >> 32
         WHERE {by_index} AND (?1 IS NULL OR s.folder = ?1) ORDER BY m.at DESC, m.key DESC"
    ))?;
    let mut text = db.prepare_cached(&format!(
        "SELECT {}, m.key, m.at, m.kind, m.text FROM said m JOIN sessions s ON s.n = m.key >> 32 WHERE m.key = ?1",
        sessions::COLUMNS
    ))?;
    let pattern = (!indexed.is_empty()).then(|| indexed.join(" AND "));
    let mut rows = keys.query((folder, pattern))?;
    let mut hits = Vec::new();
    while let Some(row) = rows.next()? {
        if hits.len() >= limit {
            break;
        }
        hits.extend(text.query_row([row.get::<_, i64>(0)?], |row| hit(row, &words))?);
    }
    Ok(hits)
}

/// The row as a hit, where every word really occurs in it.
fn hit(row: &Row<'_>, words: &[String]) -> rusqlite::Result<Option<SearchHit>> {
    let text: String = row.get(13)?;
    let lower = text.to_lowercase();
    let Some(places) = words.iter().map(|word| lower.find(word.as_str())).collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let first = character_at(&text, places.into_iter().min().unwrap_or(0));
    Ok(Some(SearchHit {
        session: sessions::info(row)?,
        seq: seq_of(row.get(10)?),
        at: uint(row, 11),
        snippet: snippet(&text, first),
        kind: SearchKind::from_text(&row.get::<_, String>(12)?),
    }))
}

/// The ordinal of the character of `text` that byte `lower` of its lower-case form belongs to; lengths may differ.
fn character_at(text: &str, lower: usize) -> usize {
    let mut before = 0;
    text.chars()
        .take_while(|c| {
            before += c.to_lowercase().map(char::len_utf8).sum::<usize>();
            before <= lower
        })
        .count()
}

/// One line around the character `at`, with dots where it was cut.
fn snippet(text: &str, at: usize) -> String {
    let from = at.saturating_sub(BEFORE);
    let mut chars = text.chars().skip(from);
    let part: String = chars.by_ref().take(BEFORE + AFTER).map(|c| if is_unprintable(c) { ' ' } else { c }).collect();
    let line = part.split_whitespace().collect::<Vec<_>>().join(" ");
    let before = if from > 0 { "…" } else { "" };
    let after = if chars.next().is_some() { "…" } else { "" };
    format!("{before}{line}{after}")
}

/// A failure of the index that leaves the search itself possible: it then finds what was indexed before.
pub(crate) fn can_go_on(error: &LogError) -> bool {
    matches!(error, LogError::NoSpace(_) | LogError::ReadOnly(_) | LogError::Locked(_))
}
