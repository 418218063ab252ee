//! A filesystem in a SQLite file of its own: for agents whose files should outlive them without touching a disk's tree.
//!
//! One row a file or folder, by its path; what a filesystem promises beyond rows is [`TableFs`]'s. The file has nothing to
//! do with the database of sessions and is marked, so that one is never taken for the other.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hames_tools::FsError;
use hames_workspace::files::{Node, Nodes, Rows, RowsMut, TableError, TableFs};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Row, TransactionBehavior};

/// Marks a file as one of these: `hmfs` in ASCII.
const APPLICATION_ID: i32 = 0x686d_6673;
/// The shape of its tables. A newer one is refused.
const VERSION: i32 = 1;
/// How long a piece of work waits for another process's.
const BUSY_LIMIT: Duration = Duration::from_secs(30);

const SCHEMA: &str = "
    CREATE TABLE nodes (
        path TEXT NOT NULL PRIMARY KEY,
        parent TEXT NOT NULL,
        name TEXT NOT NULL,
        mode INTEGER NOT NULL,
        modified_s INTEGER NOT NULL,
        modified_ns INTEGER NOT NULL,
        content BLOB
    );
    CREATE UNIQUE INDEX children ON nodes (parent, name);";

/// Columns that [`node`] reads, in its order; a folder has no content.
const NODE: &str = "content IS NULL, coalesce(length(content), 0), mode, modified_s, modified_ns";

/// Files in a SQLite database.
///
/// ```
/// use hames_tools::{Expect, FsProvider};
/// use hames_store::SqliteFs;
///
/// let folder = tempfile::tempdir()?;
/// let fs = hames_store::open_files(&folder.path().join("agent.db"))?;
/// let path = fs.resolve("notes/today.txt")?;
/// fs.write(&path, b"hello\n", &Expect::Absent, &mut |_| Ok(()))?;
/// let again: SqliteFs = hames_store::open_files(&folder.path().join("agent.db"))?;
/// assert_eq!(again.read(&path, 100)?, b"hello\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type SqliteFs = TableFs<SqliteNodes>;

/// Opens the files kept in the database at `path`, or begins with none.
pub fn open_files(path: &Path) -> Result<SqliteFs, FsError> {
    Ok(TableFs::over(SqliteNodes::open(path)?))
}

/// The rows of a [`SqliteFs`].
#[derive(Debug)]
pub struct SqliteNodes {
    db: Mutex<Connection>,
    path: PathBuf,
}

impl SqliteNodes {
    fn open(path: &Path) -> Result<Self, FsError> {
        let refused = |reason: String| FsError::Io { path: path.display().to_string(), reason };
        let sql = |error: rusqlite::Error| refused(explained(&error));
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut db = Connection::open_with_flags(path, flags).map_err(sql)?;
        db.busy_timeout(BUSY_LIMIT).map_err(sql)?;
        let number = |db: &Connection, pragma: &str| db.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
        let start = db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sql)?;
        let is_new = start.query_row("SELECT count(*) = 0 FROM sqlite_schema", [], |row| row.get(0)).map_err(sql)?;
        if is_new {
            start.execute_batch(SCHEMA).map_err(sql)?;
            start.pragma_update(None, "application_id", APPLICATION_ID).map_err(sql)?;
            start.pragma_update(None, "user_version", VERSION).map_err(sql)?;
        } else if number(&start, "application_id").map_err(sql)? != APPLICATION_ID {
            return Err(refused("this is a database of something else; give the files one of their own".into()));
        } else if number(&start, "user_version").map_err(sql)? != VERSION {
            return Err(refused("this was made by a newer version of Hames; use that one".into()));
        }
        start.commit().map_err(sql)?;
        db.pragma_update(None, "journal_mode", "wal").map_err(sql)?;
        db.pragma_update(None, "synchronous", "normal").map_err(sql)?;
        Ok(Self { db: Mutex::new(db), path: path.to_owned() })
    }

    fn db(&self) -> MutexGuard<'_, Connection> {
        self.db.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, error: rusqlite::Error) -> FsError {
        let path = self.path.display().to_string();
        match TableError::from(Sql(error)) {
            TableError::NoSpace => FsError::NoSpace { path },
            TableError::Other(reason) => FsError::Io { path, reason },
        }
    }
}

/// An error of SQLite on its way out.
struct Sql(rusqlite::Error);

impl From<Sql> for TableError {
    fn from(Sql(error): Sql) -> TableError {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => TableError::NoSpace,
            _ => TableError::Other(explained(&error)),
        }
    }
}

