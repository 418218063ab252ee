//! `hames run`: prompts, flags, sessions, exit codes.

use std::io::{Read, Write};

use hames_testkit::{Script, Turn};
use serde_json::{Value, json};

use crate::kit::{User, body_text, tree};

#[test]
fn the_answer_goes_to_stdout_and_everything_else_to_stderr() {
    let (user, _provider) = User::saying("All is well.");
    let ended = user.ok(&["run", "how is it?"]);
    assert_eq!(ended.out, "All is well.\n");
    assert!(ended.err.contains("session \"how is it?\""), "{}", ended.err);
}

#[test]
fn a_run_reads_edits_and_runs_and_the_session_is_kept() {
    let script = Script::new()
        .turn(Turn::call("Read", json!({"path": "a.txt"})))
        .turn(Turn::call("StrReplace", json!({"path": "a.txt", "old_string": "old", "new_string": "new"})))
        .turn(Turn::call("Shell", json!({"command": "cat a.txt; exit 3"})))
        .turn(Turn::text("Done."));
    let (user, provider) = User::with(script);
    let file = user.write("a.txt", "old\n");
    let ended = user.ok(&["run", "--mode", "build", "change it"]);
    assert_eq!(std::fs::read_to_string(file).unwrap(), "new\n");
    assert_eq!(ended.out, "Done.\n");
    for part in ["Read a.txt", "StrReplace a.txt", "+1/−1", "Shell cat a.txt", "exit 3"] {
        assert!(ended.err.contains(part), "{part}\n{}", ended.err);
    }
    assert_eq!(provider.violations().len(), 0, "{:?}", provider.violations());
    assert_eq!(user.sessions().len(), 1);
}

#[test]
fn every_prompt_that_cannot_be_used_exits_2() {
    let (user, provider) = User::saying("never");
    let large = vec![b'x'; 10 * 1024 * 1024 + 1];
    for (args, stdin, says) in [
        (&["run"][..], &b""[..], "needs a prompt"),
        (&["run", ""], b"", "prompt is empty"),
        (&["run", "  \n"], b"", "prompt is empty"),
        (&["run", "-"], b"", "prompt is empty"),
        (&["run", "-"], b"\n \n", "prompt is empty"),
        (&["run", "-"], b"\xff\xfe", "not UTF-8"),
        (&["run", "-"], &large, "more than 10 MB"),
        (&["run", "a", "b"], b"", "unexpected argument"),
    ] {
        let ended = user.run_with_stdin(args, stdin);
        assert_eq!(ended.code, 2, "{args:?}\n{ended:?}");
        assert!(ended.err.contains(says), "{args:?}\n{}", ended.err);
        assert_eq!(ended.out, "", "{args:?}");
    }
    assert!(user.run(&["run"]).err.contains("--max-steps"), "the help of run is shown");
    assert_eq!(provider.requests().len(), 0);
    assert_eq!(user.sessions().len(), 0);
}

