//! Starting, stopping, and what is in between when nothing is.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use hames_client::Starter;
use hames_protocol::api::{API_VERSION, ApiVersion};
use hames_protocol::{Delivery, Mode};
use hames_testkit::{Gate, Script, Turn};
use serde_json::json;

use super::{Server, client, finder, is_alive, log, message, pid_of, send, session, wait};
use crate::kit::{Ended, PATIENCE, User, until};

#[test]
fn a_server_answers_when_serve_returns_and_is_gone_when_stop_does() {
    let (user, _provider) = User::saying("hi");
    let ended = user.run(&["server", "status"]);
    assert_eq!((ended.code, ended.out.as_str()), (3, "no server runs; `hames serve` starts one\n"), "{ended:?}");
    assert_eq!(user.run(&["server", "status", "--json"]).json(), [json!({"running": false})]);
    let server = Server::start(&user, &[]);
    let again = user.ok(&["serve"]);
    assert!(again.out.contains("runs already") && again.out.contains(&server.pid.to_string()), "{again:?}");
    assert_eq!(pid_of(&user), server.pid);
    let doctor = user.run(&["doctor"]);
    assert!(doctor.out.contains(&format!("process {} at ", server.pid)), "{doctor:?}");
    let stopped = user.ok(&["server", "stop"]);
    assert!(stopped.out.contains("has stopped"), "{stopped:?}");
    until("the server's end", || !is_alive(server.pid));
    assert!(!user.home().join("run/server.sock").exists());
    assert_eq!(user.run(&["server", "status"]).code, 3);
    assert_eq!(user.ok(&["server", "stop"]).out, "no server runs; `hames serve` starts one\n");
    let logged = user.ok(&["server", "logs"]);
    assert!(logged.out.contains("hames::server answers") && logged.out.contains("hames::server ended"), "{logged:?}");
    assert!(user.ok(&["server", "logs", "--json", "-n", "1"]).json()[0]["text"].as_str().unwrap().contains("ended"));
}

#[test]
fn of_many_started_at_once_one_is_the_server_and_the_others_say_so() {
    let user = User::new();
    let starting: Vec<_> = (0..6).map(|_| user.start(&["serve"])).collect();
    let ended: Vec<Ended> = starting.into_iter().map(|child| Ended::of(child.wait_with_output().unwrap())).collect();
    let pid = pid_of(&user);
    let server = Server { user: &user, pid };
    assert!(ended.iter().all(|ended| ended.code == 0 && ended.out.contains(&pid.to_string())), "{ended:?}");
    assert_eq!(ended.iter().filter(|ended| ended.out.contains("answers at")).count(), 1, "{ended:?}");
    drop(server);
}

#[test]
fn it_keeps_nothing_of_whoever_started_it_but_the_environment() {
    let (user, _provider) = User::saying("hi");
    let user = user.var("OPENAI_API_KEY", "sk-never-to-be-seen");
    // A descriptor that nobody closes, and a terminal that will go away.
    let hames = user.command(&["serve", "--idle-exit", "300"]);
    let mut command = Command::new("sh");
    command.args(["-c", "exec 9< AGENTS.md; exec \"$0\" \"$@\""]).arg(hames.get_program()).args(hames.get_args());
    command.env_clear().envs(hames.get_envs().filter_map(|(name, value)| Some((name, value?))));
    user.write("AGENTS.md", "be kind");
    let ended = Ended::of(command.current_dir(user.project()).output().unwrap());
    assert_eq!(ended.code, 0, "{ended:?}");
    let server = Server { user: &user, pid: pid_of(&user) };
    let of = |file: &str| format!("/proc/{}/{file}", server.pid);
    assert_eq!(std::fs::read_link(of("cwd")).unwrap(), std::path::Path::new("/"));
    let stat = std::fs::read_to_string(of("stat")).unwrap();
    let fields: Vec<i64> =
        stat.rsplit(')').next().unwrap().split_whitespace().skip(1).take(4).map(|n| n.parse().unwrap()).collect();
    // Parent, group, session, terminal.
    assert!(fields[2] != i64::from(server.pid) && fields[3] == 0, "{fields:?}");
    for entry in std::fs::read_dir(of("fd")).unwrap() {
        let target = std::fs::read_link(entry.unwrap().path()).unwrap_or_default();
        assert!(!target.starts_with(user.project()), "{target:?} is kept open");
    }
    let umask = |pid: &str| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        status.lines().find(|line| line.starts_with("Umask")).map(str::to_owned)
    };
    assert_eq!(umask(&server.pid.to_string()), umask("self"));
    let cmdline = std::fs::read(of("cmdline")).unwrap();
    assert!(!String::from_utf8_lossy(&cmdline).contains("sk-never"));
    let logs = std::fs::read_to_string(user.home().join("logs/hames.log")).unwrap();
    assert!(!logs.contains("sk-never"), "{logs}");
}

