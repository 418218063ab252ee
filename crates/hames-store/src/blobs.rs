//! Blobs: exact content by its BLAKE3 hash, kept once however often it is put. Small ones are rows; large ones are
//! files `blobs/ab/cdef…`, complete and synced before the row that names them, and so before any event that does.
//!
//! A name belongs to its session: it resolves nowhere else.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hames_protocol::{BlobRef, BlobSource, LogError, SessionId};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension};
use tempfile::NamedTempFile;

use crate::fault::{Fault, io_error};
use crate::home::{Home, create_folder};
use crate::lease::{FileLock, Hold};
use crate::marks::Marks;
use crate::row::{int, uint};
use crate::sessions;

/// Content up to this many bytes is kept in the database: a file each would cost more than it holds.
pub(crate) const ROW_LIMIT: u64 = 64 * 1024;
/// The largest blob. Of anything larger the head and the tail are kept, and how much is missing.
pub(crate) const BLOB_LIMIT: u64 = 256 * 1024 * 1024;
/// Hexadecimal digits of a hash, and how many of them name the folder.
const HASH_DIGITS: usize = 64;
const FOLDER_DIGITS: usize = 2;
/// How long a put or a removal waits for the other.
const LOCK_LIMIT: Duration = Duration::from_secs(30);

/// Content that is safely in place, or small enough to travel.
pub(crate) struct Placed {
    blob: BlobRef,
    /// The content, where it is to be a row.
    body: Option<Vec<u8>>,
    /// Held until the row is committed, so that nobody takes the file for a leftover.
    _guard: Option<FileLock>,
}

impl Placed {
    pub(crate) fn blob(&self) -> &BlobRef {
        &self.blob
    }

    /// Writes the rows: content, reference, name. Runs inside a transaction.
    pub(crate) fn record(&self, db: &Connection, session: &SessionId) -> Result<(), Fault> {
        let number = sessions::number(db, session)?;
        let BlobRef { hash, bytes, dropped, name } = &self.blob;
        db.prepare_cached("INSERT OR IGNORE INTO blobs (hash, bytes, body) VALUES (?1, ?2, ?3)")?.execute((
            hash,
            int(*bytes),
            &self.body,
        ))?;
        db.prepare_cached("INSERT OR IGNORE INTO blob_refs (session, hash) VALUES (?1, ?2)")?
            .execute((number, hash))?;
        if let Some(name) = name {
            set_name(db, number, name, hash, *dropped)?;
        }
        Ok(())
    }
}

fn set_name(db: &Connection, number: i64, name: &str, hash: &str, dropped: u64) -> Result<(), Fault> {
    db.prepare_cached(
        "INSERT INTO blob_names (session, name, hash, dropped) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (session, name) DO UPDATE SET hash = excluded.hash, dropped = excluded.dropped",
    )?
    .execute((number, name, hash, int(dropped)))?;
    Ok(())
}

/// Gives a blob that the session refers to its name there.
pub(crate) fn name(db: &Connection, session: &SessionId, blob: &BlobRef) -> Result<(), Fault> {
    let Some(name) = &blob.name else { return Ok(()) };
    set_name(db, sessions::number(db, session)?, name, &blob.hash, blob.dropped)
}

