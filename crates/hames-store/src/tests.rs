//! Tests that need to reach inside: older schemas, and a disk without room.

use std::path::Path;

use hames_protocol::{Durability, Envelope, Event, LogError, SessionId, Settings, TextDone};
use rusqlite::Connection;

use crate::{Store, migrate, open};

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn answer(id: &SessionId, text: &str) -> Envelope {
    let event = Event::TextDone(TextDone { index: 0, text: text.into(), cut: None });
    Envelope { session: Some(id.clone()), ..Envelope::detached(7, event) }
}

fn empty_database(path: &Path) -> Connection {
    std::fs::File::create(path).unwrap();
    open::connect_writer(path).unwrap()
}

/// A home whose database stops at `version` and holds one session with one answer.
fn home_of(version: u32) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let db = empty_database(&home.path().join("hames.db"));
    migrate::migrate(&db, version, 1).unwrap();
    db.execute_batch(
        r#"INSERT INTO sessions (id, name, name_key, folder, created_at, updated_at, last_seq)
             VALUES ('old-id', 'old', 'old', '/work', 5, 7, 2);
           INSERT INTO events (key, v, at, type, body) VALUES
             ((1 << 32) + 1, 1, 5, 'session.created', '{"type":"session.created","name":"old","folder":"/work","settings":{}}'),
             ((1 << 32) + 2, 1, 7, 'text.done', '{"type":"text.done","index":0,"text":"an old answer"}')"#,
    )
    .unwrap();
    home
}

