//! A server with a store of its own, and requests as they are on the wire.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hames_agent::{Clock, SystemClock};
use hames_client::Place;
use hames_protocol::api::{ApiError, Configuration, KnownProviders, Models, ProviderDraft, ProviderTest, Providers};
use hames_protocol::{ErrorClass, Failure, ModelInfo, Settings};
use hames_server::http::{Api, Limits, Listener, ServerInfo};
use hames_server::{Host, Hub, HubOptions, PreparedRun, RunJob};
use hames_store::Store;
use hames_tools::FsProvider;
use hames_workspace::files::{LocalFs, LocalFsOptions};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// An answer that takes longer hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A program without models.
struct Bare;

#[async_trait]
impl Host for Bare {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    fn born(&self, _folder: &Path, asked: &Settings) -> Settings {
        asked.clone()
    }

    fn effective(&self, _folder: &Path, settings: &Settings) -> Settings {
        settings.clone()
    }

    fn model_info(&self, _effective: &Settings) -> Option<ModelInfo> {
        None
    }

    async fn prepare(&self, _job: RunJob) -> Result<PreparedRun, Failure> {
        Err(Failure::new(ErrorClass::Configuration, "no model is configured"))
    }

    fn files(&self, folder: &Path) -> Result<Arc<dyn FsProvider>, Failure> {
        match LocalFs::new(folder, LocalFsOptions::default()) {
            Ok(files) => Ok(Arc::new(files)),
            Err(error) => Err(Failure::new(ErrorClass::Configuration, error.to_string())),
        }
    }

    async fn models(&self) -> Result<Models, Failure> {
        Ok(Models { models: Vec::new(), default: None })
    }

    async fn providers(&self) -> Result<Providers, Failure> {
        Ok(Providers { providers: Vec::new() })
    }

    async fn save_provider(&self, draft: ProviderDraft) -> Result<Providers, Failure> {
        Err(Failure::new(ErrorClass::Configuration, format!("No provider {} can be written here.", draft.name)))
    }

    async fn known_providers(&self) -> Result<KnownProviders, Failure> {
        Ok(KnownProviders { local: Vec::new(), known: Vec::new() })
    }

    async fn test_provider(&self, _: ProviderDraft) -> Result<ProviderTest, Failure> {
        Ok(ProviderTest { ok: false, checks: Vec::new(), models: Vec::new(), model: None })
    }

    async fn configuration(&self) -> Result<Configuration, Failure> {
        Ok(Configuration { config: json!({}) })
    }
}

/// A server on a unix socket and on loopback TCP.
pub(crate) struct Served {
    pub(crate) home: tempfile::TempDir,
    pub(crate) api: Api,
    pub(crate) place: Place,
    pub(crate) address: SocketAddr,
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
}

impl Served {
    pub(crate) async fn start() -> Self {
        Self::with(Limits::default()).await
    }

    pub(crate) async fn with(limits: Limits) -> Self {
        let home = tempfile::tempdir().unwrap();
        let place = Place::of(home.path());
        let store = Store::open(home.path()).unwrap().store;
        let hub = Hub::new(store, Arc::new(Bare), HubOptions::default());
        let unix = Listener::unix(&place).await.unwrap().limits(limits);
        let tcp = Listener::tcp("127.0.0.1:0".parse().unwrap(), TOKEN).await.unwrap().limits(limits);
        let address = tcp.address().unwrap();
        let mut info = ServerInfo::new("0.0.0", 1);
        info.socket = unix.place();
        info.listen = Some(tcp.place());
        let api = Api::new(hub, info);
        let stop = CancellationToken::new();
        let tasks = [unix, tcp].into_iter().map(|one| tokio::spawn(one.serve(api.clone(), stop.clone()))).collect();
        Self { home, api, place, address, stop, tasks }
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        for task in self.tasks {
            tokio::time::timeout(PATIENCE, task).await.expect("the server does not end").unwrap();
        }
    }

    /// Sends these bytes over TCP and reads the answer to its end.
    pub(crate) async fn raw(&self, request: impl AsRef<[u8]>) -> Answer {
        let stream = TcpStream::connect(self.address).await.unwrap();
        converse(stream, request.as_ref()).await
    }

    /// A request with host and token, and these headers and body besides.
    pub(crate) async fn ask(&self, method: &str, target: &str, headers: &str, body: &[u8]) -> Answer {
        let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
        let head = format!(
            "{method} {target} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {TOKEN}\r\nconnection: close\r\n{headers}{length}\r\n",
            self.address
        );
        self.raw([head.as_bytes(), body].concat()).await
    }
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    /// 0 where nothing came.
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The refusal, which has to have the one shape.
    pub(crate) fn refusal(&self) -> ApiError {
        assert!(self.head.contains("content-type: application/json"), "{self:?}");
        let refusal: ApiError = serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        assert_eq!(refusal.code.status(), self.status, "{self:?}");
        assert!(!refusal.message.is_empty());
        refusal
    }
}

/// Writes a request and reads until the other side closes. A stream of events is read up to its first frame.
pub(crate) async fn converse(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &[u8]) -> Answer {
    let talking = async {
        // A server that has answered already may read no further.
        let _ = stream.write_all(request).await;
        let mut all = Vec::new();
        let mut piece = vec![0; 16 * 1024];
        while let Ok(count @ 1..) = stream.read(&mut piece).await {
            all.extend_from_slice(&piece[..count]);
            if all.windows(17).any(|window| window == b"text/event-stream") && all.ends_with(b"\n\n\r\n") {
                break;
            }
        }
        all
    };
    let all = tokio::time::timeout(PATIENCE, talking)
        .await
        .unwrap_or_else(|_| panic!("no answer to {:?}", String::from_utf8_lossy(&request[..request.len().min(500)])));
    let end = all.windows(4).position(|window| window == b"\r\n\r\n").map_or(all.len(), |at| at + 4);
    let head = String::from_utf8_lossy(&all[..end]).to_ascii_lowercase();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    Answer { status, head, body: all[end..].to_vec() }
}
