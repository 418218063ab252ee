//! Configuration, models, doctor, version.

use hames_testkit::{Script, blocking};

use crate::kit::User;

#[test]
fn version_and_help_need_nothing() {
    let user = User::new();
    let ended = user.ok(&["--version"]);
    assert_eq!(ended.out, format!("hames {}\n", env!("CARGO_PKG_VERSION")));
    for args in [&["--help"][..], &["run", "--help"], &["sessions", "--help"]] {
        assert!(user.ok(args).out.contains("Usage: hames"), "{args:?}");
    }
    assert_eq!(std::fs::read_dir(user.home()).unwrap().count(), 0);
}

#[test]
fn without_a_model_every_command_that_needs_one_says_how_to_get_one() {
    let user = User::new();
    for args in [&["run", "x"][..], &["models"], &["run", "-s", "a", "x"]] {
        let ended = user.run(args);
        assert_eq!(ended.code, 2, "{args:?}\n{ended:?}");
        for way in ["OPENAI_API_KEY", "local server", "config.jsonc", "hames demo"] {
            assert!(ended.err.contains(way), "{args:?} lacks {way}\n{}", ended.err);
        }
    }
    let doctor = user.run(&["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor:?}");
    assert!(doctor.out.contains("FAIL  model") && doctor.out.contains("OPENAI_API_KEY"), "{}", doctor.out);
    assert_eq!(user.sessions().len(), 0);
}

#[test]
fn each_variable_makes_a_provider_with_a_default_model() {
    for (var, value, model) in [
        ("OPENAI_API_KEY", "sk-0123456789abcdef-open", "openai/"),
        ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1", "openai/"),
        ("ANTHROPIC_API_KEY", "sk-0123456789abcdef-anth", "anthropic/"),
        ("OPENROUTER_API_KEY", "sk-0123456789abcdef-rout", "openrouter/"),
        ("GOOGLE_GENERATIVE_AI_API_KEY", "sk-0123456789abcdef-goog", "google/"),
    ] {
        let user = User::new().var(var, value);
        let shown = user.ok(&["config", "show", "--json"]).json().remove(0);
        assert!(shown["model"]["value"].as_str().unwrap().starts_with(model), "{var}: {shown}");
        assert_eq!(shown["model"]["from"], format!("${var}"));
        assert!(!shown.to_string().contains("0123456789abcdef"), "{var}: the key is shown");
    }
}

#[test]
fn keys_are_masked_and_every_value_says_where_it_comes_from() {
    let user = User::new().var("OPENAI_API_KEY", "sk-env-0123456789abcdef").var("OTHER", "sk-other-0123456789abcdef");
    user.write_config(
        r#"{
  "model": "own/m",
  "providers": {
    "own": { "base_url": "http://127.0.0.1:9", "api_key": "sk-file-0123456789abcdef",
             "headers": { "X-Api-Key": "hdr-0123456789abcdef", "X-Title": "mine" } },
    "var": { "base_url": "http://127.0.0.1:9", "api_key_env": "OTHER" },
    "url": { "base_url": "http://me:pass-0123@127.0.0.1:9/v1?key=query-0123" }
  }
}"#,
    );
    for args in [&["config", "show"][..], &["config", "show", "--json"]] {
        let shown = user.ok(args).out;
        for secret in ["sk-env-", "sk-file-", "sk-other-", "hdr-", "pass-", "query-"] {
            assert!(!shown.contains(secret), "{args:?}\n{shown}");
        }
        for part in ["own/m", "config.jsonc:2", "config.jsonc:4", "$OPENAI_API_KEY", "$OTHER", "X-Title", "mine"] {
            assert!(shown.contains(part), "{args:?} lacks {part}\n{shown}");
        }
    }
    let path = user.ok(&["config", "path"]).out;
    assert_eq!(path.trim_end(), user.home().join("config.jsonc").to_str().unwrap());
}

#[test]
fn unknown_keys_warn_and_wrong_values_exit_2() {
    let (user, provider) = User::saying("ok");
    user.write_config(&format!(
        "{{\n  // a slip\n  \"modle\": \"x/y\",\n  \"providers\": {{\"p\": {{\"base_url\": \"{}\",\n \"baseurl\": \"z\"}}}},\n}}",
        provider.base_url()
    ));
    let ended = user.ok(&["run", "-m", "p/m", "x"]);
    assert!(ended.err.contains("config.jsonc:3: modle") && ended.err.contains("config.jsonc:5: providers.p.baseurl"));
    for (text, says) in [
        ("{\"model\": 5}", "config.jsonc:1: model should be"),
        ("{\n\"providers\": {\"p\": {\"base_url\": false}}}", "config.jsonc:2: providers.p.base_url should be"),
        ("{\"model\" ", "config.jsonc:1: this is not JSON"),
        ("{\"providers\": {\"p\": {\"api\": \"responses\"}}}", "should be \"chat\""),
    ] {
        user.write_config(text);
        for args in [&["run", "--json", "x"][..], &["models"], &["config", "show"]] {
            let ended = user.run(args);
            assert_eq!(ended.code, 2, "{args:?} {text}\n{ended:?}");
            assert!(ended.err.contains(says), "{args:?}\n{}", ended.err);
        }
    }
}