fn schema(db: &Connection) -> Vec<(String, Option<String>)> {
    let mut statement = db.prepare("SELECT name, sql FROM sqlite_schema ORDER BY name").unwrap();
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn a_database_of_every_older_version_is_upgraded_with_what_it_holds() {
    let fresh = tempfile::tempdir().unwrap();
    drop(Store::open(fresh.path()).unwrap());
    let fresh = schema(&Connection::open(fresh.path().join("hames.db")).unwrap());
    for version in 1..=migrate::HEAD {
        let home = home_of(version);
        let opened = Store::open(home.path()).unwrap();
        assert_eq!(opened.notices, Vec::<String>::new());
        let store = opened.store;
        let id = SessionId::from("old-id");
        assert_eq!(block_on(store.log().read(&id, 0, 9)).unwrap().len(), 2, "version {version}");
        assert_eq!(store.search("old answer", None, 9).unwrap().len(), 1, "version {version}");
        block_on(store.log().append(&id, 3, vec![answer(&id, "new")], Durability::Process)).unwrap();
        assert_eq!(store.check().unwrap().schema_version, migrate::HEAD);
        drop(store);
        assert_eq!(schema(&Connection::open(home.path().join("hames.db")).unwrap()), fresh, "version {version}");
        let backups = std::fs::read_dir(home.path().join("backups")).map_or(0, Iterator::count);
        assert_eq!(backups, usize::from(version < migrate::HEAD), "version {version}");
    }
}

#[test]
fn a_backup_is_a_whole_database_and_only_the_last_three_are_kept() {
    let home = home_of(1);
    let db = Connection::open(home.path().join("hames.db")).unwrap();
    let paths = crate::home::Home::create(home.path()).unwrap();
    for now in [8, 9, 10, 1_700_000_000_000, 1_700_000_000_001] {
        migrate::back_up(&db, &paths, now).unwrap();
    }
    let mut names: Vec<String> = std::fs::read_dir(paths.backups())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let kept = ["000000000000010", "001700000000000", "001700000000001"];
    assert_eq!(names, kept.map(|stamp| format!("hames-{stamp}-v1.db")));
    let backup = Connection::open(paths.backups().join(&names[0])).unwrap();
    let events: i64 = backup.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap();
    assert_eq!((migrate::version(&backup).unwrap(), events), (1, 2));
}

#[test]
fn a_newer_database_is_refused_and_not_touched() {
    for version in [migrate::HEAD + 1, migrate::HEAD + 40, u32::try_from(i32::MAX).unwrap()] {
        let home = home_of(migrate::HEAD);
        let path = home.path().join("hames.db");
        Connection::open(&path).unwrap().pragma_update(None, "user_version", version).unwrap();
        let before = std::fs::read(&path).unwrap();
        let LogError::Newer(text) = Store::open(home.path()).unwrap_err() else { panic!() };
        assert!(text.contains(&format!("version {version}")), "{text}");
        assert!(text.contains(&format!("up to {}", migrate::HEAD)), "{text}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}

#[test]
fn a_database_of_an_unreleased_build_is_refused() {
    let home = home_of(migrate::HEAD);
    let path = home.path().join("hames.db");
    Connection::open(&path).unwrap().execute("UPDATE migrations SET checksum = 'x' WHERE version = 1", []).unwrap();
    let error = Store::open(home.path()).unwrap_err();
    assert!(matches!(&error, LogError::Newer(text) if text.contains("unreleased build")), "{error}");
}

#[test]
fn a_full_disk_refuses_the_append_and_spoils_nothing() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap().store;
    let (session, _lease) = store.create("s", Path::new("/w"), Settings::default(), 1, "t").unwrap();
    let id = session.id;
    let limit_pages = |pages: i64| {
        let limit =
            move |db: &Connection| Ok(db.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?);
        store.inner.writer().run_blocking(limit).unwrap();
    };
    limit_pages(1);
    let append = |next, text: &str| {
        block_on(store.log().append(&id, next, vec![answer(&id, text)], Durability::Power)).map(|e| e.len())
    };
    let big = "x".repeat(100_000);
    for next in 2..6 {
        let error = append(next, &big).unwrap_err();
        assert_eq!(error, LogError::NoSpace(home.path().join("hames.db").display().to_string()), "append {next}");
        assert!(error.to_string().contains("is full; free some space"), "{error}");
        // Reading goes on, and nothing of the refused append is there.
        assert_eq!(block_on(store.log().read(&id, 0, 99)).unwrap().len() as u64, next - 1);
        assert!(matches!(
            block_on(store.blobs().put(&id, "x", hames_protocol::BlobSource::Bytes(vec![1; 60_000]))),
            Err(LogError::NoSpace(_))
        ));
        limit_pages(1_000_000);
        assert_eq!(append(next, &big), Ok(1));
        limit_pages(1);
    }
    assert_eq!(store.check().unwrap().integrity, Ok(()));
}

/// A disk that syncs when it is told to.
struct Disk {
    /// Hears of every sync that begins.
    begun: std::sync::mpsc::Receiver<()>,
    /// Lets the next one end, with this outcome.
    end: std::sync::mpsc::Sender<Result<(), LogError>>,
    syncs: std::sync::Arc<std::sync::atomic::AtomicUsize>,
}

impl Disk {
    fn under(store: &Store) -> Disk {
        let (began, begun) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel();
        let (began, ended) = (std::sync::Mutex::new(began), std::sync::Mutex::new(ended));
        let syncs = std::sync::Arc::<std::sync::atomic::AtomicUsize>::default();
        let count = syncs.clone();
        store.inner.writer().sync_by(std::sync::Arc::new(move || {
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            began.lock().unwrap().send(()).unwrap();
            ended.lock().unwrap().recv().unwrap_or(Ok(()))
        }));
        Disk { begun, end, syncs }
    }

    /// Waits until a sync has begun. Long enough for any machine, so that a sync that never comes fails the test.
    fn has_begun(&self) {
        self.begun.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
    }

    fn syncs(&self) -> usize {
        self.syncs.load(std::sync::atomic::Ordering::SeqCst)
    }
}

fn sessions(store: &Store, count: usize) -> Vec<SessionId> {
    let new = |n| store.create(&format!("s{n}"), Path::new("/w"), Settings::default(), 1, "t").unwrap().0.id;
    (0..count).map(new).collect()
}

#[test]
fn an_append_that_waits_for_the_disk_holds_up_no_other_session() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap().store;
    let ids = sessions(&store, 2);
    let disk = Disk::under(&store);
    let append = |n: usize, next, durability| {
        block_on(store.log().append(&ids[n], next, vec![answer(&ids[n], "x")], durability)).map(|done| done.len())
    };
    let (ended, has_ended) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| ended.send(append(0, 2, Durability::Power)).unwrap());
        disk.has_begun();
        // It is in the log, and who appended it still waits.
        assert_eq!(store.last_seq(&ids[0]), Ok(2));
        assert_eq!(append(1, 2, Durability::Process), Ok(1));
        assert_eq!(append(1, 3, Durability::PowerSoon), Ok(1));
        assert_eq!(append(0, 3, Durability::Process), Ok(1));
        let piece = hames_protocol::OpenBlock {
            kind: hames_protocol::OpenKind::Text,
            index: 0,
            name: None,
            text: "so far".into(),
        };
        block_on(store.log().save_open(&ids[1], vec![piece])).unwrap();
        assert!(has_ended.try_recv().is_err());
        disk.end.send(Ok(())).unwrap();
        assert_eq!(has_ended.recv().unwrap(), Ok(1));
        // The one that nobody waited for.
        disk.has_begun();
        disk.end.send(Ok(())).unwrap();
        block_on(store.log().settle()).unwrap();
    });
    assert_eq!(disk.syncs(), 2, "neither a plain append nor an open step syncs");
}

