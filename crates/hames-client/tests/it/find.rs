//! Finding a server, starting one, and what is said of one that speaks otherwise.

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hames_client::{ClientError, Finder, Place, Starter};
use hames_protocol::api::{API_VERSION, ApiVersion};

use crate::server::Server;

fn home() -> (tempfile::TempDir, Place) {
    let home = tempfile::tempdir().unwrap();
    let place = Place::of(home.path());
    std::fs::DirBuilder::new().mode(0o700).create(place.folder()).unwrap();
    (home, place)
}

/// Starts a server in this process, as a command would, and counts how often.
fn starter(place: &Place, count: &Arc<AtomicUsize>) -> Starter {
    let (socket, count) = (place.sockets()[0].clone(), count.clone());
    let runtime = tokio::runtime::Handle::current();
    Arc::new(move || {
        count.fetch_add(1, Ordering::SeqCst);
        let socket = socket.clone();
        runtime.spawn(async move { Server::speaking(socket, API_VERSION) });
        Command::new("true").spawn()
    })
}

#[tokio::test]
async fn of_many_clients_that_find_no_server_one_starts_it() {
    let (_home, place) = home();
    let count = Arc::new(AtomicUsize::new(0));
    let finders: Vec<_> = (0..8).map(|_| Finder::new(place.clone()).starting(starter(&place, &count))).collect();
    assert!(matches!(finders[0].connect().await, Err(ClientError::Unreachable { .. })));
    let all: Vec<_> =
        finders.into_iter().map(|finder| tokio::spawn(async move { finder.connect_or_start().await })).collect();
    let mut started = 0;
    for one in all {
        let found = one.await.unwrap().unwrap();
        assert_eq!(found.health.pid, 7);
        started += usize::from(found.started);
    }
    assert_eq!((count.load(Ordering::SeqCst), started), (1, 1));
}

#[tokio::test]
async fn a_server_that_does_not_come_up_is_said_with_its_end() {
    let (_home, place) = home();
    let fails: Starter = Arc::new(|| Command::new("false").spawn());
    let error = Finder::new(place.clone()).starting(fails).connect_or_start().await.unwrap_err().to_string();
    assert!(error.contains("it ended with exit status: 1; look at `hames server logs`"), "{error}");
    let missing: Starter = Arc::new(|| Command::new("/no/such/hames").spawn());
    let error = Finder::new(place).starting(missing).connect_or_start().await.unwrap_err().to_string();
    assert!(error.contains("no server could be started: No such file"), "{error}");
}

#[tokio::test]
async fn a_server_that_dies_while_it_is_asked_who_it_is_counts_as_gone() {
    let (_home, place) = home();
    let dying = tokio::net::UnixListener::bind(&place.sockets()[0]).unwrap();
    let socket = place.sockets()[0].clone();
    tokio::spawn(async move {
        let (caller, _) = dying.accept().await.unwrap();
        std::fs::remove_file(socket).unwrap();
        drop((dying, caller));
    });
    let count = Arc::new(AtomicUsize::new(0));
    let found = Finder::new(place.clone()).starting(starter(&place, &count)).connect_or_start().await.unwrap();
    assert!(found.started);
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn versions_are_compared_and_an_older_server_is_replaced_only_where_it_is_idle() {
    let (_home, place) = home();
    let newer = ApiVersion { major: API_VERSION.major, minor: API_VERSION.minor + 1 };
    let older = Server::speaking(place.sockets()[0].clone(), API_VERSION);
    older.change(|world| world.busy = true);
    let count = Arc::new(AtomicUsize::new(0));
    let finder = Finder::new(place.clone()).starting(starter(&place, &count)).speaking(newer);

    let found = finder.connect_or_start().await.unwrap();
    let note = found.note().unwrap();
    assert!(note.contains("older (Hames 0.0.9, API 1.0; this is API 1.1) and busy"), "{note}");
    assert_eq!((count.load(Ordering::SeqCst), older.change(|world| world.stops)), (0, 1));

    older.change(|world| world.busy = false);
    let found = finder.connect_or_start().await.unwrap();
    assert!(found.started);
    assert_eq!(count.load(Ordering::SeqCst), 1);

    let (_home, place) = home();
    let other = ApiVersion { major: API_VERSION.major + 1, minor: 0 };
    let _server = Server::speaking(place.sockets()[0].clone(), other);
    let error = Finder::new(place).connect_or_start().await.unwrap_err();
    assert_eq!(error, ClientError::Incompatible { ours: API_VERSION, theirs: other });
}

#[test]
fn a_place_depends_on_the_home_alone_and_has_paths_that_fit() {
    let base = tempfile::tempdir().unwrap();
    let (home, link) = (base.path().join("home"), base.path().join("link"));
    std::fs::create_dir(&home).unwrap();
    std::os::unix::fs::symlink(&home, &link).unwrap();
    assert_eq!(Place::of(&home), Place::of(&link));
    for length in [10, 60, 90, 200] {
        let sockets = Place::of(&Path::new("/").join("h".repeat(length))).sockets();
        assert!(sockets.iter().all(|path| path.as_os_str().len() <= 103), "{sockets:?}");
        assert_eq!(sockets.len(), if length < 85 { 2 } else { 1 }, "{length}");
    }
    assert_ne!(Place::of(Path::new("/a")).sockets()[1], Place::of(Path::new("/b")).sockets()[1]);
}
