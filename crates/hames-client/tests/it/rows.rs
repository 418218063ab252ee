//! Every method of the client asks for a row of the table, and every row has a method.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use hames_client::{BodyStream, Client, ClientError, LogRange, Transport, Upload};
use hames_protocol::api::endpoint::{Body, ENDPOINTS, Endpoint};
use hames_protocol::api::*;
use hames_protocol::{CallId, Decision, PendingId, RunId, SessionId};
use http::{Request, Response};

/// Writes down what is asked for.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<Asked>>>);

/// Method, target, media type.
type Asked = (String, String, Option<String>);

#[async_trait]
impl Transport for Recorder {
    async fn send(&self, request: Request<Upload>) -> Result<Response<BodyStream>, ClientError> {
        let media_type = request.headers().get("content-type").map(|value| value.to_str().unwrap().to_owned());
        let asked = (request.method().to_string(), request.uri().to_string(), media_type);
        self.0.lock().unwrap().push(asked);
        Err(ClientError::Lost("nobody answers".into()))
    }

    fn place(&self) -> String {
        "nowhere".into()
    }
}

fn row(method: &str, target: &str) -> Option<&'static Endpoint> {
    let path = target.split('?').next().unwrap();
    // A path without parameters goes before one that has them, as in the router.
    let fits = |row: &&Endpoint| row.method.as_str() == method && segments_fit(row.path, path);
    ENDPOINTS.iter().filter(fits).min_by_key(|row| row.path_parameters().count())
}

fn segments_fit(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<_>, Vec<_>) = (pattern.split('/').collect(), path.split('/').collect());
    pattern.len() == path.len() && pattern.iter().zip(&path).all(|(want, have)| want.starts_with('{') || want == have)
}

#[tokio::test]
async fn methods_and_rows_are_the_same_and_parameters_have_the_names_of_their_row() {
    let recorder = Recorder::default();
    let client = Client::new(Arc::new(recorder.clone()));
    let (id, text) = (SessionId::from("a/b ?#%ü"), || String::from("t"));
    macro_rules! ask { ($($asked:expr;)*) => { $( drop($asked.await.err().unwrap()); )* } }
    ask! {
        client.health();
        client.status();
        client.stop_server(&StopServer { force: false, when_idle: false });
        client.sessions(Some("/f"));
        client.create_session(&CreateSession { folder: text(), name: None, settings: Default::default() });
        client.import_session("/f", Upload::empty());
        client.session(&id);
        client.rename_session(&id, &RenameSession { name: text() });
        client.delete_session(&id);
        client.change_settings(&id, &ChangeSettings { settings: Default::default(), unset: vec![] });
        client.branch_session(&id, &BranchSession { up_to_seq: None, name: None });
        client.cut_session(&id, &CutSession { from_seq: 2 });
        client.move_session(&id, &MoveSession { folder: text() });
        client.log(&id, LogRange { before: Some(1), after: Some(2), limit: Some(3) });
        client.send(&id, &serde_json::from_str(r#"{"parts":[]}"#).unwrap());
        client.pending(&id);
        client.edit_pending(&id, &PendingId::from("p"), &serde_json::from_str("{}").unwrap());
        client.cancel_pending(&id, &PendingId::from("p"));
        client.pause_pending(&id, &PausePending { paused: true });
        client.abort(&id, &Abort { scope: AbortScope::All, ..Abort::default() });
        client.waiting(&id);
        client.answer_approval(&id, &CallId::from("c"), &AnswerApproval { digest: text(), decision: Decision::Deny, by: None });
        client.answer_question(&id, &CallId::from("c"), &AnswerQuestion { digest: None, answer: text(), by: None });
        client.decide_proposals(&id, &DecideProposals { run: RunId::from("r"), decision: ProposalsDecision::Keep });
        client.changes(&id);
        client.apply_changes(&id, &ChangePathsGiven { paths: vec![] });
        client.discard_changes(&id, &ChangePathsGiven { paths: vec![] });
        client.context(&id);
        client.preview_context(&id, &ChangeSettings { settings: Default::default(), unset: vec![] });
        client.compact(&id);
        client.add_pin(&id, &AddPin { target: hames_protocol::PinTarget::Message { seq: 2 } });
        client.remove_pin(&id, 3);
        client.files(&id, "src", Some(5));
        client.attach(&id, "a b.png", Some("image/png"), Upload::empty());
        client.blob(&id, "out-1", 0, 10);
        client.ledgers(&id);
        client.ledger(&id, &RunId::from("r"));
        client.search("words", Some("/f"), Some(5));
        client.models();
        client.providers();
        client.save_provider(&ProviderDraft::default());
        client.known_providers();
        client.test_provider(&ProviderDraft::default());
        client.settings();
        client.database();
        client.vacuum();
    }
    drop(client.export_session(&id).await.err().unwrap());
    drop(client.events(&id, 7).next().await);

    let asked = recorder.0.lock().unwrap().clone();
    let mut met = BTreeSet::new();
    for (method, target, media_type) in asked {
        let row = row(&method, &target).unwrap_or_else(|| panic!("there is no row for {method} {target}"));
        met.insert(row.name);
        let expected = match row.body {
            Body::Nothing => None,
            Body::Json(_) => Some("application/json"),
            Body::Bytes { .. } => Some("application/octet-stream"),
            Body::Lines => Some("application/x-ndjson"),
        };
        assert_eq!(media_type.as_deref(), expected, "{method} {target}");
        for pair in target.split_once('?').map_or("", |(_, query)| query).split('&').filter(|pair| !pair.is_empty()) {
            let name = pair.split('=').next().unwrap();
            assert!(row.query.iter().any(|parameter| parameter.name == name), "{method} {target}: {name}");
        }
    }
    let rows: BTreeSet<_> = ENDPOINTS.iter().map(|row| row.name).collect();
    assert_eq!(met, rows);
}
