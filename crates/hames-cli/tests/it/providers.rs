//! Providers: added, changed, removed, tested, carried to another machine.

use std::os::unix::fs::PermissionsExt;

use hames_testkit::{Provider, Script, Turn, blocking};
use serde_json::{Value, json};

use crate::kit::User;
use crate::tty::Terminal;

const KEY: &str = "sk-0123456789abcdef-secret";

fn answering() -> Provider {
    blocking(
        Script::new()
            .models(json!([{"id": "m-1", "context_length": 5_000}, {"id": "m-2"}]))
            .respond(|_| Turn::text("ok")),
    )
    .unwrap()
}

fn config(user: &User) -> String {
    std::fs::read_to_string(user.home().join("config.jsonc")).unwrap()
}

#[test]
fn a_provider_is_added_by_flags_and_works() {
    let (user, provider) = (User::new(), answering());
    let url = provider.base_url();
    let add = ["providers", "add", "mine", "--url", &url, "--key-stdin", "--thinking", "effort", "--default", "m-1"];
    let ended = user.run_with_stdin(&add, format!("{KEY}\n").as_bytes());
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(!format!("{ended:?}").contains(KEY), "{ended:?}");
    let file = config(&user);
    assert!(file.contains(KEY) && file.contains("\"model\": \"mine/m-1\""), "{file}");
    let mode = std::fs::metadata(user.home().join("config.jsonc")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(user.ok(&["run", "x"]).out, "ok\n");
    assert_eq!(provider.requests()[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));

    let again = user.run(&["providers", "add", "mine", "--url", &url]);
    assert_eq!(again.code, 2);
    assert!(again.err.contains("already") && again.err.contains("providers edit"), "{}", again.err);
    assert_eq!(config(&user), file);

    for args in [
        &["providers", "list"][..],
        &["providers", "list", "--json"],
        &["config", "show"],
        &["providers", "test", "mine"],
    ] {
        let shown = user.ok(args);
        assert!(!format!("{shown:?}").contains(KEY), "{args:?} {shown:?}");
    }
    let listed = user.ok(&["providers", "list"]).out;
    assert!(listed.contains("key …cret (") && listed.contains("(default: m-1)"), "{listed}");
}

#[test]
fn what_cannot_be_added_is_said_and_nothing_is_written() {
    let user = User::new();
    for (args, says) in [
        (&["providers", "add"][..], "needs a name: a well-known one (openai, anthropic"),
        (&["providers", "add", "mine"], "say where it is with --url"),
        (&["providers", "add", "mine", "--url", "localhost:1"], "base_url should be a URL"),
        (&["providers", "add", "a/b", "--url", "http://h"], "cannot be the name of a provider"),
        (&["providers", "add", "groq", "--thinking", "deep"], "thinking should be one of bool, effort"),
        (&["providers", "add", "mine", "--url", "http://h", "--key-stdin"], "should hold the key"),
        (&["providers", "edit", "mine", "--url", "http://h"], "has no providers, and no \"mine\""),
        (&["providers", "remove", "mine", "-y"], "has no providers, and no \"mine\""),
        (&["providers", "test", "mine"], "has no providers, and no \"mine\""),
        (&["providers", "export", "mine"], "has no providers, and no \"mine\""),
        (&["providers", "import", "none.json"], "none.json cannot be read"),
    ] {
        let ended = user.run(args);
        assert_eq!(ended.code, 2, "{args:?} {ended:?}");
        assert!(ended.err.contains(says), "{args:?}\n{}", ended.err);
        assert!(!user.home().join("config.jsonc").exists(), "{args:?}");
    }
    user.write_config("{\n  \"providers\": {\n");
    let ended = user.run(&["providers", "add", "groq"]);
    assert!(ended.code == 2 && ended.err.contains("config.jsonc:2: this is not JSON"), "{ended:?}");
}

#[test]
fn a_change_leaves_everything_else_as_it_is() {
    let user = User::new();
    let file = "// mine\n{\n  \"model\": \"a/m\",   // best\n  \"future\": {\"x\" : 1},\n  \"providers\": {\n    \"a\": {\n      \"base_url\": \"http://a\", // old\n      \"api_key\": \"sk-aaaa\",\n      \"max_tokens\": 9\n    },\n    \"b\": {\"base_url\": \"http://b\"}\n  }\n}\n";
    user.write_config(file);
    user.ok(&[
        "providers",
        "edit",
        "a",
        "--url",
        "http://c",
        "--key-env",
        "A_KEY",
        "--unset",
        "max_tokens",
        "--default",
        "n",
    ]);
    let expected = file
        .replace("\"http://a\", // old", "\"http://c\", // old")
        .replace("\"api_key\": \"sk-aaaa\",\n      \"max_tokens\": 9", "\"api_key_env\": \"A_KEY\"")
        .replace("a/m", "a/n");
    assert_eq!(config(&user), expected);
    let refused = user.run(&["providers", "remove", "a"]);
    assert!(refused.code == 2 && refused.err.contains("--yes"), "{refused:?}");
    let ended = user.ok(&["providers", "remove", "a", "-y"]);
    assert!(ended.err.contains("still names a/n as the default model"), "{}", ended.err);
    assert!(
        !config(&user).contains("http://c") && config(&user).contains("\"future\": {\"x\" : 1},"),
        "{}",
        config(&user)
    );
    assert_eq!(user.run(&["providers", "edit", "b"]).code, 2);
}

#[test]
fn a_provider_is_added_step_by_step_at_a_terminal_and_its_key_is_never_shown() {
    let (user, provider) = (User::new(), answering());
    let mut terminal = Terminal::start(&user, &["providers", "add"]);
    assert!(terminal.until("A number, or a name of your own: ").contains("ollama"));
    terminal.types("a/b\n");
    terminal.until("no slashes");
    terminal.until(": ");
    terminal.types("mine\n");
    terminal.until("Base URL: ");
    terminal.types("nowhere\n");
    terminal.until("begins with http://");
    terminal.until("Base URL: ");
    terminal.types(&format!("{}\n", provider.base_url()));
    terminal.until("Key (not shown): ");
    terminal.types(&format!("{KEY}\n"));
    let shown = terminal.until("none) [none]: ");
    terminal.types("bool\n");
    let offered = terminal.until("Enter alone leaves it): ");
    assert!(offered.contains("1  m-1") && offered.contains("2  m-2"), "{offered}");
    terminal.types("2\n");
    let (code, rest) = terminal.end();
    assert_eq!(code, 0, "{rest}");
    assert!(rest.contains("added mine"), "{rest}");
    assert!(![&shown, &offered, &rest].iter().any(|text| text.contains("0123456789")), "{shown}{offered}{rest}");
    let file = config(&user);
    for part in ["\"model\": \"mine/m-2\"", KEY, "\"thinking\": \"bool\"", &provider.base_url()] {
        assert!(file.contains(part), "{part}\n{file}");
    }
}

#[test]
fn a_known_provider_takes_its_key_from_the_environment_when_nothing_is_typed() {
    let user = User::new().var("GROQ_API_KEY", KEY);
    let mut terminal = Terminal::start(&user, &["providers", "add", "groq"]);
    terminal.until("Base URL [https://api.groq.com/openai/v1]: ");
    terminal.types("http://127.0.0.1:1/v1\n");
    terminal.until("Enter alone takes the key from $GROQ_API_KEY");
    terminal.until("Key (not shown): ");
    terminal.types("\n");
    terminal.until("none) [effort]: ");
    terminal.types("\n");
    let (code, rest) = terminal.end();
    assert_eq!(code, 0, "{rest}");
    assert!(rest.contains("its models cannot be listed") && rest.contains("added groq"), "{rest}");
    let file = config(&user);
    assert!(file.contains("\"api_key_env\": \"GROQ_API_KEY\"") && !file.contains(KEY), "{file}");
}

#[test]
fn leaving_while_a_key_is_typed_changes_nothing_and_leaves_the_terminal_as_it_was() {
    let user = User::new();
    let mut terminal = Terminal::start(&user, &["providers", "add", "openai"]);
    terminal.until("Base URL");
    terminal.types("\n");
    terminal.until("Key (not shown): ");
    terminal.types("half\u{3}");
    let (code, rest) = terminal.end();
    assert!(code == 2 && rest.contains("stopped; nothing was changed"), "{code} {rest}");
    assert!(!user.home().join("config.jsonc").exists());
}

fn checks(user: &User, args: &[&str]) -> (i32, Vec<(String, String, String)>) {
    let ended = user.run(&[&["providers", "test", "--json"], args].concat());
    assert!(!format!("{ended:?}").contains(KEY), "{ended:?}");
    let object = ended.json().remove(0);
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let all = object["checks"].as_array().unwrap().iter();
    let all =
        all.map(|c| (text(&c["name"]), text(&c["state"]), format!("{} → {}", text(&c["what"]), text(&c["remedy"]))));
    (ended.code, all.collect())
}

#[test]
fn a_test_goes_step_by_step_and_names_what_is_wrong() {
    let refusing = |status: u16, body: Value, models: Value| {
        blocking(Script::new().models(models).respond(move |_| Turn::error(status, body.clone()))).unwrap()
    };
    let list = json!([{"id": "qwen3-coder"}, {"id": "other"}]);
    let good = answering();
    let auth = refusing(
        401,
        json!({"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}),
        list.clone(),
    );
    let gone = refusing(404, json!({"error": {"message": "model not found", "code": "model_not_found"}}), list.clone());
    let loading = refusing(
        503,
        json!({"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}),
        list.clone(),
    );
    let page = blocking(
        Script::new()
            .models(list.clone())
            .respond(|_| Turn::error(404, "<html><title>Welcome to nginx</title></html>")),
    )
    .unwrap();
    let little = refusing(
        400,
        json!({"error": {"message": "Could not finish the message because max_tokens or model output limit was reached. Please try again with higher max_tokens.", "type": "invalid_request_error"}}),
        list,
    );
    let user = User::new();
    let elsewhere = format!("{}/wrong/path", good.base_url().trim_end_matches("/v1"));
    let entry = |url: &str| json!({"base_url": url, "api_key": KEY, "timeouts": {"connect_s": 2}});
    let providers = json!({
        "good": entry(&good.base_url()),
        "auth": entry(&auth.base_url()),
        "gone": entry(&gone.base_url()),
        "loading": entry(&loading.base_url()),
        "page": entry(&page.base_url()),
        "little": entry(&little.base_url()),
        "elsewhere": entry(&elsewhere),
        "refused": entry("http://127.0.0.1:1/v1"),
        "tls": entry(&good.base_url().replace("http://", "https://")),
        "nowhere": entry("http://no-such-host.invalid/v1"),
        "unset": {"base_url": "http://127.0.0.1:1", "api_key_env": "NOT_SET"},
        "bare": {"api_key": KEY},
    });
    user.write_config(&json!({"providers": providers}).to_string());
    for (args, code, last, parts) in [
        (&["good"][..], 0, "answer", &["the first token came after"][..]),
        (&["good", "m-9"], 0, "answer", &["the first token came after"]),
        (&["auth"], 1, "answer", &["Incorrect API key", "key …cret", "config.jsonc", "--key-stdin"]),
        (&["gone", "qwen3-codr"], 1, "answer", &["did you mean qwen3-coder?"]),
        (&["loading"], 1, "answer", &["Loading model"]),
        (&["page"], 1, "answer", &["web page", "Welcome to nginx"]),
        (&["little"], 0, "answer", &["it thinks first"]),
        (&["elsewhere"], 1, "models", &["has a model list: hames providers edit elsewhere --url"]),
        (&["refused"], 1, "models", &["no server listens on port 1"]),
        (&["tls"], 1, "models", &["it answers without TLS: hames providers edit tls --url http://127.0.0.1"]),
        (&["nowhere"], 1, "address", &["no-such-host.invalid has no address", "HTTPS_PROXY"]),
        (&["unset"], 1, "key", &["$NOT_SET is not set", "export NOT_SET"]),
        (&["bare"], 1, "key", &["it has no base_url"]),
    ] {
        let (ended, all) = checks(&user, args);
        assert_eq!(ended, code, "{args:?} {all:#?}");
        let (name, state, what) = all.last().unwrap();
        assert!(code == 1 || state == "ok", "{all:#?}");
        assert!(name == last || name == "url", "{args:?} {all:#?}");
        for part in parts {
            assert!(what.contains(part), "{args:?} lacks {part:?}\n{all:#?}");
        }
    }
    // The window and where it comes from are told on the way.
    let (_, all) = checks(&user, &["good"]);
    assert!(
        all.iter().any(|(name, _, what)| name == "model" && what.contains("m-1: window 5,000 tokens (provider's list")),
        "{all:#?}"
    );
    let body = good.requests().last().unwrap().body.clone();
    assert_eq!((body["max_tokens"].as_u64(), body.get("tools")), (Some(1), None));
}

#[test]
fn a_proxy_in_between_is_named() {
    let user = User::new().var("http_proxy", "http://127.0.0.1:1");
    user.write_config(r#"{"providers": {"p": {"base_url": "http://model.example/v1"}}}"#);
    let (code, all) = checks(&user, &["p"]);
    assert_eq!(code, 1);
    assert!(all[1].2.contains("through the proxy http://127.0.0.1:1"), "{all:#?}");
    assert!(all[2].2.contains("check HTTPS_PROXY"), "{all:#?}");
}

const SHARED: &str = r#"{
  "model": "a/m",
  "providers": {
    // comment
    "a": {"base_url": "http://a", "api_key": "sk-0123456789abcdef-secret", "odd": 1, "headers": {"X-Api-Key": "hdr-secret", "X-Title": "t"}},
    "b": {"base_url": "http://b", "api_key_env": "B"},
  }
}"#;

#[test]
fn export_leaves_keys_out_unless_asked_and_import_takes_it_again() {
    let user = User::new();
    user.write_config(SHARED);
    let bare = user.ok(&["providers", "export"]);
    assert!(!bare.out.contains("secret") && bare.err.contains("a.api_key, a.headers.X-Api-Key"), "{bare:?}");
    let exported: Value = serde_json::from_str(&bare.out).unwrap();
    assert_eq!(exported["model"], "a/m");
    assert_eq!(exported["providers"]["a"], json!({"base_url": "http://a", "odd": 1, "headers": {"X-Title": "t"}}));
    assert_eq!(exported["providers"]["b"]["api_key_env"], "B");
    let only: Value = serde_json::from_str(&user.ok(&["providers", "export", "b"]).out).unwrap();
    assert_eq!(only, json!({"providers": {"b": {"base_url": "http://b", "api_key_env": "B"}}}));

    let file = user.project().join("out.json");
    let with_keys = ["providers", "export", "--with-keys", "-o", file.to_str().unwrap()];
    user.ok(&with_keys);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(std::fs::read_to_string(&file).unwrap().contains(KEY));
    assert_eq!(user.run(&with_keys).code, 2, "a file that is there is not written over");

    let other = User::new();
    let ended = other.run_with_stdin(&["providers", "import", "-"], &std::fs::read(&file).unwrap());
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.err.contains("added a") && ended.err.contains("the default model is a/m"), "{}", ended.err);
    assert!(!ended.err.contains("secret"), "{}", ended.err);
    let back: Value = serde_json::from_str(&other.ok(&["providers", "export", "--with-keys"]).out).unwrap();
    assert_eq!(back, serde_json::from_slice::<Value>(&std::fs::read(&file).unwrap()).unwrap());
}

#[test]
fn an_import_says_that_others_can_read_the_keys_it_brings() {
    let incoming = |key: &str| format!(r#"{{"providers": {{"a": {{"base_url": "http://a"{key}}}}}}}"#);
    let with_key = incoming(r#", "api_key": "sk-imported-key""#);
    for (mode, text, told) in
        [(0o644, with_key.as_str(), true), (0o600, &with_key, false), (0o644, &incoming(""), false)]
    {
        let user = User::new();
        user.write_config("{}");
        let file = user.home().join("config.jsonc");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let ended = user.run_with_stdin(&["providers", "import", "-"], text.as_bytes());
        assert!(ended.code == 0 && ended.err.contains("added a"), "{ended:?}");
        assert_eq!(ended.err.contains("chmod 600"), told, "{mode:o} {text}\n{}", ended.err);
        assert!(!format!("{ended:?}").contains("sk-imported-key"), "{ended:?}");
    }
}

#[test]
fn an_import_asks_about_what_is_there_and_keeps_the_key_that_did_not_come_along() {
    let incoming = r#"{"model": "x/y", "providers": {"a": {"base_url": "http://a/v2"}, "b": {"base_url": "http://b", "api_key_env": "B"}, "c": {"base_url": "http://c"}}}"#;
    let user = User::new();
    user.write_config(SHARED);
    let refused = user.run_with_stdin(&["providers", "import", "-"], incoming.as_bytes());
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("--replace or --keep"), "{}", refused.err);
    assert_eq!(config(&user), SHARED, "nothing is imported by half");

    let kept = user.run_with_stdin(&["providers", "import", "-", "--keep"], incoming.as_bytes());
    assert!(
        kept.err.contains("kept as it is: a")
            && kept.err.contains("is the same already: b")
            && kept.err.contains("added c"),
        "{kept:?}"
    );
    assert!(!config(&user).contains("http://a/v2") && config(&user).contains("\"a/m\""));

    let replaced = user.run_with_stdin(&["providers", "import", "-", "--replace"], incoming.as_bytes());
    assert!(replaced.err.contains("replaced a"), "{replaced:?}");
    let file = config(&user);
    for part in ["http://a/v2", KEY, "hdr-secret", "// comment", "\"x/y\""] {
        assert!(file.contains(part), "{part}\n{file}");
    }
    assert!(!file.contains("odd") && !file.contains("X-Title"), "{file}");

    // At another address the key that lies here has no business.
    let elsewhere = r#"{"providers": {"a": {"base_url": "http://elsewhere"}}}"#;
    let moved = user.run_with_stdin(&["providers", "import", "-", "--replace"], elsewhere.as_bytes());
    assert!(moved.err.contains("replaced a"), "{moved:?}");
    let file = config(&user);
    assert!(file.contains("http://elsewhere") && !file.contains(KEY) && !file.contains("hdr-secret"), "{file}");

    for (text, says) in [
        ("{\"providers\": {\"a\": {\"base_url\": 5}}}", "standard input:1: providers.a.base_url"),
        ("{\"providers\": {}}", "no \"providers\" to import"),
        ("nonsense", "this is not JSON"),
        ("", "no \"providers\" to import"),
    ] {
        let ended = user.run_with_stdin(&["providers", "import", "-"], text.as_bytes());
        assert!(ended.code == 2 && ended.err.contains(says), "{text}\n{ended:?}");
    }
    assert_eq!(config(&user), file);
}
