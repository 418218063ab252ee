//! A session from lines of JSON, as an export writes them, under its own id or a new one where that is taken.
//!
//! The lines are whatever somebody sent: every one is checked before anything of them is in the database, each refusal
//! names its line, and no path, name or id from them reaches the disk. What they say was allowed, proposed, being applied
//! or waiting holds nowhere: see `session.imported`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hames_protocol::closing::OpenEnd;
use hames_protocol::{
    BlobRef, ENVELOPE_VERSION, Envelope, Event, LogError, Outside, SessionId, SessionImported, SessionState,
};
use rusqlite::Connection;
use serde_json::Value;

use crate::blobs::{self, Placed};
use crate::cut::envelope;
use crate::export::{PIECE, Piece};
use crate::fault::{Fault, io_error};
use crate::marks::Marks;
use crate::row::{EventRow, SEQ_MAX};
use crate::{Lease, SessionInfo, Store, log, sessions};

/// Bytes of one line: far more than any event has that Hames wrote.
const LINE_LIMIT: u64 = 32 << 20;
/// Bytes of all blobs of one import.
const BLOBS_LIMIT: u64 = 4 << 30;
/// Times and numbers above this are not exact in JSON everywhere.
const NUMBER_LIMIT: u64 = 1 << 53;
const UUID_LENGTH: usize = 36;

/// What an import brought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// The session it became.
    pub session: SessionInfo,
    /// Events that were read.
    pub events: u64,
    /// Blobs that were read.
    pub blobs: u64,
    /// Outputs that events name and that did not come along: Recall finds them no more.
    pub missing_outputs: u64,
}

impl Store {
    /// Reads a session into this home, where it belongs to `folder` from then on. The name is that of the file or `name`,
    /// made unique in the folder.
    pub fn import(
        &self,
        lines: &mut dyn BufRead,
        folder: &Path,
        name: Option<&str>,
        at_ms: u64,
        holder: &str,
    ) -> Result<Imported, LogError> {
        let folder = sessions::existing_folder(folder)?;
        let mut reading = Reading::new(self)?;
        reading.read(lines)?;
        let wanted = sessions::clean_name(name.unwrap_or(&reading.state.name));
        let id = match reading.id.take().filter(is_uuid) {
            Some(id) if self.session(&id)?.is_none() => id,
            _ => SessionId::generate(),
        };
        let lease = Lease::take(&self.inner.home().session_lock(&id), "the new session", holder)?;
        let mut plan = reading.finish(self, &id, wanted, folder, at_ms)?;
        let (events, blobs, missing) = (plan.events, plan.blobs.len() as u64, plan.missing_outputs);
        let info = self.inner.writer().run_blocking(move |db| plan.carry_out(db, &id))?;
        drop(lease);
        Ok(Imported { session: info.checked(), events, blobs, missing_outputs: missing })
    }
}

/// Ids name files, and two of those belong to the store: only the usual form is taken over.
fn is_uuid(id: &SessionId) -> bool {
    let id = id.as_str();
    id.len() == UUID_LENGTH
        && id.bytes().enumerate().all(|(at, b)| match at {
            8 | 13 | 18 | 23 => b == b'-',
            _ => matches!(b, b'0'..=b'9' | b'a'..=b'f'),
        })
}

/// A blob whose pieces are arriving.
struct Open {
    hash: String,
    bytes: u64,
    begins: u64,
    got: u64,
    hasher: blake3::Hasher,
}

/// What was read so far. Events and blobs lie in files without a name, which go with this value.
struct Reading {
    line: u64,
    id: Option<SessionId>,
    first_id: Option<SessionId>,
    last_seq: u64,
    count: u64,
    state: SessionState,
    end: OpenEnd,
    marks: Marks,
    outputs: HashMap<String, BlobRef>,
    events: BufWriter<File>,
    content: BufWriter<File>,
    content_bytes: u64,
    open: Option<Open>,
    /// Where each whole blob lies in `content`.
    whole: HashMap<String, (u64, u64)>,
}

