//! What a person decides beside runs and after them, through the program that people start: settings, proposals, the
//! size of the database.

use hames_client::ClientError;
use hames_protocol::api::{
    ApiErrorCode, ChangeSettings, CutSession, DecideProposals, ProposalsDecision, SessionActivity,
};
use hames_protocol::{Delivery, Mode, SessionId, Settings};
use hames_testkit::{ChatRequest, Gate, Script, Turn};
use serde_json::json;

use super::{Server, client, log, message, session, wait};
use crate::kit::{Ended, PATIENCE, User};

/// Waits until nothing goes on in the session.
async fn quiet(client: &hames_client::Client, id: &SessionId) -> hames_protocol::api::SessionView {
    loop {
        let view = client.session(id).await.unwrap();
        if view.run.is_none() && view.pending.is_empty() {
            return view;
        }
        tokio::task::yield_now().await;
    }
}

fn code(refused: Result<impl Sized, ClientError>) -> Option<ApiErrorCode> {
    refused.err().and_then(|error| error.code())
}

#[test]
fn settings_changed_beside_a_run_are_told_and_hold_from_the_next_run_on() {
    let gate = Gate::new();
    let script = Script::new().turn(Turn::text("first").gate_head(gate.clone())).respond(|_| Turn::text("next"));
    let (user, provider) = User::with(script);
    let _server = Server::start(&user, &[]);
    wait(async {
        let client = client(&user).await;
        let id = session(&client, &user.project(), "s", Mode::Build).await;
        message(&client, &id, "go", Delivery::Queue).await;
        assert!(provider.has_requests_within(1, PATIENCE));
        let settings = Settings { mode: Some(Mode::Analyze), max_steps: Some(7), ..Settings::default() };
        let view = client.change_settings(&id, &ChangeSettings { settings, unset: Vec::new() }).await.unwrap();
        assert_eq!(view.next_run, ["mode", "max_steps"]);
        assert_eq!((view.run.unwrap().mode, view.effective.mode), (Mode::Build, Some(Mode::Analyze)));
        gate.open();
        assert_eq!(quiet(&client, &id).await.next_run, [""; 0]);
        message(&client, &id, "again", Delivery::Queue).await;
        quiet(&client, &id).await;
    });
    let starts = log(&user, "s").json().into_iter().filter(|line| line["event"]["type"] == "run.start");
    let modes: Vec<_> = starts.map(|line| line["event"]["mode"].clone()).collect();
    assert_eq!(modes, ["build", "analyze"]);
}

#[test]
fn proposals_that_a_run_left_are_asked_about_once_and_each_decision_does_what_it_says() {
    let script = || {
        Script::new().respond(|request: &ChatRequest| {
            let is_first = request.messages().last().is_some_and(|last| last["role"] == "user");
            match is_first && request.last_text().contains("draft a file") {
                true => Turn::call("Write", json!({"path": "a.txt", "content": "new\n"})),
                false => Turn::text("ok"),
            }
        })
    };
    for decision in
        [ProposalsDecision::Apply, ProposalsDecision::Build, ProposalsDecision::Keep, ProposalsDecision::Discard]
    {
        let (user, _provider) = User::with(script());
        let _server = Server::start(&user, &[]);
        wait(async {
            let client = client(&user).await;
            let id = session(&client, &user.project(), "s", Mode::Analyze).await;
            message(&client, &id, "draft a file", Delivery::Queue).await;
            assert_eq!(quiet(&client, &id).await.row.state, SessionActivity::WaitingForYou);
            let asked = client.waiting(&id).await.unwrap().proposals.unwrap();
            let decide = DecideProposals { run: asked.run, decision };
            client.decide_proposals(&id, &decide).await.unwrap();
            assert_eq!(code(client.decide_proposals(&id, &decide).await), Some(ApiErrorCode::Answered));
            let view = quiet(&client, &id).await;
            assert_eq!(client.waiting(&id).await.unwrap().proposals, None);
            assert_eq!(view.row.state, SessionActivity::Idle);
            let expected = match decision {
                ProposalsDecision::Apply => (true, 0, Mode::Analyze),
                ProposalsDecision::Build => (false, 1, Mode::Build),
                ProposalsDecision::Keep => (false, 1, Mode::Analyze),
                ProposalsDecision::Discard => (false, 0, Mode::Analyze),
            };
            let found = (user.project().join("a.txt").exists(), view.proposals.len(), view.effective.mode.unwrap());
            assert_eq!(found, expected, "{decision:?}");
        });
    }
}