#[test]
fn one_sync_serves_all_who_committed_before_it_began_and_none_who_came_later() {
    const WAITING: usize = 20;
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap().store;
    let ids = sessions(&store, WAITING + 1);
    let disk = Disk::under(&store);
    let ended = std::sync::atomic::AtomicUsize::new(0);
    let append = |n: usize| {
        block_on(store.log().append(&ids[n], 2, vec![answer(&ids[n], "x")], Durability::Power)).unwrap();
        ended.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| append(WAITING));
        disk.has_begun();
        let waiting: Vec<_> = (0..WAITING).map(|n| scope.spawn(move || append(n))).collect();
        while !ids.iter().all(|id| store.last_seq(id) == Ok(2)) {
            std::thread::yield_now();
        }
        // Each has committed; that its sync is ordered is certain once the writer is free again.
        store.inner.writer().pending_syncs();
        disk.end.send(Ok(())).unwrap();
        disk.has_begun();
        assert!(ended.load(std::sync::atomic::Ordering::SeqCst) <= 1, "nobody is served by a sync that began before");
        disk.end.send(Ok(())).unwrap();
        waiting.into_iter().for_each(|append| append.join().unwrap());
    });
    assert_eq!(disk.syncs(), 2);
}

#[test]
fn a_sync_that_fails_fails_whoever_waits_and_everybody_after_and_takes_nothing_back() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap().store;
    let ids = sessions(&store, 1);
    let broken = LogError::Io("the disk is gone".into());
    let said = broken.clone();
    store.inner.writer().sync_by(std::sync::Arc::new(move || Err(said.clone())));
    let append = |next, durability| {
        block_on(store.log().append(&ids[0], next, vec![answer(&ids[0], "x")], durability)).map(|done| done.len())
    };
    assert_eq!(append(2, Durability::Power), Err(broken.clone()));
    assert_eq!(store.last_seq(&ids[0]), Ok(2), "it was committed");
    assert_eq!(append(3, Durability::Process), Ok(1));
    assert_eq!(block_on(store.log().settle()), Err(broken.clone()));
    assert_eq!(append(4, Durability::Power), Err(broken));
    // A refused append syncs nothing, and says why it was refused.
    assert!(matches!(append(9, Durability::Power), Err(LogError::Conflict { .. })));
}
