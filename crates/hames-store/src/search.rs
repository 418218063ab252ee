//! Search in what was said: user messages, answers, and the labels of calls; newest first.
//!
//! No append waits for the index. It is brought up to date in small transactions when the writer has nothing else to
//! do, and before a search. Any text is a safe query: its words must all occur, as parts of words too.
//!
//! Rows are numbered by time, so a search walks the index from its newest end and stops when it has enough: a word that
//! stands everywhere costs as little as its first hits. A folder's sessions bound the times that are walked. Words of
//! three characters and more go through the trigram index; where there are only shorter ones (most Chinese words), the
//! texts themselves are compared.

use std::collections::{BTreeSet, HashMap};

use hames_protocol::{Event, LogError, Part, SessionId, is_unprintable};
use rusqlite::{Connection, OptionalExtension};
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
/// Trigrams of a query that are looked up; the rest is only compared.
const TRIGRAMS: usize = 48;
/// Bits of a row's number that tell apart what was said in one millisecond; the time is above them.
const ORDINAL_BITS: u32 = 21;
/// The latest time that is told from later ones: the year 2109.
const AT_MAX: u64 = (1 << 42) - 1;
/// How far a clock may have been set back while a session went on.
const CLOCK_SLACK_MS: u64 = 60 * 60 * 1000;
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
    /// Byte ranges of the snippet that are what was searched for, in order, none touching another.
    pub highlights: Vec<(u32, u32)>,
    /// What it was.
    pub kind: SearchKind,
}

/// Takes the next events into the index; `true` while there are more. Runs inside a transaction.
pub(crate) fn index_some(db: &Connection) -> Result<bool, Fault> {
    let behind = "SELECT n, id, indexed_seq, last_seq FROM sessions WHERE indexed_seq < last_seq
                  ORDER BY updated_at DESC, n DESC LIMIT 1";
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
        if let Some((kind, text)) = said(&envelope.event)
            && let Some(id) = free_id(db, envelope.at)?
        {
            db.prepare_cached("INSERT OR IGNORE INTO said (id, key, kind, text) VALUES (?1, ?2, ?3, ?4)")?
                .execute((id, key(number, reached), kind.as_str(), text))?;
        }
    }
    let reached = if seen < BATCH { last } else { reached };
    db.prepare_cached("UPDATE sessions SET indexed_seq = ?2 WHERE n = ?1")?.execute((number, row::int(reached)))?;
    Ok(true)
}

/// The first number that something said at this time can have.
fn first_id(at: u64) -> i64 {
    row::int(at.min(AT_MAX) << ORDINAL_BITS)
}

/// The last number that something said at this time can have.
fn last_id(at: u64) -> i64 {
    first_id(at) | ((1 << ORDINAL_BITS) - 1)
}

/// A number for something said at this time; `None` where two million others were said in the same millisecond.
fn free_id(db: &Connection, at: u64) -> Result<Option<i64>, Fault> {
    let (first, last) = (first_id(at), last_id(at));
    let mut statement = db.prepare_cached("SELECT max(id) FROM said WHERE id BETWEEN ?1 AND ?2")?;
    let taken: Option<i64> = statement.query_row([first, last], |row| row.get(0))?;
    Ok(match taken {
        None => Some(first),
        Some(taken) if taken < last => Some(taken + 1),
        Some(_) => None,
    })
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
pub(crate) const TREES: &[&str] = &["said", "sqlite_autoindex_said_1", "said_index_data", "said_index_idx"];

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
    if words.is_empty() || limit == 0 {
        return Ok(vec![]);
    }
    let tx = db.unchecked_transaction()?;
    let mut hits = Hits { db: &tx, words: &words, limit, sessions: HashMap::new(), found: Vec::new() };
    let pattern = pattern(query);
    let spans = match folder {
        None => vec![(0, i64::MAX)],
        Some(folder) => {
            let (sessions, spans) = spans(&tx, folder)?;
            hits.sessions = sessions;
            spans
        }
    };
    for (from, to) in spans {
        hits.walk(folder.is_some(), pattern.as_deref(), from, to)?;
    }
    Ok(hits.found)
}

/// What the index is asked: all trigrams of the words. `None` where no word has any.
fn pattern(query: &str) -> Option<String> {
    let mut trigrams = BTreeSet::new();
    for word in query.split_whitespace().take(WORDS) {
        let chars: Vec<char> = word.chars().take(TRIGRAMS).collect();
        trigrams.extend(chars.windows(TRIGRAM).filter(|three| !three.contains(&'\0')).map(String::from_iter));
    }
    let quoted: Vec<String> =
        trigrams.iter().take(TRIGRAMS).map(|three: &String| format!("\"{}\"", three.replace('"', "\"\""))).collect();
    (!quoted.is_empty()).then(|| quoted.join(" AND "))
}

/// Sessions by number, and what is known of each.
type Sessions = HashMap<i64, Option<SessionInfo>>;