#[test]
fn a_hang_up_is_harmless_and_the_first_signal_ends_runs_with_their_logs_whole() {
    for name in ["TERM", "INT"] {
        let script = Script::new().respond(|_| Turn::call("Shell", json!({"command": "echo $$ > pid; sleep 600"})));
        let (user, _provider) = User::with(script);
        let server = Server::start(&user, &[]);
        wait(async {
            let client = client(&user).await;
            let id = session(&client, &user.project(), "s", Mode::Build).await;
            message(&client, &id, "sleep", Delivery::Queue).await;
        });
        let pid_file = user.project().join("pid");
        until("the command's start", || std::fs::read_to_string(&pid_file).is_ok_and(|pid| pid.ends_with('\n')));
        let refused = user.run(&["server", "stop"]);
        assert_eq!(refused.code, 3, "{refused:?}");
        assert!(refused.err.contains("--when-idle"), "{refused:?}");
        send(server.pid, "HUP");
        assert_eq!(pid_of(&user), server.pid);
        send(server.pid, name);
        until("the server's end", || !is_alive(server.pid));
        let log = log(&user, "s");
        assert_eq!(log.event("run.done")["result"], "interrupted", "{name}\n{log:?}");
        assert_eq!(log.types().last().map(String::as_str), Some("run.done"));
        let command = std::fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
        until("the command's end", || !is_alive(command));
    }
}

#[test]
fn a_server_that_nobody_uses_ends_by_itself_and_one_in_use_does_not() {
    let gate = Gate::new();
    let script = Script::new().turn(Turn::text("slow").gate_head(gate.clone()));
    let (user, provider) = User::with(script);
    user.write_config(r#"{"server": {"idle_exit": 1}}"#);
    let server = Server::start(&user, &[]);
    wait(async {
        let client = client(&user).await;
        let id = session(&client, &user.project(), "s", Mode::Analyze).await;
        message(&client, &id, "go", Delivery::Queue).await;
    });
    assert!(provider.has_requests_within(1, PATIENCE));
    // No client is there, and the run keeps it.
    let began = Instant::now();
    until("two idle times", || began.elapsed().as_secs() >= 2);
    assert!(is_alive(server.pid));
    gate.open();
    until("the server's own end", || !is_alive(server.pid));
    assert_eq!(log(&user, "s").event("run.done")["result"], "complete");
    assert!(user.ok(&["server", "logs"]).out.contains("nobody uses it"));
}

#[test]
fn a_restart_waits_for_runs_and_starts_it_as_it_was_started() {
    let gate = Gate::new();
    let script = Script::new().turn(Turn::text("done at last").gate_head(gate.clone()));
    let (user, provider) = User::with(script);
    let server = Server::start(&user, &["--listen", "127.0.0.1:0", "--idle-exit", "never"]);
    let listens = |user: &User| user.ok(&["server", "status", "--json"]).json()[0]["listen"].is_string();
    assert!(listens(&user));
    wait(async {
        let client = client(&user).await;
        let id = session(&client, &user.project(), "s", Mode::Analyze).await;
        message(&client, &id, "go", Delivery::Queue).await;
    });
    assert!(provider.has_requests_within(1, PATIENCE));
    let restart = user.start(&["server", "restart"]);
    until("the wish to stop", || {
        let status = user.run(&["server", "status", "--json"]);
        status.code == 0 && status.json()[0]["stopping"] == true
    });
    gate.open();
    let ended = Ended::of(restart.wait_with_output().unwrap());
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_ne!(pid_of(&user), server.pid);
    assert!(listens(&user));
    assert_eq!(log(&user, "s").event("run.done")["result"], "complete");
    let now = user.ok(&["server", "restart", "--now", "--json"]);
    assert_eq!(now.json()[0]["running"], true);
}

#[test]
fn a_folder_that_others_may_enter_is_refused_and_doctor_says_so() {
    let user = User::new();
    let folder = user.home().join("run");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o770)).unwrap();
    let refused = user.run(&["serve"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("chmod 700") && refused.err.contains("run"), "{refused:?}");
    let doctor = user.run(&["doctor"]);
    assert!(doctor.out.contains("FAIL  server"), "{doctor:?}");
}

#[test]
fn what_a_dead_server_left_is_replaced() {
    let user = User::new();
    let first = Server::start(&user, &[]);
    first.kill();
    assert!(user.home().join("run/server.sock").exists());
    assert_eq!(user.run(&["server", "status"]).code, 3);
    assert!(user.run(&["doctor"]).out.contains("a dead one left"));
    let second = Server::start(&user, &[]);
    assert_ne!(first.pid, second.pid);
    std::mem::forget(first);
}

#[test]
fn only_loopback_is_listened_on() {
    let user = User::new();
    for address in ["0.0.0.0:0", "192.168.0.1:80", "example.com:80", "[::]:0", "x"] {
        let refused = user.run(&["serve", "--listen", address]);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.err.contains("loopback") || refused.err.contains("127.0.0.1"), "{refused:?}");
    }
    assert_eq!(user.run(&["server", "status"]).code, 3);
}

