//! Providers set up through the server, as a face does it: tested as a draft, written without harm to the rest of the file,
//! and the key nowhere but there.

use std::path::Path;

use hames_client::ClientError;
use hames_protocol::api::{ApiErrorCode, ApiKey, CheckState, ProviderDraft};
use hames_testkit::{Provider, Script, Turn, blocking};
use serde_json::json;

use super::{Server, client, wait};
use crate::kit::User;

const KEY: &str = "sk-0123456789abcdef-secret";
const FILE: &str = "// mine\n{\n  // where no ports are looked at\n  \"catalog\": {\"local_servers\": false}, \"future\": [1,2 ],\n}\n";

/// Answers those who have the key.
fn shop() -> Provider {
    let script = Script::new().models(json!([{"id": "m-1", "context_length": 9_000}, {"id": "m-2"}]));
    blocking(script.respond(|request| match request.header("authorization") {
        Some(given) if given == format!("Bearer {KEY}") => Turn::text("ok"),
        given => Turn::error(401, json!({"error": {"message": format!("bad key {given:?}")}})),
    }))
    .unwrap()
}

fn draft(url: &str, key: Option<&str>) -> ProviderDraft {
    ProviderDraft {
        name: "shop".into(),
        base_url: Some(url.to_owned()),
        api_key: key.map(|key| ApiKey(key.to_owned())),
        ..ProviderDraft::default()
    }
}

/// Every file below a folder that holds the text.
fn holding(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path, text));
        } else if std::fs::read(&path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(text)) {
            found.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    found
}

#[test]
fn a_provider_is_tested_as_a_draft_then_written_and_its_key_is_in_the_file_alone() {
    let (user, shop) = (User::new().var("HAMES_DEBUG", "1"), shop());
    user.write_config(FILE);
    let _server = Server::start(&user, &[]);
    let url = shop.base_url();
    let config = || std::fs::read_to_string(user.home().join("config.jsonc")).unwrap();
    let mut told = String::new();
    wait(async {
        let client = client(&user).await;
        for (given, ok, failed) in
            [(Some("sk-wrong-0123456789"), false, "answer"), (None, false, "answer"), (Some(KEY), true, "")]
        {
            let found = client.test_provider(&draft(&url, given)).await.unwrap();
            told.push_str(&serde_json::to_string(&found).unwrap());
            let bad = found.checks.iter().find(|check| check.state == CheckState::Failed);
            assert_eq!((found.ok, bad.map_or("", |check| &check.name)), (ok, failed), "{found:?}");
            assert_eq!(found.models, ["m-1", "m-2"]);
            assert!(bad.is_none_or(|check| check.remedy.as_ref().is_some_and(|remedy| !remedy.contains("hames "))));
        }
        assert_eq!(config(), FILE, "a test writes nothing");
        let saved = ProviderDraft { model: Some("m-2".into()), ..draft(&url, Some(KEY)) };
        let providers = client.save_provider(&saved).await.unwrap();
        told.push_str(&serde_json::to_string(&providers).unwrap());
        assert_eq!(
            providers.providers.iter().map(|row| (row.name.as_str(), row.key.as_str())).collect::<Vec<_>>(),
            [("shop", "config")]
        );
        // The configured one by its name alone.
        let found = client.test_provider(&ProviderDraft { name: "shop".into(), ..Default::default() }).await.unwrap();
        told.push_str(&serde_json::to_string(&found).unwrap());
        assert!(found.ok && found.model.as_deref() == Some("m-2"), "{found:?}");
        told.push_str(&serde_json::to_string(&client.settings().await.unwrap()).unwrap());
    });
    let file = config();
    for kept in ["// mine\n", "// where no ports are looked at\n", "\"future\": [1,2 ]", "\"model\": \"shop/m-2\"", KEY]
    {
        assert!(file.contains(kept), "{kept}: {file}");
    }
    assert!(!told.contains("0123456789"), "{told}");
    assert_eq!(user.ok(&["run", "say it"]).out, "ok\n");
    assert_eq!(holding(&user.home(), KEY), ["config.jsonc"]);
    assert_eq!(holding(&user.home(), "sk-wrong-0123456789"), [] as [&str; 0]);
}

#[test]
fn what_cannot_be_written_is_said_and_the_file_stays() {
    let user = User::new();
    user.write_config(FILE);
    let _server = Server::start(&user, &[]);
    let own = |set: fn(&mut ProviderDraft)| {
        let mut own = draft("http://127.0.0.1:1/v1", None);
        set(&mut own);
        own
    };
    wait(async {
        let client = client(&user).await;
        for (draft, says) in [
            (own(|draft| draft.name = String::new()), "a provider's name"),
            (own(|draft| draft.name = "a b".into()), "a provider's name"),
            (own(|draft| draft.name = "a/b".into()), "a provider's name"),
            (own(|draft| draft.base_url = Some("ftp://x".into())), "begins with http"),
            (own(|draft| draft.api_key = Some(ApiKey("two\nlines-of-a-key".into()))), "a key has no blanks"),
            (own(|draft| draft.api_key_env = Some("1 X".into())), "a variable's name"),
        ] {
            for tested in [true, false] {
                let refused = match tested {
                    true => client.test_provider(&draft).await.map(|_| ()),
                    false => client.save_provider(&draft).await.map(|_| ()),
                };
                let Err(ClientError::Refused(refused)) = refused else { panic!("{draft:?}") };
                assert_eq!(refused.code, ApiErrorCode::Invalid);
                assert!(refused.message.contains(says) && !refused.message.contains("lines-of"), "{refused:?}");
            }
        }
        let found = client.test_provider(&own(|_| {})).await.unwrap();
        assert!(!found.ok && found.checks.iter().any(|check| check.state == CheckState::Failed), "{found:?}");
        let known = client.known_providers().await.unwrap();
        assert_eq!(known.local, []);
        let openai = known.known.iter().find(|known| known.name == "openai").unwrap();
        assert_eq!((openai.key_env.as_deref(), openai.has_key), (Some("OPENAI_API_KEY"), false));
    });
    assert_eq!(std::fs::read_to_string(user.home().join("config.jsonc")).unwrap(), FILE);
}

#[test]
fn servers_on_this_machine_are_found_where_they_are_looked_for() {
    let (user, shop) = (User::new(), shop());
    let url = shop.base_url().replace("localhost", "127.0.0.1");
    let port = url.trim_end_matches("/v1").rsplit(':').next().unwrap().to_owned();
    user.write_config(&format!("{{\"catalog\": {{\"local_servers\": [1, {port}]}}}}"));
    let _server = Server::start(&user, &[]);
    let known = wait(async { client(&user).await.known_providers().await.unwrap() });
    let found: Vec<_> = known.local.iter().map(|server| (server.base_url.as_str(), server.models.join(","))).collect();
    assert_eq!(found, [(url.as_str(), "m-1,m-2".to_owned())]);
}