/// Keeps files of blobs from being taken for leftovers while it lives.
pub(crate) struct Guard(#[allow(dead_code, reason = "held, never read")] FileLock);

/// Keeps files of blobs that are about to be put from being taken for leftovers.
pub(crate) fn guard(home: &Home) -> Result<Guard, LogError> {
    hold(home, Hold::Shared).map(Guard)
}

/// Puts the next `bytes` of a file into place as a blob of its own file. The caller holds a [`Guard`].
pub(crate) fn place_part(home: &Home, from: &mut File, bytes: u64) -> Result<Placed, LogError> {
    let folder = home.blobs();
    let failed = |e: io::Error| io_error("write a blob in", &folder, &e);
    let mut temp = NamedTempFile::new_in(&folder).map_err(failed)?;
    let mut hasher = blake3::Hasher::new();
    let bytes = copy_part(from, bytes, temp.as_file_mut(), &mut hasher).map_err(failed)?;
    temp.as_file().sync_data().map_err(failed)?;
    let hash = hasher.finalize().to_hex().to_string();
    let target = file_of(home, &hash);
    if !is_whole(&target, bytes) {
        make_parent(&target)?;
        temp.persist(&target).map_err(|e| failed(e.error))?;
    }
    Ok(Placed { blob: BlobRef { hash, bytes, dropped: 0, name: None }, body: None, _guard: None })
}

/// Hashes the content and, where it is large, puts its file into place.
pub(crate) fn place(home: &Home, name: &str, source: BlobSource) -> Result<Placed, LogError> {
    let name = (!name.is_empty()).then(|| name.to_owned());
    match source {
        BlobSource::Bytes(bytes) if bytes.len() as u64 <= ROW_LIMIT => Ok(in_row(bytes, 0, name)),
        BlobSource::Bytes(bytes) => {
            let size = bytes.len() as u64;
            write_file(home, &mut io::Cursor::new(bytes), size, 0, name)
        }
        BlobSource::File { path, dropped } => {
            let failed = |e: io::Error| io_error("read", &path, &e);
            let mut file = File::open(&path).map_err(failed)?;
            let size = file.metadata().map_err(failed)?.len();
            let placed = if size <= ROW_LIMIT {
                let mut bytes = Vec::new();
                file.take(ROW_LIMIT).read_to_end(&mut bytes).map_err(failed)?;
                in_row(bytes, dropped, name)
            } else if size <= BLOB_LIMIT {
                move_file(home, &path, file, size, dropped, name)?
            } else {
                write_file(home, &mut file, size, dropped, name)?
            };
            // What was copied is not needed any more; a leftover harms nobody.
            let _ = fs::remove_file(&path);
            Ok(placed)
        }
    }
}

pub(crate) fn in_row(bytes: Vec<u8>, dropped: u64, name: Option<String>) -> Placed {
    let hash = blake3::hash(&bytes).to_hex().to_string();
    let blob = BlobRef { hash, bytes: bytes.len() as u64, dropped, name };
    Placed { blob, body: Some(bytes), _guard: None }
}

/// Takes the file itself where it lies on the same disk, else a copy.
fn move_file(
    home: &Home,
    path: &Path,
    mut file: File,
    size: u64,
    dropped: u64,
    name: Option<String>,
) -> Result<Placed, LogError> {
    let failed = |e: io::Error| io_error("read", path, &e);
    let mut hasher = blake3::Hasher::new();
    let bytes = io::copy(&mut file, &mut hasher).map_err(failed)?;
    let hash = hasher.finalize().to_hex().to_string();
    let guard = hold(home, Hold::Shared)?;
    let target = file_of(home, &hash);
    if !is_whole(&target, bytes) {
        make_parent(&target)?;
        file.sync_data().map_err(|e| io_error("write", path, &e))?;
        make_private(path)?;
        if fs::rename(path, &target).is_err() {
            file.seek(SeekFrom::Start(0)).map_err(failed)?;
            drop(guard);
            return write_file(home, &mut file, size, dropped, name);
        }
    }
    Ok(Placed { blob: BlobRef { hash, bytes, dropped, name }, body: None, _guard: Some(guard) })
}

/// Writes content to a new file beside its place and renames it there.
fn write_file(
    home: &Home,
    content: &mut (impl Read + Seek),
    size: u64,
    dropped: u64,
    name: Option<String>,
) -> Result<Placed, LogError> {
    let folder = home.blobs();
    let failed = |e: io::Error| io_error("write a blob in", &folder, &e);
    create_folder(&folder).map_err(failed)?;
    let mut temp = NamedTempFile::new_in(&folder).map_err(failed)?;
    let mut hasher = blake3::Hasher::new();
    let left_out = size.saturating_sub(BLOB_LIMIT);
    let mut bytes = 0;
    if left_out > 0 {
        bytes += copy_part(content, BLOB_LIMIT / 2, temp.as_file_mut(), &mut hasher).map_err(failed)?;
        content.seek(SeekFrom::Start(BLOB_LIMIT / 2 + left_out)).map_err(failed)?;
    }
    bytes += copy_part(content, BLOB_LIMIT - bytes, temp.as_file_mut(), &mut hasher).map_err(failed)?;
    temp.as_file().sync_data().map_err(failed)?;
    let hash = hasher.finalize().to_hex().to_string();
    let guard = hold(home, Hold::Shared)?;
    let target = file_of(home, &hash);
    if !is_whole(&target, bytes) {
        make_parent(&target)?;
        temp.persist(&target).map_err(|e| failed(e.error))?;
    }
    let blob = BlobRef { hash, bytes, dropped: dropped + left_out, name };
    Ok(Placed { blob, body: None, _guard: Some(guard) })
}

fn copy_part(from: &mut impl Read, limit: u64, to: &mut File, hasher: &mut blake3::Hasher) -> io::Result<u64> {
    const PIECE: usize = 64 * 1024;
    let mut buffer = vec![0; PIECE];
    let mut from = from.take(limit);
    let mut copied = 0;
    loop {
        let n = from.read(&mut buffer)?;
        if n == 0 {
            return Ok(copied);
        }
        hasher.update(&buffer[..n]);
        to.write_all(&buffer[..n])?;
        copied += n as u64;
    }
}

fn is_whole(path: &Path, bytes: u64) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.len() == bytes)
}

