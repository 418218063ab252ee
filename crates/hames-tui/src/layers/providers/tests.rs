use hames_protocol::api::{
    ApiErrorCode, CheckState, KnownProvider, LocalServer, ProviderCheck, ProviderTest, Providers,
};
use ratatui::crossterm::event::KeyCode;

use super::super::parts::kit::{Stand, key};
use super::*;
use crate::snapshot::compare;

const SECRET: &str = "sk-very-secret-0123456789";

fn known() -> KnownProviders {
    let known = |name: &str, title: &str, url: &str, var: Option<&str>, has_key| KnownProvider {
        name: name.into(),
        title: title.into(),
        base_url: url.into(),
        key_env: var.map(str::to_owned),
        has_key,
    };
    KnownProviders {
        local: vec![LocalServer {
            name: "ollama".into(),
            title: "Ollama at http://127.0.0.1:11434/v1".into(),
            base_url: "http://127.0.0.1:11434/v1".into(),
            models: vec!["qwen3:8b".into(), "bge-embed".into()],
        }],
        known: vec![
            known("openai", "OpenAI", "https://api.openai.com/v1", Some("OPENAI_API_KEY"), false),
            known("groq", "Groq", "https://api.groq.com/openai/v1", Some("GROQ_API_KEY"), true),
            known("vllm", "vLLM", "http://127.0.0.1:8000/v1", None, false),
        ],
    }
}

fn configured(names: &[&str]) -> Providers {
    let row = |name: &&str| ProviderRow {
        name: (*name).into(),
        base_url: "http://10.0.0.7:8000/v1".into(),
        key: "$SHOP_KEY (not set)".into(),
        thinking: None,
    };
    Providers { providers: names.iter().map(row).collect() }
}

fn open(stand: &mut Stand, names: &[&str]) -> Setup {
    let mut layer = Setup::new(&mut stand.cx());
    for (ticket, request) in stand.asked() {
        let answer = match request {
            Request::Providers => Answer::Providers(configured(names)),
            Request::KnownProviders => Answer::KnownProviders(known()),
            other => panic!("{other:?}"),
        };
        layer.answer(ticket, Ok(answer), &mut stand.cx());
    }
    layer
}

fn pick(stand: &mut Stand, layer: &mut Setup, filter: &str) {
    stand.type_text(layer, filter);
    stand.give(layer, &key(KeyCode::Enter));
}

fn check(name: &str, state: CheckState, what: &str, remedy: Option<&str>) -> ProviderCheck {
    ProviderCheck { name: name.into(), state, what: what.into(), remedy: remedy.map(str::to_owned) }
}

fn well() -> ProviderTest {
    ProviderTest {
        ok: true,
        checks: vec![
            check("key", CheckState::Ok, "a key", None),
            check("models", CheckState::Note, "no list: 404\nof all things", None),
            check("answer", CheckState::Ok, "the first token came after 676ms", None),
        ],
        models: vec!["gpt-5.4".into(), "gpt-\u{1b}[2Jodd".into(), "漢字".into()],
        model: Some("gpt-5.4".into()),
    }
}

fn wrong_key() -> ProviderTest {
    let failed =
        check("answer", CheckState::Failed, "The key was refused (401).", Some("it was sent with a key; give another"));
    ProviderTest {
        ok: false,
        checks: vec![check("key", CheckState::Ok, "a key", None), failed],
        models: vec![],
        model: None,
    }
}

