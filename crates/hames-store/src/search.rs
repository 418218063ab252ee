//! Search in what was said: user messages, answers, and the labels of calls; newest first.
//!
//! No append waits for the index. It is brought up to date in small transactions when the writer has nothing else to
//! do, and before a search. Any text is a safe query: its words must all occur, as parts of words too.
//!
//! Rows are numbered by time, so a search walks the index from its newest end and stops when it has enough: a word that
//! stands everywhere costs as little as its first hits. A folder's sessions bound the times that are walked. Words of
//! three characters and more go through the trigram index; where there are only shorter ones (most Chinese words), the
//! texts themselves are compared. What hardly occurs and is made of common parts, or has only short words, may take long:
//! whoever has not the time says how much there is, gets what the newest history holds, and is told up to where that was.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use hames_protocol::{Event, LogError, Part, SessionId, is_unprintable};
use rusqlite::{Connection, OptionalExtension, Row};
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

/// How long a search may take that somebody waits for while typing: below what one notices, together with all around it.
pub const SEARCH_PATIENCE: Duration = Duration::from_millis(80);

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

/// What was found, and what was not looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Searched {
    /// The hits, newest first.
    pub hits: Vec<SearchHit>,
    /// Whether something was said that is not indexed yet. That goes on by itself.
    pub is_behind: bool,
    /// Where the time was up before everything was looked at: only what was said at this time or later was, in Unix
    /// milliseconds.
    pub since: Option<u64>,
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

/// Searches what is indexed, from the newest on, for as long as there is time. Gives the hits, and since when it has
/// looked where that is not all.
pub(crate) fn search(
    db: &Connection,
    query: &str,
    folder: Option<&str>,
    limit: usize,
    until: Option<Instant>,
) -> Result<(Vec<SearchHit>, Option<u64>), Fault> {
    let words: Vec<Word> = query.split_whitespace().take(WORDS).map(Word::of).collect();
    if words.is_empty() || limit == 0 {
        return Ok((vec![], None));
    }
    let tx = db.unchecked_transaction()?;
    let mut hits =
        Hits { db: &tx, words: &words, limit, until, sessions: HashMap::new(), found: Vec::new(), since: None };
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
        match &pattern {
            Some(pattern) => hits.walk_index(folder.is_some(), pattern, from, to)?,
            None => hits.walk_texts(folder.is_some(), from, to)?,
        }
        if hits.is_over() {
            break;
        }
    }
    Ok((hits.found, hits.since))
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
    words: &'s [Word],
    limit: usize,
    /// When the time is up.
    until: Option<Instant>,
    /// By number; those that are looked for, where only some are, and what is known of them.
    sessions: Sessions,
    found: Vec<SearchHit>,
    /// Set when the time was up: since when everything was looked at.
    since: Option<u64>,
}

