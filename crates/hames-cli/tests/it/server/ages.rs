//! Servers of another age: one that speaks another version of the API, and one that is in the way of a database that has
//! to be brought into order.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use hames_client::Place;
use hames_protocol::api::{API_VERSION, ApiVersion, Health};
use hames_protocol::{Delivery, Mode};
use hames_testkit::{Gate, Script, Turn};
use serde_json::json;

use super::{Server, client, is_alive, message, session, wait};
use crate::kit::{Ended, PATIENCE, User, until};

/// The home of the server that is played.
const PLAYED: &str = "HAMES_TEST_PLAYED_HOME";

/// A process that holds the server's lock of this home and says that it speaks another API.
fn foreign(user: &User) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "server::ages::helper_is_a_server_of_another_age", "--ignored", "--nocapture"])
        .env(PLAYED, user.home())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("READY")));
    child
}

#[test]
#[ignore = "a process started by the tests here"]
fn helper_is_a_server_of_another_age() {
    let Some(home) = std::env::var_os(PLAYED) else { return };
    let place = Place::of(&PathBuf::from(home));
    DirBuilder::new().mode(0o700).recursive(true).create(place.folder()).unwrap();
    let mut lock =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(place.server_lock()).unwrap();
    lock.try_lock().unwrap();
    let pid = std::process::id();
    lock.write_all(json!({"pid": pid, "version": "9.0.0"}).to_string().as_bytes()).unwrap();
    let listener = UnixListener::bind(&place.sockets()[0]).unwrap();
    println!("\nREADY");
    let api = ApiVersion { major: API_VERSION.major + 1, minor: 0 };
    let health = Health { name: "hames".into(), version: "9.0.0".into(), api, pid, started_at: 1 };
    let body = serde_json::to_string(&health).unwrap();
    // Until it is ended.
    for caller in listener.incoming() {
        let mut caller = caller.unwrap();
        let _ = caller.read(&mut [0; 4096]);
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        let _ = caller.write_all([head.as_bytes(), body.as_bytes()].concat().as_slice());
    }
}

#[test]
fn a_server_that_speaks_another_api_is_named_and_ended_when_it_is_told_to_be() {
    let user = User::new();
    let mut server = foreign(&user);
    let pid = server.id();
    for (args, says) in [
        (&["server", "status"][..], format!("process {pid}: the running server speaks version 2.0")),
        (&["server", "status", "--json"], format!("\"pid\":{pid}")),
        (&["server", "stop"], "end it with `hames server stop --now`".into()),
        (&["server", "stop", "--when-idle"], "cannot be asked whether anything runs".into()),
        (&["server", "restart"], "end it with `hames server stop --now`".into()),
    ] {
        let ended = user.run(args);
        assert_eq!(ended.code, 3, "{args:?} {ended:?}");
        assert!(format!("{}{}", ended.out, ended.err).contains(&says), "{args:?} {ended:?}");
        assert!(is_alive(pid), "{args:?}");
    }
    let stopped = user.ok(&["server", "stop", "--now"]);
    assert!(stopped.out.contains(&format!("has stopped (process {pid})")), "{stopped:?}");
    server.wait().unwrap();
    assert_eq!(user.run(&["server", "status"]).code, 3);
    // And the place is free for one of this age.
    let _server = Server::start(&user, &[]);
}

#[test]
fn a_server_gives_way_to_a_repair_where_nothing_runs_in_it_and_is_named_where_something_does() {
    let gate = Gate::new();
    let script = Script::new()
        .turn(Turn::text("The first is done."))
        .turn(Turn::text("slow").gate_head(gate.clone()))
        .respond(|_| Turn::text("It goes on."));
    let (user, provider) = User::with(script);
    user.ok(&["run", "-s", "s", "first"]);
    let path = user.home().join("hames.db");
    let database = OpenOptions::new().write(true).open(&path).unwrap();
    let busy = Server::start(&user, &[]);
    wait(async {
        let client = client(&user).await;
        let id = session(&client, &user.project(), "busy", Mode::Analyze).await;
        message(&client, &id, "go", Delivery::Queue).await;
    });
    assert!(provider.has_requests_within(2, PATIENCE));
    // For whoever opens it now, nothing but a beginning is left.
    let whole = std::fs::read(&path).unwrap();
    database.set_len(100).unwrap();
    let refused = user.run(&["run", "-s", "s", "again"]);
    database.write_all_at(&whole, 0).unwrap();
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(refused.err.contains(&format!("the server (process {})", busy.pid)), "{refused:?}");
    assert!(refused.err.contains("1 run goes on") && refused.err.contains("--when-idle"), "{refused:?}");
    assert!(is_alive(busy.pid));
    gate.open();
    user.ok(&["server", "stop", "--when-idle"]);

    let idle = Server::start(&user, &[]);
    database.write_all_at(b"no database at all", 0).unwrap();
    let ended: Ended = user.run(&["run", "-s", "s", "again"]);
    assert_eq!((ended.code, ended.out.trim()), (0, "It goes on."), "{ended:?}");
    until("the server's end", || !is_alive(idle.pid));
    assert!(user.ok(&["sessions", "show", "s"]).out.contains("> first"), "what was there is there");
}