#[test]
fn a_smaller_database_is_suggested_after_a_cut_and_at_the_start_and_made_when_nothing_runs() {
    let gate = Gate::new();
    let script = Script::new().turn(Turn::text("x")).turn(Turn::text("y").gate_head(gate.clone()));
    let (user, provider) = User::with(script);
    user.write_config(&json!({"database": {"vacuum_free_percent": 5, "vacuum_free_mb": 1}}).to_string());
    let server = Server::start(&user, &[]);
    let id = wait(async {
        let client = client(&user).await;
        let id = session(&client, &user.project(), "s", Mode::Analyze).await;
        message(&client, &id, &"many words ".repeat(300_000), Delivery::Queue).await;
        quiet(&client, &id).await;
        assert!(!client.status().await.unwrap().suggest_vacuum);
        let log = log(&user, "s").json();
        let message = log.iter().find(|line| line["event"]["type"] == "message.user").unwrap();
        let from = message["seq"].as_u64().unwrap();
        assert!(client.cut_session(&id, &CutSession { from_seq: from }).await.unwrap().suggest_vacuum);
        assert!(client.status().await.unwrap().suggest_vacuum);
        id
    });
    drop(server);
    let _server = Server::start(&user, &[]);
    let logged = user.ok(&["server", "logs"]).out;
    assert!(logged.matches("hames db vacuum").count() >= 2, "after the cut and at the start: {logged}");
    wait(async {
        let client = client(&user).await;
        assert!(client.status().await.unwrap().suggest_vacuum);
        message(&client, &id, "wait", Delivery::Queue).await;
        assert!(provider.has_requests_within(2, PATIENCE));
        assert_eq!(code(client.vacuum().await), Some(ApiErrorCode::Busy));
    });
    let busy = user.run(&["db", "vacuum"]);
    assert!(busy.code != 0 && busy.err.contains("1 run goes on"), "{busy:?}");
    gate.open();
    wait(async { quiet(&client(&user).await, &id).await });
    // The server has the session open; nothing goes on in it, so it is done.
    let done: Ended = user.ok(&["db", "vacuum", "--json"]);
    let done = &done.json()[0];
    assert!(done["after_bytes"].as_u64().unwrap() + 1_000_000 < done["before_bytes"].as_u64().unwrap(), "{done}");
    assert_eq!(done["blobs_removed"], 0);
    wait(async { assert!(!client(&user).await.status().await.unwrap().suggest_vacuum) });
}

#[test]
fn another_user_is_not_told_whether_a_server_runs() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65534;
    let user = User::new();
    let _server = Server::start(&user, &[]);
    let scratch = tempfile::tempdir().unwrap();
    if std::os::unix::fs::chown(scratch.path(), Some(NOBODY), Some(NOBODY)).is_err() {
        return;
    }
    let copy = scratch.path().join("hames");
    let of_us = user.command(&["server", "status"]);
    // Copied by another process: a descriptor that a fork of another test holds would keep it from being run.
    assert!(std::process::Command::new("cp").arg(of_us.get_program()).arg(&copy).status().unwrap().success());
    let root = user.home().parent().unwrap().to_owned();
    std::fs::set_permissions(root, std::fs::Permissions::from_mode(0o755)).unwrap();
    let theirs = |args: &[&str]| {
        let mut command = std::process::Command::new(&copy);
        command.args(args).env_clear().env("HOME", scratch.path()).env("HAMES_HOME", user.home());
        Ended::of(command.current_dir("/").uid(NOBODY).gid(NOBODY).output().unwrap())
    };
    let status = theirs(&["server", "status"]);
    assert_eq!(status.code, 3, "{status:?}");
    assert!(status.out.contains("may not be read"), "{status:?}");
    let stop = theirs(&["server", "stop", "--now"]);
    assert!(stop.out.contains("may not be read"), "{stop:?}");
    assert!(super::is_alive(super::pid_of(&user)));
}