#[test]
fn standard_input_is_read_only_for_a_dash() {
    let (user, provider) = User::saying("ok");
    let ended = user.run_with_stdin(&["run", "-"], "aus der Röhre\nzweite\n".as_bytes());
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(body_text(&provider.requests()[0]).contains("aus der Röhre\\nzweite"));
    // A pipe that nobody ever closes or writes to: a command that read it would never end.
    let mut child = user.command(&["run", "from the argument"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_command_of_the_agent_finds_standard_input_empty() {
    for command in ["cat", "read x; echo \"[$x]\"", "wc -c", "sort", "sh", "head -1", "tee copy", "grep x; true"] {
        let script = Script::new().turn(Turn::call("Shell", json!({"command": command}))).turn(Turn::text("ok"));
        let (user, _provider) = User::with(script);
        let mut child = user
            .command(&["run", "--mode", "build", "--json", "go"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let ended = crate::kit::Ended::of(child.wait_with_output().unwrap());
        drop(stdin);
        assert_eq!(ended.code, 0, "{command}\n{ended:?}");
        assert!(ended.types().contains(&"tool.done".to_owned()), "{command}\n{ended:?}");
    }
}

/// A whole picture of 3 by 2 pixels.
const PNG: &[u8] =
    b"\x89PNG\x0d\x0a\x1a\x0a\x00\x00\x00\x0dIHDR\x00\x00\x00\x03\x00\x00\x00\x02\x08\x02\x00\x00\x00\x12\
    \x16\xf1M\x00\x00\x00\x10IDATx\xdacPHX\x00A\x0cp\x16\x00@\x94\x06\xc1p\xe7!P\x00\x00\x00\x00IEND\xae\
    B`\x82";

#[test]
fn an_image_that_the_agent_reads_reaches_the_model_and_is_shown_in_words() {
    let script =
        Script::new().turn(Turn::call("Read", json!({"path": "pic.png"}))).respond(|_| Turn::text("A picture."));
    let (user, provider) = User::with(script);
    user.write("pic.png", PNG);
    let ended = user.ok(&["run", "-s", "pics", "look"]);
    assert!(ended.err.contains("Read pic.png · 1 image · "), "{}", ended.err);
    let sent = provider.requests().remove(1);
    let last = sent.messages().last().unwrap().clone();
    assert_eq!(last["content"][0]["text"], "[image in the result of Read: pic.png]");
    assert!(last["content"][1]["image_url"]["url"].as_str().unwrap().starts_with("data:image/png;base64,iVBORw0KGgo"));
    // The same from the log, by another process.
    user.ok(&["run", "-s", "pics", "and again"]);
    let again = provider.requests().remove(2);
    assert_eq!(again.messages()[..sent.messages().len()], sent.messages()[..]);
    let shown = user.ok(&["sessions", "show", "pics"]);
    assert!(shown.out.contains("Read pic.png · 1 image"), "{}", shown.out);
    assert!(shown.out.contains("    [image pic.png, image/png, 73 bytes]"), "{}", shown.out);
    let exported = user.ok(&["sessions", "export", "pics"]).event("tool.done");
    assert_eq!(exported["output"], "pic.png: PNG image, 3×2 pixels, 73 bytes");
    assert_eq!(exported["attachments"][0]["media_type"], "image/png");
    assert_eq!(exported["attachments"][0]["blob"]["bytes"], 73);
    assert_eq!(provider.violations(), []);
    // A model that is said to take none gets the words alone.
    let url = provider.base_url();
    let config =
        format!(r#"{{"providers": {{"blind": {{"base_url": "{url}", "models": [{{"id": "m", "images": false}}]}}}}}}"#);
    user.write_config(&config);
    user.ok(&["run", "-s", "pics", "-m", "blind/m", "--attach", "pic.png", "--", "and now"]);
    let blind = body_text(provider.requests().last().unwrap());
    assert!(!blind.contains("image_url") && blind.contains("73 bytes"), "{blind}");
    assert!(blind.contains("[pic.png is an image, which this model does not take]"), "{blind}");
    assert_eq!(provider.violations(), []);
}

#[test]
fn a_page_is_fetched_from_where_the_configuration_allows_it_and_read_on_with_recall() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/page", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut connection in listener.incoming().flatten() {
            let _ = connection.read(&mut [0; 2048]);
            let body = format!("<title>Long</title>{}", "<p>words and words".repeat(5_000));
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n\r\n", body.len());
            let _ = connection.write_all((head + &body).as_bytes());
        }
    });
    let turns = || {
        let fetch = Turn::call("WebFetch", json!({ "url": url }));
        let recall = Turn::call("Recall", json!({"artifact": "out-1", "offset": 9_990}));
        Script::new().turn(fetch).turn(recall).turn(Turn::text("Read."))
    };
    let (user, provider) = User::with(turns());
    user.write_config(r#"{"web": {"allow": ["127.0.0.1"]}}"#);
    user.ok(&["run", "look it up"]);
    let results = provider.requests()[2].tool_results();
    assert!(results[0].1.starts_with(&format!("Long\n{url}\n\nwords and words\n")), "{}", results[0].1);
    assert!(
        results[0].1.contains("kept as out-1 (") && results[0].1.ends_with("; Recall shows it]"),
        "{}",
        results[0].1
    );
    assert!(results[1].1.starts_with("9990\t") && results[1].1.ends_with("10002\twords and words"), "{}", results[1].1);
    assert_eq!(provider.violations(), []);
    let (user, provider) = User::with(turns());
    user.ok(&["run", "look it up"]);
    let results = provider.requests()[2].tool_results();
    assert!(
        results[0].1.contains("127.0.0.1 is a loopback address; only hosts of the public internet are"),
        "{}",
        results[0].1
    );
    assert!(results[1].1.contains("nothing was kept so far"), "{}", results[1].1);
}

#[test]
fn attachments_come_before_or_after_the_prompt() {
    let (user, provider) = User::saying("seen");
    user.write("note.txt", "a ``` fence\n");
    user.write("pic.png", PNG);
    user.write("blob.bin", b"\0\x01\x02");
    for args in [
        &["run", "look", "--attach", "note.txt", "pic.png", "blob.bin"][..],
        &["run", "--attach", "note.txt", "pic.png", "blob.bin", "look"],
        &["run", "--attach", "note.txt", "--attach", "pic.png", "--attach", "blob.bin", "--", "look"],
        &["run", "--attach", "note.txt", "--attach", "pic.png", "look", "--attach", "blob.bin"],
    ] {
        user.ok(args);
        let requests = provider.requests();
        let body = body_text(requests.last().unwrap());
        for part in [
            "look",
            "Attached file note.txt:",
            "````",
            "pic.png: PNG image, 3×2 pixels",
            "data:image/png;base64,",
            "blob.bin: not shown",
        ] {
            assert!(body.contains(part), "{args:?} lacks {part}\n{body}");
        }
    }
    for (args, says) in [
        (&["run", "x", "--attach", "missing"][..], "--attach missing"),
        (&["run", "x", "--attach", "."], "is a folder"),
    ] {
        let ended = user.run(args);
        assert_eq!(ended.code, 2, "{args:?}");
        assert!(ended.err.contains(says), "{}", ended.err);
    }
}

#[test]
fn wrong_flags_exit_2_and_say_what_is_right() {
    let (user, _provider) = User::saying("never");
    for (args, says) in [
        (&["run", "x", "--mode", "destroy"][..], "analyze, build"),
        (&["run", "x", "--thinking", "deep"], "off, low, medium, high"),
        (&["run", "x", "--max-steps", "0"], "0"),
        (&["run", "x", "--max-steps", "many"], "many"),
        (&["run", "x", "-m", "gpt"], "PROVIDER/MODEL"),
        (&["run", "x", "-m", "nope/x"], "known: openai"),
        (&["run", "x", "-C", "missing"], "missing"),
        (&["run", "x", "-C", "a-file"], "not a folder"),
        (&["run", "x", "-s", "a", "-c"], "cannot be used with"),
        (&["run", "x", "-s", ""], "cannot be called"),
        (&["run", "x", "-s", "0198e0b6-1c2d-7000-8000-00000000000a"], "no session with the id"),
        (&["run", "x", "-c"], "no session in"),
        (&["run", "x", "--unknown"], "--unknown"),
        (&["fly"], "fly"),
    ] {
        user.write("a-file", "");
        let ended = user.run(args);
        assert_eq!(ended.code, 2, "{args:?}\n{ended:?}");
        assert!(ended.err.contains(says), "{args:?} says\n{}", ended.err);
    }
    assert_eq!(user.sessions().len(), 0);
}

#[test]
fn an_error_before_a_run_ends_in_error_and_run_done() {
    let user = User::new();
    user.write("config-less", "");
    for args in [
        &["run", "--json", "x"][..],
        &["run", "--json"],
        &["run", "--json", "x", "--mode", "destroy"],
        &["run", "x", "-s", "a", "-c", "--json"],
        &["run", "--json", "x", "-C", "missing"],
        &["run", "--json", "x", "-m", "nope/x"],
        &["run", "--json", "x", "--attach", "missing"],
        &["run", "--json", "-c", "x"],
    ] {
        let ended = user.run(args);
        assert_eq!(ended.code, 2, "{args:?}\n{ended:?}");
        assert_eq!(ended.types(), ["error", "run.done"], "{args:?}");
        for line in ended.json() {
            for null in ["seq", "session", "run"] {
                assert_eq!(line[null], Value::Null, "{args:?}");
            }
        }
        assert_eq!(ended.event("run.done")["exit_code"], 2, "{args:?}");
        let class = ended.event("error")["class"].as_str().unwrap().to_owned();
        assert!(["usage", "configuration"].contains(&class.as_str()), "{args:?}: {class}");
    }
}

#[test]
fn every_end_has_its_exit_code() {
    let cases: Vec<(&str, Script, &[&str], i32, &str)> = vec![
        ("complete", Script::new().turn(Turn::text("ok")), &[], 0, "complete"),
        ("bad key", Script::new().turn(Turn::error(401, json!({"error": {"message": "bad key"}}))), &[], 1, "error"),
        (
            "no such model",
            Script::new().turn(Turn::error(
                404,
                json!({"error": {"message": "The model `x` does not exist", "code": "model_not_found"}}),
            )),
            &[],
            1,
            "error",
        ),
        ("step limit", Script::new().respond(|_| Turn::call("List", json!({}))), &["--max-steps", "2"], 3, "max_steps"),
        ("output limit", Script::new().turn(Turn::text("half").finish("length")), &[], 3, "stopped"),
        ("filter", Script::new().turn(Turn::text("half").finish("content_filter")), &[], 1, "error"),
    ];
    for (what, script, flags, code, result) in cases {
        let (user, _provider) = User::with(script);
        let args: Vec<&str> = ["run", "--json", "x"].iter().chain(flags).copied().collect();
        let ended = user.run(&args);
        assert_eq!(ended.code, code, "{what}\n{ended:?}");
        let done = ended.event("run.done");
        assert_eq!((done["exit_code"].as_i64(), done["result"].as_str()), (Some(code.into()), Some(result)), "{what}");
        let types = ended.types();
        assert_eq!(&types[types.len() - 3..], ["done", "turn.done", "run.done"], "{what}");
    }
}

#[test]
fn storage_that_cannot_be_used_exits_4() {
    let (user, _provider) = User::saying("never");
    std::fs::write(user.home().join("hames.db"), b"this is no database, but long enough to be looked at").unwrap();
    std::fs::remove_dir_all(user.home()).unwrap();
    std::fs::write(user.home(), b"a file where the home should be").unwrap();
    let ended = user.run(&["run", "--json", "x"]);
    assert_eq!(ended.code, 4, "{ended:?}");
    assert_eq!(ended.event("error")["class"], "storage");
    assert_eq!(ended.event("run.done")["exit_code"], 4);
}

#[test]
fn a_session_is_named_after_its_prompt_then_numbered() {
    let (user, _provider) = User::saying("ok");
    let long = "make the failing test in the parser module pass again, please";
    for prompt in ["fix it", "fix it", "FIX IT\nsecond line", long] {
        user.ok(&["run", prompt]);
    }
    let mut names: Vec<String> =
        user.sessions().iter().map(|session| session["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    let cut: String = long.chars().take(48).collect();
    assert_eq!(names, ["FIX IT (3)", "fix it", "fix it (2)", cut.trim_end()]);
}

#[test]
fn a_named_session_is_made_then_continued_without_regard_to_case() {
    let (user, provider) = User::saying("ok");
    user.ok(&["run", "-s", "Parser", "one"]);
    user.ok(&["run", "-s", "parser", "two"]);
    let sessions = user.sessions();
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0]["turns"], 2);
    let id = sessions[0]["id"].as_str().unwrap();
    user.ok(&["run", "-s", id, "three"]);
    user.ok(&["run", "-c", "four"]);
    assert_eq!(user.sessions()[0]["turns"], 4);
    let body = body_text(provider.requests().last().unwrap());
    for prompt in ["one", "two", "three", "four"] {
        assert!(body.contains(prompt), "{prompt}");
    }
}

#[test]
fn a_session_of_another_folder_is_refused_by_id_and_names_the_folder() {
    let (user, _provider) = User::saying("ok");
    let other = user.folder("other");
    user.ok(&["run", "-s", "mine", "x"]);
    let id = user.sessions()[0]["id"].as_str().unwrap().to_owned();
    let ended = user.run(&["run", "-C", other.to_str().unwrap(), "-s", &id, "y"]);
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.err.contains(user.project().to_str().unwrap()), "{}", ended.err);
    // A name belongs to its folder: the same one elsewhere is another session.
    user.ok(&["run", "-C", other.to_str().unwrap(), "-s", "mine", "y"]);
    assert_eq!(user.sessions().len(), 1);
    assert_eq!(user.ok(&["sessions", "list", "--all", "--json"]).json().len(), 2);
}

#[test]
fn a_continued_session_keeps_its_settings_unless_a_flag_overrides_them() {
    let (user, provider) = User::saying("ok");
    user.write_config(&format!(
        r#"{{"model": "local/first", "providers": {{"local": {{"base_url": "{}", "thinking": "effort"}}}}}}"#,
        provider.base_url()
    ));
    let created = user.ok(&["run", "--json", "one"]);
    assert_eq!(created.event("session.created")["settings"]["mode"], "analyze");
    assert_eq!(created.event("run.start")["mode"], "analyze");
    assert_eq!(provider.requests()[0].body["model"], "first");

    let changed = user.ok(&[
        "run",
        "--json",
        "-c",
        "--mode",
        "build",
        "-m",
        "local/a/b",
        "--thinking",
        "high",
        "--max-steps",
        "7",
        "two",
    ]);
    let settings = changed.event("settings.changed")["settings"].clone();
    let expected = json!({"model": "local/a/b", "mode": "build", "thinking_level": "high", "max_steps": 7});
    assert_eq!(settings, expected);
    assert_eq!(provider.requests()[1].body["model"], "a/b");

    // Another default in the file is no reason to change a session.
    user.write_config(&format!(
        r#"{{"model": "local/third", "providers": {{"local": {{"base_url": "{}", "thinking": "effort"}}}}}}"#,
        provider.base_url()
    ));
    let kept = user.ok(&["run", "--json", "-c", "three"]);
    assert!(!kept.types().contains(&"settings.changed".to_owned()));
    assert_eq!(kept.event("run.start")["mode"], "build");
    let body: Value = provider.requests()[2].body.clone();
    assert_eq!((body["model"].as_str(), body["reasoning_effort"].as_str()), (Some("a/b"), Some("high")));
    // The same flag again changes nothing.
    let same = user.ok(&["run", "--json", "-c", "--mode", "build", "four"]);
    assert!(!same.types().contains(&"settings.changed".to_owned()));
}

#[test]
fn a_second_run_on_a_busy_session_exits_2_and_names_the_holder() {
    let gate = hames_testkit::Gate::new();
    let script = Script::new().turn(Turn::text("slow").gate_head(gate.clone())).turn(Turn::text("never"));
    let (user, provider) = User::with(script);
    let child = user.start(&["run", "-s", "busy", "x"]);
    assert!(provider.has_requests_within(1, crate::kit::PATIENCE));
    let ended = user.run(&["run", "--json", "-s", "busy", "y"]);
    assert_eq!(ended.code, 2, "{ended:?}");
    assert_eq!(ended.types(), ["error", "run.done"]);
    let message = ended.event("error")["message"].as_str().unwrap().to_owned();
    assert!(message.contains(&child.id().to_string()) && message.contains("hames run"), "{message}");
    gate.open();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
}

#[test]
fn json_lines_are_the_log_and_no_deltas_leaves_out_what_is_live() {
    let (user, _provider) = User::saying("Several words that come in pieces.");
    let all = user.ok(&["run", "--json", "-s", "a", "x"]);
    assert!(all.types().contains(&"text.delta".to_owned()));
    let durable: Vec<&str> = all.out.lines().filter(|line| !line.contains("\"seq\":null")).collect();
    let kept = user.ok(&["sessions", "show", "a", "--json"]);
    assert_eq!(kept.out.lines().collect::<Vec<_>>(), durable);
    assert_eq!(all.json()[0]["event"]["type"], "session.created");
    assert_eq!(all.types().last().map(String::as_str), Some("run.done"));
    let seqs: Vec<u64> = kept.json().iter().map(|line| line["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());

    let quiet = user.ok(&["run", "--json", "--no-deltas", "-s", "b", "x"]);
    assert!(quiet.json().iter().all(|line| line["seq"].is_u64()));
    assert_eq!(quiet.out, user.ok(&["sessions", "show", "b", "--json"]).out);
}

#[test]
fn nothing_in_the_project_configures_hames_and_nothing_is_written_there() {
    let stub = hames_testkit::blocking(Script::new().respond(|_| Turn::text("stub"))).unwrap();
    let url = stub.base_url();
    let (user, provider) = User::saying("ok");
    let user = user.var("OPENAI_API_KEY", "sk-must-not-leak-0123456789");
    user.write(".env", format!("OPENAI_BASE_URL={url}\nOPENAI_API_KEY=x\nHAMES_HOME=.\n"));
    user.write(".mcp.json", r#"{"mcpServers": {"x": {"command": "sh", "args": ["-c", "touch PWNED"]}}}"#);
    let config = format!(r#"{{"model": "evil/m", "providers": {{"evil": {{"base_url": "{url}"}}}}}}"#);
    for name in ["config.jsonc", ".hames/config.jsonc", "hames.jsonc", ".config/hames/config.jsonc", ".hames.json"] {
        user.write(name, &config);
    }
    user.write(".envrc", format!("export OPENAI_BASE_URL={url}"));
    user.write(".vscode/settings.json", r#"{"hames.command": "touch PWNED"}"#);
    user.write(".git/hooks/post-checkout", "#!/bin/sh\ntouch PWNED\n");
    let before = tree(&user.project());
    for args in [&["run", "hello"][..], &["run", "-c", "again"], &["models"], &["doctor"], &["config", "show"]] {
        user.run(args);
    }
    assert_eq!(tree(&user.project()), before);
    assert_eq!((stub.requests().len(), stub.other_requests().len()), (0, 0));
    assert_eq!(provider.requests().len(), 2);
}

#[test]
fn children_do_not_get_the_keys_and_no_output_shows_them() {
    let key = "sk-secret-0123456789abcdef";
    let own = "own-secret-0123456789abcdef";
    let script = Script::new()
        .turn(Turn::call("Shell", json!({"command": "env; echo $OPENAI_API_KEY; cat leak.txt"})))
        .turn(Turn::text("ok"));
    let (user, _provider) = User::with(script);
    let user = user.var("OPENAI_API_KEY", key).var("OWN_KEY", own).var("HARMLESS", "stays").var("HAMES_DEBUG", "1");
    user.write_config(r#"{"providers": {"own": {"base_url": "http://127.0.0.1:9", "api_key_env": "OWN_KEY"}}}"#);
    user.write("leak.txt", format!("the file says {key} and {own}\n"));
    let ended = user.ok(&["run", "--json", "--mode", "build", "x"]);
    let output = ended.event("tool.done")["output"].as_str().unwrap().to_owned();
    assert!(output.contains("HARMLESS=stays") && output.contains("the file says"), "{output}");
    assert!(!output.contains("OPENAI_API_KEY=") && !output.contains("OWN_KEY="), "{output}");
    let mut everywhere = vec![ended.out, ended.err];
    everywhere.extend(
        tree(&user.home())
            .into_iter()
            .filter(|(path, _)| !path.ends_with("config.jsonc"))
            .map(|(_, content)| String::from_utf8_lossy(&content).into_owned()),
    );
    for text in everywhere {
        assert!(!text.contains(key) && !text.contains(own));
    }
}

#[test]
fn each_step_leaves_a_line_in_the_log_file() {
    let script = Script::new()
        .turns([Turn::call("List", json!({})), Turn::call("List", json!({}))])
        .respond(|_| Turn::text("ok"));
    let (user, _provider) = User::with(script);
    user.ok(&["run", "x"]);
    let text = std::fs::read_to_string(user.home().join("logs/hames.log")).unwrap();
    assert_eq!(text.lines().filter(|line| line.contains("hames::step")).count(), 3, "{text}");
    assert!(!text.contains("\"messages\""));
    let user = user.var("HAMES_DEBUG", "1");
    user.ok(&["run", "y"]);
    let text = std::fs::read_to_string(user.home().join("logs/hames.log")).unwrap();
    assert!(text.contains("\"messages\""), "{text}");
}

#[test]
fn tools_stay_in_the_folder_and_never_reach_the_home_of_hames() {
    let user = User::new();
    let outside = user.folder("outside");
    std::fs::write(outside.join("secret.txt"), "outside-content").unwrap();
    let home = user.project().join("inside-home");
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join("note.txt"), "home-content").unwrap();
    std::os::unix::fs::symlink(&outside, user.project().join("link")).unwrap();
    std::os::unix::fs::symlink(home.join("note.txt"), user.project().join("innocent.txt")).unwrap();
    let paths = [
        "inside-home/note.txt".to_owned(),
        "./x/../inside-home/note.txt".into(),
        home.join("note.txt").display().to_string(),
        "innocent.txt".into(),
        "inside-home/config.jsonc".into(),
        outside.join("secret.txt").display().to_string(),
        "../outside/secret.txt".into(),
        "link/secret.txt".into(),
    ];
    let mut script = Script::new();
    for path in &paths {
        script = script
            .turn(Turn::call("Read", json!({"path": path})))
            .turn(Turn::call("Write", json!({"path": path, "content": "overwritten"})));
    }
    let provider = hames_testkit::blocking(script.turn(Turn::text("ok"))).unwrap();
    let user = user.var("OPENAI_BASE_URL", &provider.base_url());
    // One refusal after the other is what is asked for here, and what the guard ends.
    let mut command = user.command(&["run", "--json", "--mode", "build", "--guard", "off", "x"]);
    let ended = crate::kit::Ended::of(command.env("HAMES_HOME", &home).output().unwrap());
    assert_eq!(ended.code, 0, "{ended:?}");
    let types = ended.types();
    assert!(!types.contains(&"tool.done".to_owned()), "{ended:?}");
    assert_eq!(types.iter().filter(|name| *name == "tool.error").count(), paths.len() * 2);
    assert!(!ended.out.contains("outside-content") && !ended.out.contains("home-content"));
    assert_eq!(std::fs::read_to_string(home.join("note.txt")).unwrap(), "home-content");
    assert_eq!(std::fs::read_to_string(outside.join("secret.txt")).unwrap(), "outside-content");
    assert!(!home.join("config.jsonc").exists());
}

#[test]
fn analyze_changes_nothing() {
    let script = Script::new()
        .turn(Turn::call("Write", json!({"path": "new.txt", "content": "x"})))
        .turn(Turn::call("StrReplace", json!({"path": "a.txt", "old_string": "old", "new_string": "new"})))
        .turn(Turn::call("Shell", json!({"command": "touch made"})))
        .turn(Turn::call("Read", json!({"path": "a.txt"})))
        .turn(Turn::text("ok"));
    let (user, _provider) = User::with(script);
    user.write("a.txt", "old\n");
    let before = tree(&user.project());
    let ended = user.ok(&["run", "--json", "x"]);
    assert_eq!(tree(&user.project()), before);
    let types = ended.types();
    assert_eq!(types.iter().filter(|name| *name == "change.proposed").count(), 2, "{ended:?}");
    assert_eq!(types.iter().filter(|name| *name == "tool.error").count(), 1, "{ended:?}");
    assert_eq!(types.iter().filter(|name| *name == "tool.done").count(), 3, "{ended:?}");
    assert_eq!(ended.event("tool.error")["class"], "refused");
}

#[test]
fn a_head_larger_than_the_window_exits_1_before_anything_is_sent() {
    let (user, provider) = User::saying("never");
    user.write_config(&format!(
        r#"{{"model": "p/m", "providers": {{"p": {{"base_url": "{}", "models": [{{"id": "m", "context_window": 300}}]}}}}}}"#,
        provider.base_url()
    ));
    let ended = user.run(&["run", "--json", "x"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert_eq!(ended.event("error")["class"], "context_overflow");
    assert_eq!(provider.requests().len(), 0);
}

#[test]
fn a_key_in_prompt_or_attachment_reaches_neither_model_nor_home() {
    let (user, provider) = User::saying("ok");
    let user = user.var("OPENAI_API_KEY", "sk-env-0123456789abcdef");
    let file = user.write("notes.txt", "export OPENAI_API_KEY=sk-env-0123456789abcdef, moo");
    let ended = user.ok(&["run", "--json", "is sk-env-0123456789abcdef mine?", "--attach", file.to_str().unwrap()]);
    let sent = crate::kit::body_text(&provider.requests()[0]);
    assert!(sent.contains("moo") && !sent.contains("sk-env-"), "{sent}");
    assert!(!ended.out.contains("sk-env-") && !ended.err.contains("sk-env-"), "{ended:?}");
    for (path, content) in crate::kit::tree(&user.home()) {
        assert!(!String::from_utf8_lossy(&content).contains("sk-env-"), "{}", path.display());
    }
}

#[test]
fn no_instruction_file_carries_a_key_or_a_file_from_elsewhere_to_the_model() {
    let (user, provider) = User::saying("ok");
    let user = user.var("OPENAI_API_KEY", "sk-env-0123456789abcdef");
    let secret = user.folder("elsewhere").join("secret");
    std::fs::write(&secret, "from elsewhere").unwrap();
    user.write(".git/HEAD", "ref: refs/heads/main\n");
    user.write("AGENTS.md", "The key is sk-env-0123456789abcdef, moo.");
    std::fs::create_dir(user.project().join("deep")).unwrap();
    std::os::unix::fs::symlink(&secret, user.project().join("deep/AGENTS.md")).unwrap();
    user.ok(&["run", "-C", user.project().join("deep").to_str().unwrap(), "x"]);
    let system = provider.requests()[0].messages()[0].to_string();
    assert!(system.contains("moo"), "{system}");
    assert!(!system.contains("sk-env-") && !system.contains("elsewhere"), "{system}");
}

#[test]
fn instruction_files_of_the_repository_reach_the_model() {
    let (user, provider) = User::saying("ok");
    user.write(".git/HEAD", "ref: refs/heads/main\n");
    user.write("AGENTS.md", "Say moo at the root.");
    let deep = user.write("deep/AGENTS.md", "Say baa down here.");
    let ended = user.ok(&["run", "--json", "-C", deep.parent().unwrap().to_str().unwrap(), "x"]);
    let system = provider.requests()[0].messages()[0].to_string();
    let (root, near) = (system.find("Say moo").unwrap(), system.find("Say baa").unwrap());
    assert!(root < near);
    assert_eq!(ended.event("run.start")["instructions"].as_array().unwrap().len(), 2);
}