impl Reading {
    fn new(store: &Store) -> Result<Reading, LogError> {
        let root = store.inner.home().root().to_owned();
        let spool = || {
            let file = tempfile::tempfile_in(&root).map_err(|e| io_error("create a file in", &root, &e))?;
            Ok::<_, LogError>(BufWriter::new(file))
        };
        Ok(Reading {
            line: 0,
            id: None,
            first_id: None,
            last_seq: 0,
            count: 0,
            state: SessionState::default(),
            end: OpenEnd::default(),
            marks: Marks::default(),
            outputs: HashMap::new(),
            events: spool()?,
            content: spool()?,
            content_bytes: 0,
            open: None,
            whole: HashMap::new(),
        })
    }

    fn read(&mut self, lines: &mut dyn BufRead) -> Result<(), LogError> {
        let mut line = Vec::new();
        loop {
            line.clear();
            self.line += 1;
            let read = lines.take(LINE_LIMIT + 1).read_until(b'\n', &mut line);
            let read =
                read.map_err(|e| LogError::Io(format!("the import was broken off at line {}: {e}", self.line)))?;
            if read == 0 {
                break;
            }
            if read as u64 > LINE_LIMIT {
                return Err(self.refuse(&format!("is longer than {} MB", LINE_LIMIT >> 20)));
            }
            if !line.trim_ascii().is_empty() {
                self.take(line.trim_ascii())?;
            }
        }
        if let Some(open) = &self.open {
            return Err(
                self.refuse(&format!("is missing: blob {} ends after {} of {} bytes", open.hash, open.got, open.bytes))
            );
        }
        if self.count == 0 {
            return Err(LogError::Invalid(
                "there is no session in it; give a file that `hames sessions export` wrote".into(),
            ));
        }
        Ok(())
    }

    fn refuse(&self, why: &str) -> LogError {
        LogError::Invalid(format!("line {} {why}; nothing was imported", self.line))
    }

    fn take(&mut self, line: &[u8]) -> Result<(), LogError> {
        let value: Value = match serde_json::from_slice(line) {
            Ok(value) => value,
            Err(e) => return Err(self.refuse(&format!("is no JSON ({e})"))),
        };
        match (value.get("event").is_some(), value.get("blob").is_some()) {
            (true, false) => self.take_event(line),
            (false, true) => self.take_piece(value),
            _ => Err(self.refuse("is neither an event nor a piece of a blob")),
        }
    }

    fn take_event(&mut self, line: &[u8]) -> Result<(), LogError> {
        let envelope: Envelope = match serde_json::from_slice(line) {
            Ok(envelope) => envelope,
            Err(e) => return Err(self.refuse(&format!("is no event ({e})"))),
        };
        if let Err(why) = self.check(&envelope) {
            return Err(self.refuse(&why));
        }
        self.last_seq = envelope.seq.unwrap_or_default();
        self.count += 1;
        self.state.apply(&envelope);
        self.end.apply(&envelope);
        let written =
            serde_json::to_vec(&envelope).map_err(|e| self.refuse(&format!("cannot be written again ({e})")))?;
        self.marks.add(&written);
        if let Event::ToolDone(hames_protocol::ToolDone { blob: Some(blob), .. })
        | Event::ToolError(hames_protocol::ToolError { blob: Some(blob), .. }) = &envelope.event
            && let Some(name) = &blob.name
        {
            self.outputs.insert(name.clone(), blob.clone());
        }
        let spooled = self.events.write_all(&written).and_then(|()| self.events.write_all(b"\n"));
        spooled.map_err(|e| spool_error(&e))
    }