fn explained(error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => "another process is using it; try again".into(),
        Some(ErrorCode::NotADatabase) => "this is no database; give the files a file of their own".into(),
        Some(ErrorCode::DatabaseCorrupt) => format!("the database is damaged ({error}); restore it from a copy"),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            format!("the database cannot be opened for writing ({error}); check its folder and permissions")
        }
        _ => error.to_string(),
    }
}

/// The rows in one transaction.
struct Transaction<'t>(rusqlite::Transaction<'t>);

fn node(row: &Row<'_>, first: usize) -> rusqlite::Result<Node> {
    let number = |column: usize| row.get::<_, i64>(first + column).map(i64::cast_unsigned);
    Ok(Node {
        is_dir: row.get(first)?,
        size: number(1)?,
        mode: u32::try_from(number(2)?).unwrap_or(0),
        modified_ns: u128::from(number(3)?) * 1_000_000_000 + u128::from(number(4)?),
    })
}

impl Transaction<'_> {
    fn find(&self, path: &str) -> rusqlite::Result<Option<Node>> {
        let mut find = self.0.prepare_cached(&format!("SELECT {NODE} FROM nodes WHERE path = ?1"))?;
        find.query_row([path], |row| node(row, 0)).optional()
    }

    fn read(&self, path: &str) -> rusqlite::Result<Option<Vec<u8>>> {
        let mut read = self.0.prepare_cached("SELECT content FROM nodes WHERE path = ?1")?;
        Ok(read.query_row([path], |row| row.get::<_, Option<Vec<u8>>>(0)).optional()?.flatten())
    }

    fn below(&self, path: &str) -> rusqlite::Result<Vec<(String, Node)>> {
        let mut list =
            self.0.prepare_cached(&format!("SELECT name, {NODE} FROM nodes WHERE parent = ?1 ORDER BY name"))?;
        list.query_map([path], |row| Ok((row.get(0)?, node(row, 1)?)))?.collect()
    }

    fn write(&self, path: &str, content: Option<&[u8]>, mode: u32, modified_ns: u128) -> rusqlite::Result<()> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let seconds = i64::try_from(modified_ns / 1_000_000_000).unwrap_or(i64::MAX);
        let nanos = u32::try_from(modified_ns % 1_000_000_000).unwrap_or(0);
        let mut write = self.0.prepare_cached(
            "INSERT INTO nodes (path, parent, name, mode, modified_s, modified_ns, content)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (path) DO UPDATE SET mode = excluded.mode, modified_s = excluded.modified_s,
                modified_ns = excluded.modified_ns, content = excluded.content",
        )?;
        write.execute((path, parent, name, mode, seconds, nanos, content)).map(drop)
    }

    fn delete(&self, path: &str) -> rusqlite::Result<()> {
        self.0.prepare_cached("DELETE FROM nodes WHERE path = ?1")?.execute([path]).map(drop)
    }
}

impl Rows for Transaction<'_> {
    fn node(&self, path: &str) -> Result<Option<Node>, TableError> {
        self.find(path).map_err(|error| Sql(error).into())
    }
    fn content(&self, path: &str) -> Result<Vec<u8>, TableError> {
        self.read(path).map(Option::unwrap_or_default).map_err(|error| Sql(error).into())
    }
    fn children(&self, path: &str) -> Result<Vec<(String, Node)>, TableError> {
        self.below(path).map_err(|error| Sql(error).into())
    }
}

impl RowsMut for Transaction<'_> {
    fn put(&mut self, path: &str, content: Option<&[u8]>, mode: u32, modified_ns: u128) -> Result<(), TableError> {
        self.write(path, content, mode, modified_ns).map_err(|error| Sql(error).into())
    }
    fn remove(&mut self, path: &str) -> Result<(), TableError> {
        self.delete(path).map_err(|error| Sql(error).into())
    }
}

impl Nodes for SqliteNodes {
    fn look(&self, work: &mut dyn FnMut(&dyn Rows) -> Result<(), FsError>) -> Result<(), FsError> {
        let mut db = self.db();
        let transaction = db.transaction().map_err(|error| self.failed(error))?;
        work(&Transaction(transaction))
    }

    fn change(&self, work: &mut dyn FnMut(&mut dyn RowsMut) -> Result<(), FsError>) -> Result<(), FsError> {
        let mut db = self.db();
        let begun = db.transaction_with_behavior(TransactionBehavior::Immediate);
        let mut transaction = Transaction(begun.map_err(|error| self.failed(error))?);
        // Dropped on an error, it takes back what was done.
        work(&mut transaction)?;
        transaction.0.commit().map_err(|error| self.failed(error))
    }
}