/// The draft that is tested now, and its ticket.
fn tested(stand: &mut Stand) -> (Ticket, ProviderDraft) {
    match &stand.asked()[..] {
        [(ticket, Request::TestProvider(draft))] => (*ticket, draft.clone()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_screens() {
    let mut stand = Stand::default();
    let mut layer = Setup::new(&mut stand.cx());
    let mut out = stand.screens(&mut layer);
    stand.asked();
    let mut layer = open(&mut stand, &[]);
    out.push_str(&stand.screens(&mut layer));
    let mut layer = open(&mut stand, &["shop"]);
    out.push_str(&stand.screens(&mut layer));
    pick(&mut stand, &mut layer, "openai");
    stand.give(&mut layer, &Input::Paste(SECRET.into()));
    out.push_str(&stand.screens(&mut layer));
    stand.give(&mut layer, &key(KeyCode::Enter));
    out.push_str(&stand.screens(&mut layer));
    stand.answer(&mut layer, Ok(Answer::Tested(wrong_key())));
    out.push_str(&stand.screens(&mut layer));
    stand.give(&mut layer, &key(KeyCode::Char('r')));
    stand.answer(&mut layer, Ok(Answer::Tested(well())));
    out.push_str(&stand.screens(&mut layer));
    stand.give(&mut layer, &key(KeyCode::Enter));
    out.push_str(&stand.screens(&mut layer));
    assert!(!out.contains("very-secret") && !out.contains("6789"), "a key is on no screen");
    compare("layer-providers", &out);
    stand.at_every_size(&mut layer);
}

#[test]
fn somebody_new_chooses_gives_a_key_sees_it_tested_and_has_a_model() {
    let mut stand = Stand::default();
    let mut layer = open(&mut stand, &[]);
    pick(&mut stand, &mut layer, "openai");
    stand.type_text(&mut layer, &format!(" {SECRET}"));
    stand.give(&mut layer, &key(KeyCode::Enter));
    let (ticket, draft) = tested(&mut stand);
    assert_eq!((draft.name.as_str(), draft.base_url.as_deref()), ("openai", Some("https://api.openai.com/v1")));
    assert_eq!(draft.api_key.as_ref().map(|key| key.0.as_str()), Some(SECRET));
    assert!(!format!("{draft:?}").contains("secret"), "{draft:?}");
    layer.answer(ticket, Ok(Answer::Tested(wrong_key())), &mut stand.cx());
    // What is wrong is said; Enter saves nothing that does not work.
    let now = stand.screen(&mut layer, 80, 24);
    assert!(now.contains("✗ answer") && now.contains("→ it was sent with a key; give another"), "{now}");
    stand.give(&mut layer, &key(KeyCode::Enter));
    assert_eq!(stand.asked(), []);
    // Back at the form everything is still there.
    stand.give(&mut layer, &key(KeyCode::Esc));
    stand.type_text(&mut layer, "X");
    stand.give(&mut layer, &key(KeyCode::Enter));
    let (ticket, draft) = tested(&mut stand);
    assert_eq!(draft.api_key.map(|key| key.0), Some(format!("{SECRET}X")));
    layer.answer(ticket, Ok(Answer::Tested(well())), &mut stand.cx());
    stand.give(&mut layer, &key(KeyCode::Enter));
    stand.give(&mut layer, &key(KeyCode::Down));
    stand.give(&mut layer, &key(KeyCode::Enter));
    let asked = stand.asked();
    let [(ticket, Request::SaveProvider(draft))] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(draft.model.as_deref(), Some("gpt-\u{1b}[2Jodd"));
    assert!(matches!(
        layer.answer(*ticket, Ok(Answer::Providers(configured(&["openai"]))), &mut stand.cx()),
        Outcome::Closed
    ));
    assert!(stand.said()[0].starts_with("openai is set up with gpt-"));
}

#[test]
fn each_choice_makes_its_draft() {
    for (filter, written, name, url, key_of) in [
        ("ollama", "", "ollama", "http://127.0.0.1:11434/v1", None),
        ("groq", "", "groq", "https://api.groq.com/openai/v1", Some("env GROQ_API_KEY")),
        ("openai", "$MY_KEY", "openai", "https://api.openai.com/v1", Some("env MY_KEY")),
        ("openai", "sk-1", "openai", "https://api.openai.com/v1", Some("key sk-1")),
        ("vllm", "", "vllm", "http://127.0.0.1:8000/v1", None),
    ] {
        let mut stand = Stand::default();
        let mut layer = open(&mut stand, &[]);
        pick(&mut stand, &mut layer, filter);
        stand.type_text(&mut layer, written);
        stand.give(&mut layer, &key(KeyCode::Enter));
        let (_, draft) = tested(&mut stand);
        let key =
            draft.api_key.map(|key| format!("key {}", key.0)).or(draft.api_key_env.map(|var| format!("env {var}")));
        assert_eq!(
            (draft.name.as_str(), draft.base_url.as_deref(), key.as_deref()),
            (name, Some(url), key_of),
            "{filter}"
        );
    }
    // A name that is taken is not taken again.
    let mut stand = Stand::default();
    let mut layer = open(&mut stand, &["ollama"]);
    pick(&mut stand, &mut layer, "Ollama at");
    stand.give(&mut layer, &key(KeyCode::Enter));
    assert_eq!(tested(&mut stand).1.name, "ollama-2");
}

#[test]
fn a_form_says_which_field_is_wrong_and_goes_there() {
    let mut stand = Stand::default();
    let mut layer = open(&mut stand, &["mine"]);
    pick(&mut stand, &mut layer, "address of your own");
    let enter = |stand: &mut Stand, layer: &mut Setup| {
        stand.give(layer, &key(KeyCode::Enter));
        stand.screen(layer, 80, 24)
    };
    assert!(enter(&mut stand, &mut layer).contains("A name has no blanks"));
    stand.type_text(&mut layer, "mine");
    // Enter goes on to what is not filled yet.
    assert!(!enter(&mut stand, &mut layer).contains("begins with"));
    stand.type_text(&mut layer, "10.0.0.7");
    assert!(enter(&mut stand, &mut layer).contains("An address begins with http:// or https://."));
    stand.give(&mut layer, &key(KeyCode::Home));
    stand.type_text(&mut layer, "http://");
    assert!(enter(&mut stand, &mut layer).contains("There is a provider \"mine\" already"));
    stand.type_text(&mut layer, "2");
    enter(&mut stand, &mut layer);
    let draft = tested(&mut stand).1;
    assert_eq!((draft.name.as_str(), draft.base_url.as_deref()), ("mine2", Some("http://10.0.0.7")));
    let mut layer = open(&mut stand, &[]);
    pick(&mut stand, &mut layer, "openai");
    assert!(enter(&mut stand, &mut layer).contains("It needs a key"));
    stand.type_text(&mut layer, "two words");
    assert!(enter(&mut stand, &mut layer).contains("A key has no blanks"));
}

#[test]
fn a_configured_one_is_tested_and_never_written() {
    let mut stand = Stand::default();
    let mut layer = open(&mut stand, &["shop"]);
    pick(&mut stand, &mut layer, "shop");
    let (ticket, draft) = tested(&mut stand);
    assert_eq!(draft, ProviderDraft { name: "shop".into(), ..ProviderDraft::default() });
    layer.answer(ticket, Ok(Answer::Tested(wrong_key())), &mut stand.cx());
    stand.give(&mut layer, &key(KeyCode::Char('s')));
    assert_eq!(stand.asked(), []);
    stand.give(&mut layer, &key(KeyCode::Esc));
    assert!(matches!(layer.page, Page::Choice));
}

#[test]
fn a_server_that_is_down_can_be_saved_and_what_fails_is_said() {
    let mut stand = Stand::default();
    let mut layer = open(&mut stand, &[]);
    pick(&mut stand, &mut layer, "vllm");
    stand.give(&mut layer, &key(KeyCode::Enter));
    let (old, _) = tested(&mut stand);
    let refused = ApiError::new(ApiErrorCode::Internal, "the server broke\u{7}");
    layer.answer(old, Err(refused), &mut stand.cx());
    assert!(stand.screen(&mut layer, 80, 24).contains("It could not be tested: the server broke\\x07"));
    stand.give(&mut layer, &key(KeyCode::Char('s')));
    let asked = stand.asked();
    let [(saving, Request::SaveProvider(draft))] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(draft.model, None);
    // An old answer is nobody's.
    assert!(matches!(layer.answer(old, Ok(Answer::Tested(well())), &mut stand.cx()), Outcome::Passed));
    let refused = ApiError::new(ApiErrorCode::Configuration, "config.jsonc:3: this is not JSON");
    layer.answer(*saving, Err(refused), &mut stand.cx());
    assert!(stand.screen(&mut layer, 80, 24).contains("Not saved: config.jsonc:3"));
}
