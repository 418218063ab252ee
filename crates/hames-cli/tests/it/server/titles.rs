//! A session's name by its own model: only where that is switched on.

use hames_protocol::api::CreateSession;
use hames_protocol::{Delivery, Settings};
use hames_testkit::{ChatRequest, Script, Turn};
use serde_json::json;

use super::{Server, client, message, wait};
use crate::kit::{User, until};

#[test]
fn a_better_name_is_asked_for_only_where_it_is_switched_on() {
    for (titles, name, requests) in [(false, "please look at the parser", 1), (true, "Parser fixes", 2)] {
        let asks_for_a_name =
            |request: &ChatRequest| request.messages()[0].to_string().contains("You name conversations");
        let script = Script::new().models(json!([{"id": "m"}])).respond(move |request: &ChatRequest| {
            Turn::text(if asks_for_a_name(request) { "\"Parser fixes.\"\n" } else { "It is fine." })
        });
        let (user, provider) = User::with(script);
        let of = json!({"base_url": provider.base_url(), "api_key": "k"});
        user.write_config(&json!({"model": "p/m", "providers": {"p": of}, "titles": titles}).to_string());
        let _server = Server::start(&user, &[]);
        wait(async {
            let client = client(&user).await;
            let folder = user.project().to_str().unwrap().to_owned();
            let new = CreateSession { folder, name: None, settings: Settings::default() };
            let id = client.create_session(&new).await.unwrap().row.id;
            message(&client, &id, "please look at the parser", Delivery::Queue).await;
        });
        let row = || user.sessions().remove(0);
        until("the name", || row()["name"] == name);
        until("the answer", || provider.requests().len() == requests);
        for request in provider.requests().iter().filter(|request| asks_for_a_name(request)) {
            assert!(request.messages().len() == 2 && request.last_text().contains("please look at the parser"));
        }
    }
}