#[test]
fn a_folder_neither_starts_nor_moves_the_server() {
    let (user, provider) = User::saying("from the real one");
    let (_other, stub) = User::saying("from the folder's");
    let url = stub.base_url();
    for (name, text) in [
        ("config.jsonc", json!({"providers": {"openai": {"base_url": url}}}).to_string()),
        (".hames/config.jsonc", json!({"providers": {"openai": {"base_url": url}}}).to_string()),
        (".env", format!("OPENAI_BASE_URL={url}\nHAMES_HOME=/nowhere\n")),
        (".mcp.json", json!({"mcpServers": {"x": {"command": "sh", "args": ["-c", "touch PWNED"]}}}).to_string()),
        ("run/server.lock", json!({"pid": 1, "version": "9", "args": ["--listen", "127.0.0.1:1"]}).to_string()),
    ] {
        user.write(name, text);
    }
    let _server = Server::start(&user, &[]);
    assert!(!user.project().join("run/server.sock").exists());
    wait(async {
        let client = client(&user).await;
        let id = session(&client, &user.project(), "s", Mode::Build).await;
        message(&client, &id, "go", Delivery::Queue).await;
    });
    assert!(provider.has_requests_within(1, PATIENCE));
    until("the run's end", || log(&user, "s").types().last().is_some_and(|last| last == "run.done"));
    assert_eq!(log(&user, "s").event("text.done")["text"], "from the real one");
    assert_eq!((stub.connections(), user.project().join("PWNED").exists()), (0, false));
}

#[test]
fn the_second_signal_ends_the_server_at_once_and_the_next_one_closes_what_it_left() {
    // A command that will not end by being asked keeps the server for a while after the first signal.
    let script = Script::new()
        .turn(Turn::call("Shell", json!({"command": "trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done"})))
        .respond(|_| Turn::text("done"));
    let (user, _provider) = User::with(script);
    let server = user.start(&["serve", "--foreground"]);
    until("the server's answer", || user.run(&["server", "status"]).code == 0);
    wait(async {
        let client = client(&user).await;
        let id = session(&client, &user.project(), "s", Mode::Build).await;
        message(&client, &id, "stay", Delivery::Queue).await;
    });
    let pid_file = user.project().join("pid");
    until("the command's start", || std::fs::read_to_string(&pid_file).is_ok_and(|pid| pid.ends_with('\n')));
    let command = std::fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
    send(server.id(), "TERM");
    send(server.id(), "INT");
    let ended = Ended::of(server.wait_with_output().unwrap());
    assert_eq!(ended.code, 130, "{ended:?}");
    until("the command's end", || !is_alive(command));
    assert!(log(&user, "s").types().iter().all(|name| name != "run.done"));
    // Nobody is left in the way, and whoever takes the session next closes what was open.
    user.ok(&["run", "-s", "s", "again"]);
    let log = log(&user, "s");
    let ends: Vec<_> = log.json().into_iter().filter(|line| line["event"]["type"] == "run.done").collect();
    assert_eq!((&ends[0]["event"]["result"], &ends[1]["event"]["result"]), (&json!("interrupted"), &json!("complete")));
    assert!(log.event("tool.error")["error"].as_str().unwrap().contains("Outcome unknown"), "{log:?}");
}

/// Starts servers as `hames run` does.
fn starter(user: &User) -> Starter {
    let command = user.command(&["serve"]);
    let (program, folder) = (command.get_program().to_owned(), user.project());
    let vars: Vec<_> = command.get_envs().filter_map(|(k, v)| Some((k.to_owned(), v?.to_owned()))).collect();
    Arc::new(move || {
        let mut command = Command::new(&program);
        command.arg("serve").env_clear().envs(vars.clone()).current_dir(&folder).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn()
    })
}

#[test]
fn an_older_server_is_replaced_when_it_is_idle_and_used_while_it_is_busy() {
    let gate = Gate::new();
    let (user, provider) = User::with(Script::new().turn(Turn::text("done at last").gate_head(gate.clone())));
    let server = Server::start(&user, &[]);
    // A client of the next version of the API; the server is the older one to it.
    let newer = ApiVersion { minor: API_VERSION.minor + 1, ..API_VERSION };
    let finder = || finder(&user).starting(starter(&user)).speaking(newer);
    wait(async {
        let client = client(&user).await;
        let id = session(&client, &user.project(), "s", Mode::Analyze).await;
        message(&client, &id, "go", Delivery::Queue).await;
    });
    assert!(provider.has_requests_within(1, PATIENCE));
    let found = wait(async { finder().connect_or_start().await.unwrap() });
    assert_eq!((found.health.pid, found.started), (server.pid, false));
    assert!(found.note().unwrap().contains("busy"), "{:?}", found.note());
    gate.open();
    until("the run's end", || log(&user, "s").types().last().is_some_and(|last| last == "run.done"));
    let found = wait(async { finder().connect_or_start().await.unwrap() });
    until("the older one's end", || !is_alive(server.pid));
    assert!(found.started && found.health.pid != server.pid, "{found:?}");
    assert_eq!(pid_of(&user), found.health.pid);
    assert_eq!(log(&user, "s").event("run.done")["result"], "complete");
}
