//! The client in this process, over the unix socket and over TCP: one behaviour.

use std::sync::Arc;

use hames_client::{Client, ClientError, LogRange, Socket, Upload};
use hames_protocol::SessionId;
use hames_protocol::api::{ApiErrorCode, CreateSession, SendMessage};

use super::kit::{Served, TOKEN};

#[tokio::test]
async fn a_client_is_answered_alike_in_process_over_the_socket_and_over_tcp() {
    let served = Served::start().await;
    let clients = [
        served.api.client(),
        Client::new(Arc::new(Socket::unix(served.place.sockets()))),
        Client::new(Arc::new(Socket::tcp(served.address, TOKEN).unwrap())),
    ];
    let nobody = SessionId::from("no such/session?ä");
    let mut seen = Vec::new();
    for client in &clients {
        let mut answers = Vec::new();
        answers.push(format!("{:?}", client.health().await));
        let mut status = client.status().await.unwrap();
        status.memory_bytes = None;
        answers.push(format!("{status:?}"));
        answers.push(format!("{:?}", client.session(&nobody).await));
        answers.push(format!("{:?}", client.log(&nobody, LogRange { limit: Some(0), ..LogRange::default() }).await));
        answers.push(format!("{:?}", client.search("", None, None).await));
        let create = CreateSession { folder: "/no/such/folder".into(), name: None, settings: Default::default() };
        answers.push(format!("{:?}", client.create_session(&create).await));
        let message = SendMessage { ..serde_json::from_str(r#"{"parts":[]}"#).unwrap() };
        answers.push(format!("{:?}", client.send(&nobody, &message).await));
        answers.push(format!("{:?}", client.import_session("/no/such/folder", Upload::empty()).await));
        answers.push(format!("{:?}", client.models().await));
        seen.push(answers);
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[0], seen[2]);
    let bad = clients[1].log(&nobody, LogRange { limit: Some(0), ..LogRange::default() }).await.unwrap_err();
    assert_eq!(bad.code(), Some(ApiErrorCode::Invalid));
    let stranger = Client::new(Arc::new(Socket::tcp(served.address, "wrong").unwrap()));
    assert_eq!(stranger.health().await.unwrap_err().code(), Some(ApiErrorCode::Unauthorized));
    let [_, socket, _] = clients;
    served.stop().await;
    assert!(matches!(socket.health().await, Err(ClientError::Unreachable { .. })));
}