fn make_parent(path: &Path) -> Result<(), LogError> {
    let folder = path.parent().unwrap_or(path);
    create_folder(folder).map_err(|e| io_error("create", folder, &e))
}

fn make_private(path: &Path) -> Result<(), LogError> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(|e| io_error("write", path, &e))
}

fn hold(home: &Home, hold: Hold) -> Result<FileLock, LogError> {
    let path = home.blob_lock();
    let lock = FileLock::open(&path)?;
    match lock.take(hold, LOCK_LIMIT)? {
        true => Ok(lock),
        false => Err(LogError::Locked(format!("{} is held by another hames process; try again", path.display()))),
    }
}

/// Up to `limit` bytes from `offset` of a blob.
pub(crate) fn get(db: &Connection, home: &Home, hash: &str, offset: u64, limit: u64) -> Result<Vec<u8>, Fault> {
    let missing = |why: String| LogError::Damaged(format!("the output kept as blob {hash} cannot be read: {why}"));
    if !is_hash(hash) {
        return Err(missing("that is not the hash of a blob".into()).into());
    }
    let mut statement =
        db.prepare_cached("SELECT bytes, body IS NULL, substr(body, ?2, ?3) FROM blobs WHERE hash = ?1")?;
    let found = statement
        .query_row((hash, int(offset.saturating_add(1)), int(limit)), |row| {
            let body: Option<Vec<u8>> = row.get(2)?;
            Ok((uint(row, 0), row.get::<_, bool>(1)?, body.unwrap_or_default()))
        })
        .optional()?;
    match found {
        None => Err(missing("there is none of that hash".into()).into()),
        Some((_, false, body)) => Ok(body),
        Some((bytes, true, _)) => {
            let path = file_of(home, hash);
            let room = limit.min(bytes.saturating_sub(offset));
            if room == 0 {
                return Ok(vec![]);
            }
            read_file(&path, offset, room).map_err(|e| missing(format!("{}: {e}", path.display())).into())
        }
    }
}