#[test]
fn a_base_url_works_with_and_without_v1() {
    let (user, provider) = User::saying("ok");
    let with = provider.base_url();
    let without = with.trim_end_matches("/v1").to_owned();
    for url in [with.clone(), without.clone(), format!("{with}/"), format!("{without}/")] {
        user.write_config(&format!(r#"{{"model": "p/m", "providers": {{"p": {{"base_url": "{url}"}}}}}}"#));
        assert_eq!(user.ok(&["run", "x"]).out, "ok\n", "{url}");
    }
}

#[test]
fn provider_settings_reach_the_request() {
    let (user, provider) = User::saying("ok");
    user.write_config(&format!(
        r#"{{"model": "p/a/b", "providers": {{"p": {{
            "base_url": "{}", "api_key": "sk-0123456789", "api": "chat", "thinking": "effort", "thinking_level": "low",
            "headers": {{"X-Team": "blue"}}, "session_header": "X-Session", "max_tokens": 77,
            "models": [{{"id": "a/b", "context_window": 50000, "max_output": 900}}],
            "timeouts": {{"connect_s": 5, "first_byte_s": 50, "idle_s": 50}}, "replay_reasoning": true
        }}}}}}"#,
        provider.base_url()
    ));
    let ended = user.ok(&["run", "--json", "x"]);
    let request = provider.requests()[0].clone();
    let body: serde_json::Value = request.body.clone();
    assert_eq!((body["model"].as_str(), body["reasoning_effort"].as_str()), (Some("a/b"), Some("low")));
    let limit = body["max_tokens"].as_u64().or(body["max_completion_tokens"].as_u64());
    assert_eq!(limit, Some(77));
    assert_eq!(request.header("x-team"), Some("blue"));
    assert_eq!(request.header("authorization"), Some("Bearer sk-0123456789"));
    assert_eq!(request.header("x-session"), ended.json()[0]["session"].as_str());
}

#[test]
fn a_small_window_gets_the_lean_tools() {
    let (user, provider) = User::saying("ok");
    for (window, tools) in [(8_000, 4), (8_192, 4), (16_000, hames_workspace::tools().len())] {
        user.write_config(&format!(
            r#"{{"model": "p/m", "providers": {{"p": {{"base_url": "{}",
                "models": [{{"id": "m", "context_window": {window}, "max_output": 500}}]}}}}}}"#,
            provider.base_url()
        ));
        user.ok(&["run", "x"]);
        let body: serde_json::Value = provider.requests().last().unwrap().body.clone();
        assert_eq!(body["tools"].as_array().unwrap().len(), tools, "{window}");
    }
}

#[test]
fn doctor_says_ok_for_what_is_there() {
    let (user, _provider) = User::saying("ok");
    let ended = user.ok(&["doctor"]);
    for name in [
        "home", "database", "shell", "git", "config", "model", "window", "provider", "disk", "locks", "terminal",
        "catalog", "lessons",
    ] {
        assert!(ended.out.contains(name), "{name}\n{}", ended.out);
    }
    user.write_config("{\"model\": 5}");
    let ended = user.run(&["doctor"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(ended.out.contains("FAIL  config"), "{}", ended.out);
}

#[test]
fn doctor_tells_programs_what_it_tells_people() {
    let (user, _provider) = User::saying("ok");
    let object = user.ok(&["doctor", "--json"]).json().remove(0);
    assert_eq!(object["ok"], true);
    let names: Vec<&str> = object["checks"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    for name in ["version", "home", "disk", "database", "locks", "config", "model", "window", "provider", "catalog"] {
        assert!(names.contains(&name), "{name} {names:?}");
    }
    assert!(object["checks"].as_array().unwrap().iter().all(|check| check["state"] != "failed"));
}

#[test]
fn doctor_names_each_provider_that_cannot_be_used_and_only_the_one_in_use_is_a_failure() {
    let (user, provider) = User::saying("ok");
    let file = |model: &str| {
        format!(
            r#"{{"model": "{model}", "providers": {{
                "good": {{"base_url": "{}", "api_key": "sk-0123456789abcdef"}},
                "dead": {{"base_url": "http://127.0.0.1:1/v1"}},
                "unset": {{"base_url": "http://127.0.0.1:1/v1", "api_key_env": "NOT_SET"}},
                "bare": {{"api_key": "sk-0123456789abcdef"}}
            }}}}"#,
            provider.base_url()
        )
    };
    user.write_config(&file("good/mock-1"));
    let ended = user.ok(&["doctor"]);
    for part in [
        "ok    provider  good at http://127.0.0.1",
        "note  provider  dead at http://127.0.0.1:1/v1: ",
        "note  provider  unset: $NOT_SET",
        "note  provider  bare has no base_url",
        "→ hames providers edit bare --url URL",
        "→ `hames providers test dead` looks closer",
        "note  config    it holds keys, and others on this machine can read it",
        "→ chmod 600",
    ] {
        assert!(ended.out.contains(part), "{part}\n{}", ended.out);
    }
    assert!(!ended.out.contains("0123456789"), "{}", ended.out);
    for (model, part) in [("dead/m", "FAIL  provider  dead"), ("unset/m", "FAIL  model     provider unset")] {
        user.write_config(&file(model));
        let ended = user.run(&["doctor"]);
        assert!(ended.code == 1 && ended.out.contains(part), "{part}\n{}", ended.out);
    }
    user.write_config(&file("good/mock-2"));
    let ended = user.ok(&["doctor"]);
    assert!(ended.out.contains("good does not list it; did you mean mock-1?"), "{}", ended.out);
}

