//! A server that is killed again and again: what it answered for is there, and nothing happens twice.

use std::collections::HashSet;
use std::time::Duration;

use hames_client::{ClientError, News};
use hames_protocol::api::{RunTerms, SendMessage};
use hames_protocol::{Delivery, Event, Mode, Part};
use hames_testkit::{ChatRequest, Script, Turn};
use serde_json::json;

use super::{Server, client, finder, is_alive, log, send, session, wait};
use crate::crash::dice::{Dice, report, seed, size};
use crate::kit::{Ended, User, until};

/// Longest time from a message to the blow: within it lie the answer, the command and the run's end.
const REACH: Duration = Duration::from_millis(120);

/// Each prompt makes a mark of its own, then ends. What a death left is never done again by itself.
fn story() -> Script {
    Script::new().respond(|request: &ChatRequest| {
        let messages = request.messages();
        let from = messages.iter().rposition(|message| message["role"] == "user").unwrap();
        let taken = messages[from..].iter().filter(|message| message["role"] == "assistant").count();
        let n = request.n;
        match taken {
            0 => Turn::text("Let me think about that for a while. ".repeat(8))
                .then_call("Shell", json!({"command": format!("echo m{n} >> marks; sleep 0.02")}))
                .chunk_chars(24)
                .delay_per_chunk(Duration::from_millis(1)),
            1 => Turn::call("Shell", json!({"command": format!("echo m{n} >> marks; setsid sleep 300 & echo over")})),
            _ => Turn::text("It is done."),
        }
    })
}