    fn check(&mut self, envelope: &Envelope) -> Result<(), String> {
        if self.open.is_some() || !self.whole.is_empty() {
            return Err("is an event behind a blob".into());
        }
        if envelope.v != ENVELOPE_VERSION {
            return Err(format!(
                "has version {}, and this hames reads {ENVELOPE_VERSION}; use a newer one",
                envelope.v
            ));
        }
        let Some(seq) = envelope.seq else { return Err("has no seq: it is no event of a log".into()) };
        if seq <= self.last_seq || seq >= SEQ_MAX {
            return Err(format!("has seq {seq} behind {}", self.last_seq));
        }
        let is_created = matches!(envelope.event, Event::SessionCreated(_));
        let is_damaged = envelope.event.type_name() == "damaged";
        if is_created != (seq == 1) && !(seq == 1 && is_damaged) {
            return Err("is not where session.created stands: that is the first event, and only that".into());
        }
        if self.last_seq == 0 && seq != 1 {
            return Err("is not the first event of a session".into());
        }
        if self.last_seq > 0 && envelope.session != self.first_id {
            return Err("belongs to another session".into());
        }
        if self.last_seq == 0 {
            self.first_id.clone_from(&envelope.session);
            self.id.clone_from(&envelope.session);
        }
        if !envelope.event.is_durable() {
            return Err(format!("is a {} event, which no log holds", envelope.event.type_name()));
        }
        if envelope.event.is_damaged() && !is_damaged {
            return Err(format!("is a {} event whose fields cannot be read", envelope.event.type_name()));
        }
        if envelope.at > NUMBER_LIMIT {
            return Err("has a time that cannot be".into());
        }
        Ok(())
    }

    fn take_piece(&mut self, value: Value) -> Result<(), LogError> {
        let piece: Piece = match serde_json::from_value(value) {
            Ok(piece) => piece,
            Err(e) => return Err(self.refuse(&format!("is no piece of a blob ({e})"))),
        };
        let content = match BASE64_STANDARD.decode(&piece.base64) {
            Ok(content) if content.len() as u64 <= PIECE => content,
            Ok(_) => return Err(self.refuse(&format!("holds more than {PIECE} bytes of a blob"))),
            Err(e) => return Err(self.refuse(&format!("is no base64 ({e})"))),
        };
        let mut open = match self.open.take() {
            Some(open) => open,
            None => self.begin(&piece)?,
        };
        if piece.blob != open.hash || piece.bytes != open.bytes || piece.at != open.got {
            return Err(self.refuse("is not the next piece of its blob"));
        }
        open.got += content.len() as u64;
        if open.got > open.bytes || (content.is_empty() && open.got < open.bytes) {
            return Err(self.refuse("does not fit the size of its blob"));
        }
        open.hasher.update(&content);
        self.content.write_all(&content).map_err(|e| spool_error(&e))?;
        self.content_bytes += content.len() as u64;
        if open.got < open.bytes {
            self.open = Some(open);
        } else if open.hasher.finalize().to_hex().as_str() == open.hash {
            self.whole.insert(open.hash, (open.begins, open.bytes));
        } else {
            return Err(self.refuse("ends a blob whose content is not what its hash says"));
        }
        Ok(())
    }

    fn begin(&self, piece: &Piece) -> Result<Open, LogError> {
        if !self.marks.hashes.contains(&piece.blob) {
            return Err(self.refuse("is of a blob that no event before it names"));
        }
        if self.whole.contains_key(&piece.blob) {
            return Err(self.refuse("is of a blob that came already"));
        }
        if piece.bytes > blobs::BLOB_LIMIT || self.content_bytes.saturating_add(piece.bytes) > BLOBS_LIMIT {
            return Err(self.refuse(&format!(
                "is of a blob too large: {} MB each and {} GB in all are taken",
                blobs::BLOB_LIMIT >> 20,
                BLOBS_LIMIT >> 30
            )));
        }
        let hasher = blake3::Hasher::new();
        Ok(Open { hash: piece.blob.clone(), bytes: piece.bytes, begins: self.content_bytes, got: 0, hasher })
    }