impl Hits<'_> {
    /// Whether nothing more is to be looked at.
    fn is_over(&self) -> bool {
        self.found.len() >= self.limit || self.since.is_some()
    }

    /// Notes where the time was up, if it is.
    fn is_late(&mut self, id: i64) -> bool {
        let is_late = self.until.is_some_and(|until| Instant::now() >= until);
        if is_late {
            self.since = Some((id.cast_unsigned() >> ORDINAL_BITS).saturating_add(1));
        }
        is_late
    }

    /// Goes through what the index has, from the newest on, until there are enough hits.
    fn walk_index(&mut self, only_known: bool, pattern: &str, from: i64, to: i64) -> Result<(), Fault> {
        let db = self.db;
        let mut ids = db.prepare_cached(
            "SELECT rowid FROM said_index WHERE said_index MATCH ?3 AND rowid BETWEEN ?1 AND ?2 ORDER BY rowid DESC",
        )?;
        let mut text = db.prepare_cached("SELECT key, kind, text FROM said WHERE id = ?1")?;
        let mut rows = ids.query((from, to, pattern))?;
        while !self.is_over()
            && let Some(row) = rows.next()?
        {
            let id: i64 = row.get(0)?;
            if self.is_late(id) {
                break;
            }
            let mut said = text.query([id])?;
            if let Some(said) = said.next()? {
                self.take(id, only_known, said, 0)?;
            }
        }
        Ok(())
    }

    /// Goes through the texts themselves.
    fn walk_texts(&mut self, only_known: bool, from: i64, to: i64) -> Result<(), Fault> {
        let db = self.db;
        let mut texts =
            db.prepare_cached("SELECT id, key, kind, text FROM said WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC")?;
        let mut rows = texts.query([from, to])?;
        while !self.is_over()
            && let Some(row) = rows.next()?
        {
            let id: i64 = row.get(0)?;
            if self.is_late(id) {
                break;
            }
            self.take(id, only_known, row, 1)?;
        }
        Ok(())
    }

    /// Takes a row whose key, kind and text begin at a column, if it is a hit.
    fn take(&mut self, id: i64, only_known: bool, said: &Row<'_>, column: usize) -> Result<(), Fault> {
        let key: i64 = said.get(column)?;
        if only_known && !self.sessions.contains_key(&row::session_of(key)) {
            return Ok(());
        }
        let text = said.get_ref(column + 2)?.as_str().unwrap_or("");
        if let Some(place) = first_place(text, self.words)
            && let Some(session) = self.session(row::session_of(key))?
        {
            let (snippet, at) = (snippet(text, place), id.cast_unsigned() >> ORDINAL_BITS);
            let highlights = highlights(&snippet, self.words);
            let kind = SearchKind::from_text(said.get_ref(column + 1)?.as_str().unwrap_or(""));
            self.found.push(SearchHit { session, seq: seq_of(key), at, snippet, highlights, kind });
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

/// A word of a query, in lower case.
struct Word {
    lower: String,
    /// Whether its characters have no cases, so that a text need not be written in lower case to find it.
    is_caseless: bool,
}

impl Word {
    fn of(word: &str) -> Word {
        // Marks are left out: the lower case of some letters is written with one.
        let has_no_case = |c: char| c.is_alphabetic() && c.to_lowercase().eq([c]) && c.to_uppercase().eq([c]);
        Word { lower: word.to_lowercase(), is_caseless: word.chars().all(has_no_case) }
    }

    /// The ordinal of the character of a text where it first occurs. `lower` is that text in lower case, once needed.
    fn place(&self, text: &str, lower: &mut Option<String>) -> Option<usize> {
        if text.is_ascii() {
            return place_in_ascii(text.as_bytes(), self.lower.as_bytes());
        }
        if self.is_caseless {
            return text.find(&self.lower).map(|at| text[..at].chars().count());
        }
        let lower = lower.get_or_insert_with(|| text.to_lowercase());
        lower.find(&self.lower).map(|at| character_at(text, at))
    }
}

/// Where a lower-case word begins in a text of ASCII only, without regard to case.
fn place_in_ascii(text: &[u8], word: &[u8]) -> Option<usize> {
    let (first, rest) = word.split_first()?;
    let end = text.len().checked_sub(rest.len())?;
    let is_there = |at: &usize| text[at + 1..at + 1 + rest.len()].eq_ignore_ascii_case(rest);
    memchr::memchr2_iter(*first, first.to_ascii_uppercase(), &text[..end]).find(is_there)
}

/// The ordinal of the character where the first of the words occurs, where all of them do.
fn first_place(text: &str, words: &[Word]) -> Option<usize> {
    let mut lower = None;
    let places = words.iter().map(|word| word.place(text, &mut lower)).collect::<Option<Vec<_>>>()?;
    places.into_iter().min()
}

/// Where the words occur in a snippet, in bytes of it.
fn highlights(snippet: &str, words: &[Word]) -> Vec<(u32, u32)> {
    let mut lower = String::new();
    // For each byte of the lower-case form, the character of the snippet it comes from: where that begins and ends.
    let mut origin: Vec<(usize, usize)> = Vec::new();
    for (at, c) in snippet.char_indices() {
        lower.extend(c.to_lowercase());
        origin.resize(lower.len(), (at, at + c.len_utf8()));
    }
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for word in words {
        let found = lower.match_indices(word.lower.as_str()).filter(|(_, found)| !found.is_empty());
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