#[test]
fn a_killed_server_loses_nothing_it_answered_for_and_does_nothing_twice() {
    println!("HAMES_SEED={}", seed());
    let (wanted, mut dice) = (size(20, 100), Dice::new(0x5e7e));
    let (user, provider) = User::with(story());
    let mut server = Server::start(&user, &[]);
    let id = wait(async { session(&client(&user).await, &user.project(), "s", Mode::Build).await });
    let mut answered: HashSet<String> = HashSet::new();
    let mut sent = 0;
    for kill in 0..wanted {
        let pid = super::pid_of(&user);
        let blow = dice.time(REACH);
        let killer = std::thread::spawn(move || {
            std::thread::sleep(blow);
            send(pid, "KILL");
        });
        // Messages go on until the connection breaks.
        wait(async {
            let client = match finder(&user).connect().await {
                Ok(found) => found.client,
                // The blow came first.
                Err(ClientError::Unreachable { .. }) => return,
                Err(error) => panic!("kill {kill}: {error}"),
            };
            loop {
                sent += 1;
                let key = format!("message-{sent}");
                let message = SendMessage {
                    parts: vec![Part::text(format!("{key}: go on"))],
                    delivery: Delivery::Queue,
                    idempotency_id: Some(key.clone()),
                    terms: Some(RunTerms::default()),
                };
                match client.send(&id, &message).await {
                    Ok(_) => drop(answered.insert(key)),
                    Err(ClientError::Lost(_) | ClientError::Unreachable { .. }) => break,
                    Err(error) => panic!("kill {kill}: {error}"),
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        killer.join().unwrap();
        until("the server's death", || !is_alive(pid));
        std::mem::forget(std::mem::replace(&mut server, Server::start(&user, &[])));
    }
    // What waits is run to its end; a face that was attached all along would see it.
    wait(async {
        let client = client(&user).await;
        let view = client.session(&id).await.unwrap();
        if view.paused {
            client.pause_pending(&id, &hames_protocol::api::PausePending { paused: false }).await.unwrap();
        }
    });
    until("the end of all runs", || {
        wait(async {
            let view = client(&user).await.session(&id).await.unwrap();
            view.run.is_none() && view.pending.is_empty()
        })
    });
    let log = log(&user, "s");
    let said: Vec<String> = log
        .json()
        .iter()
        .filter(|line| line["event"]["type"] == "message.user")
        .filter_map(|line| line["event"]["idempotency_id"].as_str().map(str::to_owned))
        .collect();
    let once: HashSet<String> = said.iter().cloned().collect();
    assert_eq!(said.len(), once.len(), "a message was delivered twice");
    let lost: Vec<&String> = answered.iter().filter(|key| !once.contains(*key)).collect();
    assert_eq!(lost, Vec::<&String>::new(), "answered for and lost");
    let seqs: Vec<u64> = log.json().iter().map(|line| line["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    let marks = std::fs::read_to_string(user.project().join("marks")).unwrap_or_default();
    let marks: Vec<&str> = marks.lines().collect();
    assert_eq!(marks.len(), marks.iter().collect::<HashSet<_>>().len(), "an effect happened twice");
    assert_eq!(provider.violations(), []);
    drop(server);
    until("the end of every process", || strays(&user).is_empty());
    let counts =
        json!({"kills": wanted, "sent": sent, "answered": answered.len(), "events": seqs.len(), "marks": marks.len()});
    println!("{}", report(&json!({"name": "server_kill_9", "seed": seed(), "counts": counts})));
}

/// Processes that still have this user's home in their environment.
fn strays(user: &User) -> Vec<String> {
    let home = format!("HAMES_HOME={}", user.home().display());
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(|entry| entry.path());
    let ours = processes.filter(|path| {
        let environ = std::fs::read(path.join("environ")).unwrap_or_default();
        environ.split(|&byte| byte == 0).any(|variable| variable == home.as_bytes())
    });
    ours.map(|path| path.display().to_string()).collect()
}

#[test]
fn a_client_that_is_attached_survives_the_death_of_its_server() {
    let (user, provider) = User::with(story());
    let server = Server::start(&user, &[]);
    let id = wait(async { session(&client(&user).await, &user.project(), "s", Mode::Build).await });
    wait(async {
        let client = client(&user).await;
        let mut news = client.events(&id, 0);
        let mut seqs = Vec::new();
        super::message(&client, &id, "go", Delivery::Queue).await;
        let mut killed = false;
        loop {
            match news.next().await.unwrap() {
                News::Event(envelope) => {
                    seqs.extend(envelope.seq);
                    match envelope.event {
                        Event::ToolStart(_) if !killed => {
                            killed = true;
                            server.kill();
                            assert!(finder(&user).connect().await.is_err());
                            user.ok(&["serve"]);
                        }
                        Event::RunDone(_) => break,
                        _ => {}
                    }
                }
                News::Ended(error) => panic!("{error}"),
                News::Connected | News::Lost { .. } | News::Resync { .. } => {}
            }
        }
        assert!(killed);
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    });
    assert_eq!(log(&user, "s").event("run.done")["result"], "interrupted");
    assert_eq!(provider.violations(), []);
}

#[test]
fn a_run_that_joined_brings_its_server_back_and_sees_the_end() {
    let script = Script::new()
        .turn(Turn::text("The first is done."))
        .turn(Turn::call("Shell", json!({"command": "echo m >> marks; sleep 600"})))
        .turn(Turn::text("never"));
    let (user, provider) = User::with(script);
    user.ok(&["run", "-s", "s", "--mode", "build", "first"]);
    let server = Server::start(&user, &["--idle-exit", "300"]);
    wait(async {
        let sessions = user.sessions();
        let id = sessions[0]["id"].as_str().unwrap();
        let mut news = client(&user).await.events(&id.into(), 0);
        while news.next().await.unwrap() != News::Connected {}
    });
    let child = user.start(&["run", "-c", "--json", "again"]);
    let marks = || std::fs::read_to_string(user.project().join("marks")).unwrap_or_default().lines().count();
    until("the command's start", || marks() == 1);
    server.kill();
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert!(ended.err.contains("the connection to the server is lost"), "{ended:?}");
    assert_eq!(ended.event("run.done")["result"], "interrupted", "{ended:?}");
    assert_eq!(ended.event("tool.error")["class"], "outcome_unknown", "{ended:?}");
    assert_eq!((marks(), provider.requests().len()), (1, 2));
    assert_ne!(super::pid_of(&user), server.pid);
}