/// A folder's sessions by number, and the ranges of row numbers in which they said anything, newest first.
fn spans(db: &Connection, folder: &str) -> Result<(Sessions, Vec<(i64, i64)>), Fault> {
    // What a copy was said before it was made; its first events tell when.
    let mut statement = db.prepare_cached(
        "SELECT s.n, s.updated_at, min(s.created_at, coalesce(
           (SELECT min(at) FROM (SELECT at FROM events WHERE key > s.n << 32 AND at > 0 ORDER BY key LIMIT 4)),
           s.created_at)) FROM sessions s WHERE s.folder = ?1 ORDER BY 2 DESC",
    )?;
    let mut rows = statement.query([folder])?;
    let (mut sessions, mut spans) = (HashMap::new(), Vec::<(i64, i64)>::new());
    while let Some(row) = rows.next()? {
        sessions.insert(row.get(0)?, None);
        let to = last_id(uint(row, 1).saturating_add(CLOCK_SLACK_MS));
        let from = first_id(uint(row, 2).saturating_sub(CLOCK_SLACK_MS));
        match spans.last_mut() {
            // Sorted by their ends, so only the one before can touch it.
            Some(newer) if newer.0 <= to => newer.0 = newer.0.min(from),
            _ => spans.push((from, to)),
        }
    }
    Ok((sessions, spans))
}

/// Hits as they are found.
struct Hits<'s> {
    db: &'s Connection,
    words: &'s [String],
    limit: usize,
    /// By number; those that are looked for, where only some are, and what is known of them.
    sessions: Sessions,
    found: Vec<SearchHit>,
}

impl Hits<'_> {
    /// Goes through what may be hits, from the newest on, until there are enough.
    fn walk(&mut self, only_known: bool, pattern: Option<&str>, from: i64, to: i64) -> Result<(), Fault> {
        let sql = match pattern {
            Some(_) => {
                "SELECT rowid FROM said_index WHERE said_index MATCH ?3 AND rowid BETWEEN ?1 AND ?2 ORDER BY rowid DESC"
            }
            None => "SELECT id FROM said WHERE id BETWEEN ?1 AND ?2 AND ?3 IS NULL ORDER BY id DESC",
        };
        let db = self.db;
        let mut ids = db.prepare_cached(sql)?;
        let mut text = db.prepare_cached("SELECT key, kind, text FROM said WHERE id = ?1")?;
        let mut rows = ids.query((from, to, pattern))?;
        while self.found.len() < self.limit
            && let Some(row) = rows.next()?
        {
            let id: i64 = row.get(0)?;
            let mut said = text.query([id])?;
            let Some(said) = said.next()? else { continue };
            let key: i64 = said.get(0)?;
            if only_known && !self.sessions.contains_key(&row::session_of(key)) {
                continue;
            }
            let (kind, text) = (said.get_ref(1)?.as_str().unwrap_or(""), said.get_ref(2)?.as_str().unwrap_or(""));
            if let Some(place) = first_place(text, self.words)
                && let Some(session) = self.session(row::session_of(key))?
            {
                let (snippet, at) = (snippet(text, place), id.cast_unsigned() >> ORDINAL_BITS);
                let highlights = highlights(&snippet, self.words);
                let kind = SearchKind::from_text(kind);
                self.found.push(SearchHit { session, seq: seq_of(key), at, snippet, highlights, kind });
            }
        }
        Ok(())
    }

    fn session(&mut self, number: i64) -> Result<Option<SessionInfo>, Fault> {
        if let Some(Some(known)) = self.sessions.get(&number) {
            return Ok(Some(known.clone()));
        }
        let sql = format!("SELECT {} FROM sessions s WHERE s.n = ?1", sessions::COLUMNS);
        let info = self.db.prepare_cached(&sql)?.query_row([number], sessions::info).optional()?;
        let info = info.map(SessionInfo::checked);
        self.sessions.insert(number, info.clone());
        Ok(info)
    }
}

/// The ordinal of the character where the first of the words occurs, where all of them do.
fn first_place(text: &str, words: &[String]) -> Option<usize> {
    let lower = text.to_lowercase();
    let places = words.iter().map(|word| lower.find(word.as_str())).collect::<Option<Vec<_>>>()?;
    Some(character_at(text, places.into_iter().min().unwrap_or(0)))
}

/// Where the words occur in a snippet, in bytes of it.
fn highlights(snippet: &str, words: &[String]) -> Vec<(u32, u32)> {
    let mut lower = String::new();
    // For each byte of the lower-case form, the character of the snippet it comes from: where that begins and ends.
    let mut origin: Vec<(usize, usize)> = Vec::new();
    for (at, c) in snippet.char_indices() {
        lower.extend(c.to_lowercase());
        origin.resize(lower.len(), (at, at + c.len_utf8()));
    }
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for word in words {
        let found = lower.match_indices(word.as_str()).filter(|(_, found)| !found.is_empty());
        ranges.extend(found.map(|(at, found)| (origin[at].0, origin[at + found.len() - 1].1)));
    }
    ranges.sort_unstable();
    let mut joined: Vec<(u32, u32)> = Vec::new();
    for (from, to) in ranges {
        let (from, to) = (u32::try_from(from).unwrap_or(u32::MAX), u32::try_from(to).unwrap_or(u32::MAX));
        match joined.last_mut() {
            Some(before) if before.1 >= from => before.1 = before.1.max(to),
            _ => joined.push((from, to)),
        }
    }
    joined
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