#[allow(clippy::print_stdout)] // a test that was skipped has to say so
fn skipped(why: &str) {
    println!("skipped: {why}");
}

#[test]
fn doctor_says_so_where_the_disk_is_full() {
    let (user, _provider) = User::saying("ok");
    let full = user.folder("full");
    // A disk of its own, with less room than one probe; making one needs a user namespace or root.
    let script = format!("mount -t tmpfs -o size=64k none '{0}' && HAMES_HOME='{0}/home' exec \"$@\"", full.display());
    let hames = user.command(&["doctor"]);
    let run = |program: &str, args: &[&str]| {
        let mut command = std::process::Command::new(program);
        command.args(args).args(["sh", "-c", &script, "sh"]).arg(hames.get_program()).args(hames.get_args());
        command.env_clear().envs(hames.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.current_dir(user.project()).output()
    };
    let is_run = |output: &std::process::Output| String::from_utf8_lossy(&output.stdout).contains("version");
    let tried = run("unshare", &["-rm"]).ok().filter(is_run);
    let Some(output) = tried.or_else(|| run("unshare", &["-m"]).ok().filter(is_run)) else {
        skipped("no file system of one's own can be mounted here");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("FAIL  home") && said.contains("free some space there"), "{said}");
    assert!(said.contains("FAIL  disk      only"), "{said}");
}

#[test]
fn doctor_finds_nothing_wrong_where_bash_and_git_are_missing() {
    let (user, _provider) = User::saying("ok");
    let output = user.command(&["doctor"]).env("PATH", user.folder("empty")).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("note  shell") && said.contains("note  git"), "{said}");
}

#[test]
fn doctor_says_what_it_mended_and_makes_a_home_nobody_else_can_read() {
    use std::os::unix::fs::PermissionsExt;
    let user = User::new();
    let home = user.home().join("inner");
    let doctor = || {
        let output = user.command(&["doctor"]).env("HAMES_HOME", &home).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(!doctor().contains("note  database"));
    assert_eq!(std::fs::metadata(&home).unwrap().permissions().mode() & 0o777, 0o700);
    std::fs::write(home.join("hames.db"), "no database").unwrap();
    let said = doctor();
    assert!(said.contains("note  database") && said.contains("It was moved to"), "{said}");
    assert!(!doctor().contains("note  database"));
}

#[test]
fn without_hames_home_everything_lies_in_the_platforms_folders() {
    let (user, _provider) = User::saying("ok");
    let base = user.folder("xdg");
    let run = |args: &[&str]| {
        let mut command = user.command(args);
        command.env_remove("HAMES_HOME").env("XDG_CONFIG_HOME", base.join("config"));
        command.env("XDG_DATA_HOME", base.join("data")).env("XDG_STATE_HOME", base.join("state"));
        crate::kit::Ended::of(command.output().unwrap())
    };
    assert_eq!(run(&["run", "x"]).code, 0);
    assert!(base.join("data/hames/hames.db").exists());
    assert!(base.join("state/hames/logs/hames.log").exists());
    assert_eq!(run(&["config", "path"]).out.trim_end(), base.join("config/hames/config.jsonc").to_str().unwrap());
    assert_eq!(std::fs::read_dir(user.home()).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(user.project()).unwrap().count(), 0);
}

#[test]
fn a_proxy_of_the_environment_is_used_but_never_for_this_machine() {
    let (user, _provider) = User::saying("direct");
    let proxy = blocking(Script::new()).unwrap();
    let user = user.var("http_proxy", &proxy.base_url());
    assert_eq!(user.ok(&["run", "x"]).out, "direct\n");
    user.write_config(r#"{"model": "p/m", "providers": {"p": {"base_url": "http://model.invalid/v1"}}}"#);
    // The scripted provider serves no other host's addresses; that it was asked for one is what counts.
    assert_eq!(user.run(&["run", "x"]).code, 1);
    assert!(proxy.other_requests().iter().any(|asked| asked.contains("model.invalid")), "{:?}", proxy.other_requests());
}
