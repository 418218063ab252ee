//! Model lists: of an endpoint, of servers of one's own, and of the public catalog.

use hames_model::catalog::{Catalog, Facts, ListedModel, catalog_names, fetch_models_dev, read_models_dev};
use hames_model::{ModelList, ServerKind, list_models};
use hames_protocol::ErrorClass;

use crate::server::*;

fn listed(id: &str, context_window: Option<u64>) -> ListedModel {
    ListedModel { id: id.into(), facts: Facts { context_window, ..Facts::default() } }
}

async fn asked(bodies: &[&str]) -> (ModelList, Vec<String>) {
    let server = Server::start(bodies.iter().map(|body| response(200, "", body)).collect()).await;
    let list = list_models(&server.endpoint()).await.unwrap();
    let lines =
        server.requests().iter().map(|r| format!("{} {}", r.line.trim_end_matches(" HTTP/1.1"), r.body)).collect();
    (list, lines)
}

#[tokio::test]
async fn the_models_of_an_endpoint_are_listed() {
    let list = r#"{"data":[{"id":"a/b","context_length":9000},{"id":"c"}]}"#;
    let replies = vec![
        response(200, "", list),
        response(200, "", "<html>"),
        response(401, "", "{}"),
        vec![send("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{"), Act::Close],
    ];
    let server = Server::start(replies).await;
    let found = list_models(&server.endpoint()).await.unwrap();
    assert_eq!(found.models, [listed("a/b", Some(9000)), listed("c", None)]);
    assert_eq!(server.requests()[0].line, "GET /v1/models HTTP/1.1");
    assert_eq!(server.requests()[0].header("authorization"), Some("Bearer sk-test-secret"));
    for class in [ErrorClass::WrongBaseUrl, ErrorClass::Auth, ErrorClass::Connection] {
        assert_eq!(list_models(&server.endpoint()).await.unwrap_err().class, class);
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_never_comes_or_never_ends_is_given_up() {
    for reply in [
        vec![Act::Hang],
        vec![send("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{"), Act::Hang],
        vec![send(SSE), Act::Repeat(std::time::Duration::from_secs(1), chunk(" "))],
    ] {
        let server = Server::start(vec![reply]).await;
        assert_eq!(list_models(&server.endpoint()).await.unwrap_err().class, ErrorClass::Timeout);
    }
    let endless = vec![send(SSE), Act::Repeat(std::time::Duration::ZERO, chunk([b' '; 65_536]))];
    let server = Server::start(vec![endless]).await;
    assert_eq!(list_models(&server.endpoint()).await.unwrap_err().class, ErrorClass::WrongBaseUrl);
}

#[tokio::test]
async fn a_list_in_pages_is_read_to_its_end_and_no_further() {
    let page = |id: &str, more: bool| {
        format!(r#"{{"data":[{{"id":"{id}","max_input_tokens":5}}],"has_more":{more},"last_id":"{id}"}}"#)
    };
    let (list, lines) = asked(&[&page("a", true), &page("b", true), &page("c", false)]).await;
    assert_eq!(list.models.iter().map(|m| m.id.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(lines, ["GET /v1/models ", "GET /v1/models?after_id=a ", "GET /v1/models?after_id=b "]);
    let same = page("a", true);
    let (list, _) = asked(&vec![same.as_str(); 50]).await;
    assert_eq!(list.models.len(), 20);
}

#[tokio::test]
async fn llama_cpp_tells_the_window_of_a_slot() {
    let list = r#"{"models":[{"name":"m"}],"object":"list","data":[{"id":"m.gguf","owned_by":"llamacpp","meta":{"n_ctx_train":32768}}]}"#;
    let props = r#"{"default_generation_settings":{"n_ctx":4096},"total_slots":4,"modalities":{"vision":false,"audio":false},"chat_template_caps":{"supports_tools":true}}"#;
    let (list, lines) = asked(&[list, props]).await;
    assert_eq!(lines, ["GET /v1/models ", "GET /props "]);
    assert_eq!((list.server, &list.loaded[..]), (Some(ServerKind::LlamaCpp), &["m.gguf".to_owned()][..]));
    let facts = &list.models[0].facts;
    assert_eq!((facts.context_window, facts.trained_window), (Some(4_096), Some(32_768)));
    assert_eq!((facts.images, facts.tools), (Some(false), Some(true)));
}

#[tokio::test]
async fn lm_studio_tells_the_window_a_model_is_loaded_with() {
    let list = r#"{"data":[{"id":"a","owned_by":"organization_owner"},{"id":"b","owned_by":"organization_owner"}]}"#;
    let own = r#"{"data":[{"id":"a","type":"vlm","state":"loaded","max_context_length":32768,"loaded_context_length":8192,"capabilities":["tool_use"]},
        {"id":"b","type":"llm","state":"not-loaded","max_context_length":131072},{"id":"other"}]}"#;
    let (list, lines) = asked(&[list, own]).await;
    assert_eq!(lines[1], "GET /api/v0/models ");
    let [a, b] = [&list.models[0].facts, &list.models[1].facts];
    assert_eq!(
        (a.context_window, a.trained_window, a.images, a.tools),
        (Some(8_192), Some(32_768), Some(true), Some(true))
    );
    assert_eq!((b.context_window, b.trained_window, b.window()), (None, Some(131_072), Some(131_072)));
    assert_eq!((list.server, list.loaded), (Some(ServerKind::LmStudio), vec!["a".to_owned()]));
}

#[tokio::test]
async fn ollama_tells_the_window_of_each_model() {
    let list = r#"{"data":[{"id":"a:8b","owned_by":"library"},{"id":"b","owned_by":"library"},{"id":"c","owned_by":"library"}]}"#;
    let running = r#"{"models":[{"name":"a:8b","model":"a:8b","context_length":4096}]}"#;
    let show = |set: &str| {
        format!(
            r#"{{"parameters":"{set}","model_info":{{"x.context_length":40960}},"capabilities":["completion","tools"]}}"#
        )
    };
    let (list, lines) = asked(&[list, running, &show(""), &show("num_ctx 16384"), "not json"]).await;
    assert_eq!(lines[1..3], ["GET /api/ps ".to_owned(), r#"POST /api/show {"model":"a:8b"}"#.into()]);
    let windows: Vec<_> = list.models.iter().map(|m| (m.facts.context_window, m.facts.trained_window)).collect();
    assert_eq!(windows, [(Some(4_096), Some(40_960)), (Some(16_384), Some(40_960)), (None, None)]);
    assert_eq!((list.models[0].facts.tools, list.models[0].facts.images), (Some(true), Some(false)));
    assert_eq!(list.loaded, ["a:8b"]);
}

#[tokio::test]
async fn a_server_that_has_nothing_to_add_still_gives_its_list() {
    for reply in [response(404, "", "{}"), response(200, "", "<html>"), vec![Act::Close]] {
        let list = r#"{"data":[{"id":"m","owned_by":"llamacpp"}]}"#;
        let server = Server::start(vec![response(200, "", list), reply]).await;
        assert_eq!(list_models(&server.endpoint()).await.unwrap().models, [listed("m", None)]);
    }
}

#[tokio::test]
async fn the_public_catalog_is_fetched_and_anything_else_is_refused() {
    let json = r#"{"acme":{"models":{"m":{"limit":{"context":5000},"cost":{"input":1,"output":2}}}}}"#;
    let replies =
        vec![response(200, "", json), response(200, "", "{}"), response(200, "", "<html>"), response(503, "", "")];
    let server = Server::start(replies).await;
    let url = format!("{}/api.json", server.base_url);
    let catalog = fetch_models_dev(&url, None, "17").await.unwrap();
    assert_eq!(catalog.stamp(), "17");
    assert_eq!(catalog.section("acme").unwrap().find("m").unwrap().context_window, Some(5_000));
    assert_eq!(server.requests()[0].line, "GET /api.json HTTP/1.1");
    assert_eq!(server.requests()[0].header("authorization"), None);
    for _ in 0..3 {
        let failure = fetch_models_dev(&url, None, "17").await.unwrap_err();
        assert!(failure.message.contains("models.dev"), "{failure:?}");
    }
    assert_eq!(fetch_models_dev("no url", None, "").await.unwrap_err().class, ErrorClass::Configuration);
}

/// The snapshot is what the catalog it is made from says, where that catalog is at hand.
#[test]
#[allow(clippy::print_stdout)] // a test that was skipped has to say so
fn the_snapshot_is_what_its_source_says() {
    let Some(data) = std::env::var_os("HAMES_TEST_DATA") else {
        println!("skipped: HAMES_TEST_DATA names no folder");
        return;
    };
    let snapshot = Catalog::embedded();
    let file = std::path::Path::new(&data).join(format!("models/models-dev-{}.json", snapshot.stamp()));
    let source = read_models_dev(&std::fs::read(&file).unwrap(), "").unwrap();
    let mut models = 0;
    for name in catalog_names() {
        let of = |catalog: &Catalog<'_>| {
            catalog.section(name).map(|section| section.models().collect::<Vec<_>>()).unwrap_or_default()
        };
        assert_eq!(of(&snapshot), of(&source), "{name}: run `cargo xtask snapshot {}`", file.display());
        models += of(&source).len();
        // Every model is found under its own name.
        for model in of(&source) {
            assert_eq!(snapshot.section(name).unwrap().find(&model.id), Some(model.facts), "{}", model.id);
        }
    }
    assert!(models > 1_000, "{models}");
}