fn read_file(path: &Path, offset: u64, limit: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What a name stands for in its session.
pub(crate) fn named(db: &Connection, session: &SessionId, name: &str) -> Result<Option<BlobRef>, Fault> {
    let Some((number, _)) = sessions::position(db, session)? else { return Ok(None) };
    let mut statement = db.prepare_cached(
        "SELECT b.hash, b.bytes, n.dropped FROM blob_names n JOIN blobs b ON b.hash = n.hash
         WHERE n.session = ?1 AND n.name = ?2",
    )?;
    let blob = statement.query_row((number, name), |row| {
        Ok(BlobRef { hash: row.get(0)?, bytes: uint(row, 1), dropped: uint(row, 2), name: Some(name.to_owned()) })
    });
    Ok(blob.optional()?)
}

/// Removes a session's references, and the rows of blobs that nobody refers to any more. Gives the hashes whose files
/// may now be removed by [`sweep`]. Runs inside a transaction.
pub(crate) fn forget(db: &Connection, number: i64) -> Result<Vec<String>, Fault> {
    forget_but(db, number, &Marks::default())
}

/// The same for a session's references and names that `kept` does not hold.
pub(crate) fn forget_but(db: &Connection, number: i64, kept: &Marks) -> Result<Vec<String>, Fault> {
    let (hashes, names) = (kept.hashes_as_json(), kept.names_as_json());
    let orphans = "SELECT hash FROM blob_refs r WHERE session = ?1 AND hash NOT IN (SELECT value FROM json_each(?2))
                   AND NOT EXISTS (SELECT 1 FROM blob_refs o WHERE o.hash = r.hash AND o.session <> ?1)";
    let removed: Vec<(String, bool)> = {
        let sql = format!("DELETE FROM blobs WHERE hash IN ({orphans}) RETURNING hash, body IS NULL");
        let mut statement = db.prepare(&sql)?;
        let rows = statement.query_map((number, &hashes), |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<Result<_, _>>()?
    };
    let gone = "session = ?1 AND hash NOT IN (SELECT value FROM json_each(?2))";
    db.execute(&format!("DELETE FROM blob_refs WHERE {gone}"), (number, &hashes))?;
    let gone = format!("{gone} OR session = ?1 AND name NOT IN (SELECT value FROM json_each(?3))");
    db.execute(&format!("DELETE FROM blob_names WHERE {gone}"), (number, &hashes, &names))?;
    Ok(removed.into_iter().filter_map(|(hash, is_file)| is_file.then_some(hash)).collect())
}

/// Lets session `to` refer to what `from` refers to, as far as `marks` name it.
pub(crate) fn share(db: &Connection, from: i64, to: i64, marks: &Marks) -> Result<(), Fault> {
    let (hashes, names) = (marks.hashes_as_json(), marks.names_as_json());
    db.execute(
        "INSERT OR IGNORE INTO blob_refs (session, hash)
         SELECT ?2, hash FROM blob_refs WHERE session = ?1 AND hash IN (SELECT value FROM json_each(?3))",
        (from, to, &hashes),
    )?;
    db.execute(
        "INSERT OR IGNORE INTO blob_names (session, name, hash, dropped)
         SELECT ?2, name, hash, dropped FROM blob_names
         WHERE session = ?1 AND name IN (SELECT value FROM json_each(?3))",
        (from, to, &names),
    )?;
    Ok(())
}

/// Hash and size of the blobs a session refers to, as far as `marks` name them.
pub(crate) fn referred(db: &Connection, number: i64, marks: &Marks) -> Result<Vec<(String, u64)>, Fault> {
    let mut statement = db.prepare_cached(
        "SELECT b.hash, b.bytes FROM blob_refs r JOIN blobs b ON b.hash = r.hash
         WHERE r.session = ?1 AND r.hash IN (SELECT value FROM json_each(?2)) ORDER BY b.hash",
    )?;
    let rows = statement.query_map((number, marks.hashes_as_json()), |row| Ok((row.get(0)?, uint(row, 1))))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The highest number among the names of a session's outputs; 0 where there is none.
pub(crate) fn last_output(db: &Connection, number: i64) -> Result<u32, Fault> {
    let mut statement = db.prepare_cached("SELECT name FROM blob_names WHERE session = ?1")?;
    let names = statement.query_map([number], |row| row.get::<_, String>(0))?;
    let numbers = names.filter_map(|name| name.ok()?.strip_prefix("out-")?.parse().ok());
    Ok(numbers.max().unwrap_or(0))
}

/// Removes files whose rows are gone. Nobody can be putting the same content meanwhile: the lock keeps puts out.
pub(crate) fn sweep(db: &Connection, home: &Home, hashes: &[String]) -> Result<(), Fault> {
    if hashes.is_empty() {
        return Ok(());
    }
    let _guard = hold(home, Hold::Exclusive)?;
    for hash in hashes {
        let in_use = db.prepare_cached("SELECT 1 FROM blobs WHERE hash = ?1")?.exists([hash])?;
        if !in_use && is_hash(hash) {
            // A file that stays behind costs room and nothing else.
            let _ = fs::remove_file(file_of(home, hash));
        }
    }
    Ok(())
}

/// Hashes of the blobs that no session refers to.
pub(crate) fn unreferred(db: &Connection) -> Result<HashSet<String>, Fault> {
    let mut statement =
        db.prepare("SELECT hash FROM blobs b WHERE NOT EXISTS (SELECT 1 FROM blob_refs r WHERE r.hash = b.hash)")?;
    let rows = statement.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Those of `hashes` that no event of any session names. Reads every event.
pub(crate) fn named_by_none(db: &Connection, mut hashes: HashSet<String>) -> Result<Vec<String>, Fault> {
    let mut statement = db.prepare("SELECT body FROM events ORDER BY key")?;
    let mut rows = statement.query([])?;
    let mut marks = Marks::default();
    while let Some(row) = rows.next()? {
        if let ValueRef::Text(body) | ValueRef::Blob(body) = row.get_ref(0)? {
            marks.add(body);
            for named in marks.hashes.drain() {
                hashes.remove(&named);
            }
            marks.names.clear();
        }
    }
    Ok(hashes.into_iter().collect())
}

/// Removes rows of blobs, unless somebody refers to them by now. Gives how many.
pub(crate) fn remove_rows(db: &Connection, hashes: &[String]) -> Result<u64, Fault> {
    let mut delete =
        db.prepare("DELETE FROM blobs WHERE hash = ?1 AND NOT EXISTS (SELECT 1 FROM blob_refs r WHERE r.hash = ?1)")?;
    let mut removed = 0;
    for hash in hashes {
        removed += delete.execute([hash])? as u64;
    }
    Ok(removed)
}

/// Removes every file that is no blob's any more. Gives how many.
pub(crate) fn sweep_all(db: &Connection, home: &Home) -> Result<u64, Fault> {
    let _guard = hold(home, Hold::Exclusive)?;
    let mut removed = 0;
    for (hash, _) in files_under(&home.blobs()) {
        let in_use = db.prepare_cached("SELECT 1 FROM blobs WHERE hash = ?1 AND body IS NULL")?.exists([&hash])?;
        if !in_use && fs::remove_file(file_of(home, &hash)).is_ok() {
            removed += 1;
        }
    }
    Ok(removed)
}

fn is_hash(hash: &str) -> bool {
    hash.len() == HASH_DIGITS && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn file_of(home: &Home, hash: &str) -> PathBuf {
    let (folder, rest) = hash.split_at(FOLDER_DIGITS);
    home.blobs().join(folder).join(rest)
}

/// Hash and size of every blob that is a file.
pub(crate) fn files_under(blobs: &Path) -> Vec<(String, i64)> {
    let entries = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten();
    let mut found = Vec::new();
    for folder in entries(blobs) {
        for file in entries(&folder.path()) {
            let hash = format!("{}{}", folder.file_name().to_string_lossy(), file.file_name().to_string_lossy());
            if let (true, Ok(meta)) = (is_hash(&hash), file.metadata()) {
                found.push((hash, int(meta.len())));
            }
        }
    }
    found
}
