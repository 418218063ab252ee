use hames_protocol::api::{ModelRow, Models as List};
use serde_json::{Value, json};

use super::super::models::Models;
use super::*;

fn model(name: &str, window: Option<u64>, facts: Value) -> ModelRow {
    let max_output_tokens = facts["max_output"].as_u64();
    ModelRow { model: name.parse().unwrap(), context_window: window, max_output_tokens, facts }
}

fn models() -> List {
    let price = json!({"input": 2.5, "output": 15.0, "cache_read": 0.25});
    List {
        models: vec![
            model(
                "shop/large",
                Some(1_050_000),
                json!({"max_output": 128_000, "price": price, "tools": true, "images": true, "reasoning": true}),
            ),
            model(
                "shop/small",
                Some(128_000),
                json!({"price": {"input": 0.075, "output": 0.3}, "tools": true, "images": false}),
            ),
            model("bench/qwen3:0.6b", Some(40_960), json!({"context_window_from": "trained", "max_output": 2_048})),
            model(&format!("bench/{ODD}"), None, json!({})),
        ],
        default: Some("shop/large".into()),
    }
}

fn open(stand: &mut Stand) -> Models {
    let mut layer = Models::open(&mut stand.cx());
    stand.answer(&mut layer, Ok(Answer::Models(models())));
    layer
}

#[test]
fn models_stand_under_their_providers_and_the_one_in_use_is_marked_and_chosen() {
    let mut stand = Stand::showing(row("s1", "mend the lathe"));
    let mut layer = open(&mut stand);
    let shown = stand.screens(&mut layer);
    assert!(shown.contains("› ● small"));
    compare("layer-models", &shown);
    stand.at_every_size(&mut layer);
}

#[test]
fn a_chosen_model_is_set_and_a_run_that_goes_on_keeps_its_own() {
    let mut stand = Stand::showing(row("s1", "mend the lathe"));
    let mut layer = open(&mut stand);
    stand.type_text(&mut layer, "large");
    assert_eq!(went(&stand.give(&mut layer, &key(KeyCode::Enter))), "closed");
    assert_eq!(stand.said(), ["shop/large from now on."]);
    let [Effect::Set(change, unset)] = &effects(&mut stand)[..] else { panic!() };
    assert_eq!((change.model.clone(), unset.len()), ("shop/large".parse().ok(), 0));

    let mut layer = open(&mut stand);
    stand.type_text(&mut layer, "bench qwen");
    assert!(stand.screen(&mut layer, 80, 22).contains("1 of 4"));
    assert_eq!(went(&stand.give(&mut layer, &key(KeyCode::Esc))), "closed");
}

#[test]
fn nothing_to_choose_and_a_list_that_cannot_be_had_say_what_to_do_next() {
    let mut stand = Stand::default();
    let mut layer = Models::open(&mut stand.cx());
    stand.answer(&mut layer, Ok(Answer::Models(List { models: vec![], default: None })));
    assert!(stand.screen(&mut layer, 80, 22).contains("No provider lists a model. /providers sets one up."));
    let mut layer = Models::open(&mut stand.cx());
    stand.answer(&mut layer, refusal(ApiErrorCode::Configuration, "config.jsonc, line 3: no such key."));
    let shown = stand.screen(&mut layer, 120, 22);
    assert!(shown.contains("line 3: no such key. Ctrl+L asks again."), "{shown}");
    assert_eq!(went(&stand.give(&mut layer, &key(KeyCode::Enter))), "taken");
    stand.give(&mut layer, &ctrl('l'));
    stand.give(&mut layer, &ctrl('l'));
    stand.answer(&mut layer, Ok(Answer::Models(models())));
    assert!(stand.screen(&mut layer, 80, 22).contains("large"));
}

#[test]
fn an_answer_of_another_question_changes_nothing() {
    let mut stand = Stand::default();
    let mut layer = Models::open(&mut stand.cx());
    let (ticket, _) = one(&mut stand);
    assert_eq!(went(&layer.answer(Ticket(ticket.0 + 1), Ok(Answer::Models(models())), &mut stand.cx())), "passed");
    assert_eq!(went(&layer.answer(ticket, Ok(Answer::Models(models())), &mut stand.cx())), "taken");
    assert_eq!(went(&layer.answer(ticket, Ok(Answer::Models(models())), &mut stand.cx())), "passed");
}
