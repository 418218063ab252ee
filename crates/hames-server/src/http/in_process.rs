//! The client in this process: the same router, no wire.

use std::sync::Arc;

use async_trait::async_trait;
use axum::body::Body;
use axum::http::{Request, Response};
use futures_util::{StreamExt, TryStreamExt};
use hames_client::{BodyStream, Client, ClientError, Transport, Upload};
use tower::ServiceExt;

use super::Api;

impl Api {
    /// A client in this process. It behaves as one over a socket does, because the same code answers it.
    pub fn client(&self) -> Client {
        Client::new(Arc::new(InProcess(self.clone())))
    }
}

struct InProcess(Api);

#[async_trait]
impl Transport for InProcess {
    async fn send(&self, request: Request<Upload>) -> Result<Response<BodyStream>, ClientError> {
        let request = request.map(|upload| match upload {
            Upload::Bytes(bytes) => Body::from(bytes),
            Upload::Stream(pieces) => Body::from_stream(pieces),
        });
        let answer = match self.0.router().oneshot(request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        };
        let lost = |error: axum::Error| ClientError::Lost(error.to_string());
        Ok(answer.map(|body| body.into_data_stream().map_err(lost).boxed() as BodyStream))
    }

    fn place(&self) -> String {
        "this process".into()
    }
}