    fn finish(self, store: &Store, id: &SessionId, wanted: String, folder: String, at: u64) -> Result<Plan, LogError> {
        let spooled = |file: BufWriter<File>| file.into_inner().map_err(|e| spool_error(e.error()));
        let (events, mut content) = (spooled(self.events)?, spooled(self.content)?);
        let guard = blobs::guard(store.inner.home())?;
        let mut small = Vec::new();
        let mut large = Vec::new();
        let mut order: Vec<(&String, &(u64, u64))> = self.whole.iter().collect();
        order.sort_by_key(|(_, (begins, _))| *begins);
        for (hash, (begins, bytes)) in order {
            if *bytes <= blobs::ROW_LIMIT {
                small.push((hash.clone(), *begins, *bytes));
                continue;
            }
            content.seek(SeekFrom::Start(*begins)).map_err(|e| spool_error(&e))?;
            large.push(blobs::place_part(store.inner.home(), &mut content, *bytes)?);
        }
        let outputs: Vec<BlobRef> = self.outputs.into_values().collect();
        let (here, missing): (Vec<_>, Vec<_>) =
            outputs.into_iter().partition(|blob| self.whole.contains_key(&blob.hash));
        let outside = Outside {
            folder,
            settings: self.state.settings.clone(),
            todos: self.state.todos.clone(),
            outputs: self.state.blobs.max(self.marks.last_output()),
            ..Outside::default()
        };
        Ok(Plan {
            from: self.first_id.unwrap_or_else(|| id.clone()),
            wanted,
            outside,
            at,
            events: self.count,
            spool: events,
            content,
            blobs: small
                .iter()
                .map(|(hash, ..)| hash.clone())
                .chain(large.iter().map(|p| p.blob().hash.clone()))
                .collect(),
            small,
            large,
            outputs: here,
            missing_outputs: missing.len() as u64,
            last_seq: self.last_seq,
            closing: self.end.close(id, "import", at),
            _guard: guard,
        })
    }
}

fn spool_error(error: &std::io::Error) -> LogError {
    io_error("write", Path::new("a scratch file of the import"), error)
}

/// Everything checked and in place but the rows.
struct Plan {
    from: SessionId,
    wanted: String,
    outside: Outside,
    at: u64,
    events: u64,
    spool: File,
    content: File,
    blobs: Vec<String>,
    /// Hash, offset in `content` and size of blobs that become rows.
    small: Vec<(String, u64, u64)>,
    large: Vec<Placed>,
    outputs: Vec<BlobRef>,
    missing_outputs: u64,
    last_seq: u64,
    closing: Vec<Envelope>,
    _guard: blobs::Guard,
}

impl Plan {
    fn carry_out(&mut self, db: &Connection, id: &SessionId) -> Result<SessionInfo, Fault> {
        let name = sessions::free_name(db, &self.outside.folder, &self.wanted)?;
        let number = sessions::insert(db, id, &name, &self.outside.folder, self.at)?;
        self.insert_events(db, number)?;
        self.insert_blobs(db, id)?;
        sessions::set_last_seq(db, number, self.last_seq)?;
        let outside = Outside { name, ..self.outside.clone() };
        let imported = SessionImported { from: self.from.clone(), outside: Some(Box::new(outside)) };
        let mut events = vec![envelope(id, self.at, imported.into())];
        events.extend(self.closing.iter().cloned());
        log::append_all(db, id, self.last_seq + 1, &events)?;
        sessions::refold(db, number)?;
        sessions::get(db, id)?.ok_or_else(|| LogError::NoSession(id.clone()).into())
    }

    fn insert_events(&mut self, db: &Connection, number: i64) -> Result<(), Fault> {
        self.spool.seek(SeekFrom::Start(0)).map_err(|e| spool_error(&e))?;
        for line in BufReader::new(&self.spool).lines() {
            let line = line.map_err(|e| spool_error(&e))?;
            let envelope: Envelope =
                serde_json::from_str(&line).map_err(|e| LogError::Io(format!("a scratch file changed: {e}")))?;
            EventRow::of(&envelope)?.insert(db, number, envelope.seq.unwrap_or_default())?;
        }
        Ok(())
    }

    fn insert_blobs(&mut self, db: &Connection, id: &SessionId) -> Result<(), Fault> {
        for (hash, begins, bytes) in &self.small {
            let mut body = Vec::new();
            self.content.seek(SeekFrom::Start(*begins)).map_err(|e| spool_error(&e))?;
            (&self.content).take(*bytes).read_to_end(&mut body).map_err(|e| spool_error(&e))?;
            let placed = blobs::in_row(body, 0, None);
            debug_assert_eq!(&placed.blob().hash, hash, "what was checked is what is kept");
            placed.record(db, id)?;
        }
        for placed in &self.large {
            placed.record(db, id)?;
        }
        for output in &self.outputs {
            blobs::name(db, id, output)?;
        }
        Ok(())
    }
}
