//! The API over HTTP: the hub's operations under `/v1`, for a unix socket, for loopback TCP, and for clients in this
//! process, which call the very same router.
//!
//! The table of endpoints in `hames-protocol` says what there is; every row has a function in `routes`. What comes in is
//! held to its row (`call`) before the hub sees it, and every refusal has one shape. Whatever changes something goes on
//! in a task of its own: a client that goes away in the middle cuts nothing short.
//!
//! It decides nothing about sessions.

mod beat;
mod call;
mod events;
mod guard;
mod in_process;
mod listen;
mod patience;
mod refusal;
mod routes;
mod status;
mod token;
mod transfer;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use axum::http::{Request, Response};
use axum::routing::{MethodFilter, on};
use futures_util::FutureExt;
use hames_protocol::api::endpoint::{ENDPOINTS, Endpoint, Method};
use hames_protocol::api::{ApiError, ApiErrorCode};

use crate::Hub;
use beat::Beat;
use call::{Answered, Call};
use refusal::{broken, refuse};
use routes::Route;

pub use listen::{Limits, Listener, NoListener};
pub use status::ServerInfo;
pub use token::token;

/// The API of a hub. Clones are the same.
#[derive(Clone)]
pub struct Api {
    app: Arc<App>,
    router: Router,
}

/// What every endpoint may use.
struct App {
    hub: Hub,
    info: ServerInfo,
    beat: Beat,
}

impl Api {
    /// The API of this hub.
    pub fn new(hub: Hub, info: ServerInfo) -> Self {
        let app = Arc::new(App { hub, info, beat: Beat::default() });
        let mut router = Router::new();
        for row in ENDPOINTS {
            if let Some(route) = routes::of(row.name) {
                let app = app.clone();
                let serve = move |request: Request<Body>| serve(app, row, route, request);
                router = router.route(row.path, on(filter(row.method), serve));
            }
        }
        let router = router.fallback(no_such_path).method_not_allowed_fallback(no_such_method);
        Self { app, router }
    }

    /// The hub behind it.
    pub fn hub(&self) -> &Hub {
        &self.app.hub
    }

    /// The router itself: no listener stands in front of it, so nothing is asked for a token.
    pub fn router(&self) -> Router {
        self.router.clone()
    }
}

fn filter(method: Method) -> MethodFilter {
    match method {
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
        Method::Patch => MethodFilter::PATCH,
        Method::Delete => MethodFilter::DELETE,
    }
}

async fn serve(app: Arc<App>, row: &'static Endpoint, route: Route, request: Request<Body>) -> Response<Body> {
    let handled = async move {
        let call = Call::read(app, row, request).await?;
        route(call).await
    };
    // A panic is a fault of ours; it must not look like a broken connection.
    let handled = AssertUnwindSafe(handled).catch_unwind();
    let answered: Answered = match row.method {
        Method::Get => handled.await.unwrap_or_else(|_| Err(broken())),
        // Goes on where its client goes away.
        _ => match tokio::spawn(handled).await {
            Ok(Ok(answered)) => answered,
            Ok(Err(_)) | Err(_) => Err(broken()),
        },
    };
    finish(answered.unwrap_or_else(|refusal| {
        if refusal.code == ApiErrorCode::Internal {
            tracing::error!(endpoint = row.name, %refusal, "a request failed");
        }
        refuse(&refusal)
    }))
}

/// What every answer says: nothing is kept by a cache, and nothing is taken for another type than it says.
fn finish(mut answer: Response<Body>) -> Response<Body> {
    let headers = answer.headers_mut();
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

async fn no_such_path(request: Request<Body>) -> Response<Body> {
    let path: String = request.uri().path().chars().take(200).flat_map(char::escape_debug).collect();
    finish(refuse(&ApiError::new(ApiErrorCode::NotFound, format!("There is no {path} in this API."))))
}

async fn no_such_method(request: Request<Body>) -> Response<Body> {
    let method: String = request.method().as_str().chars().take(50).collect();
    let message = format!("{method} is none of the methods of this path; the header Allow names them.");
    finish(refuse(&ApiError::new(ApiErrorCode::MethodNotAllowed, message)))
}
