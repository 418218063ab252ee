//! Model servers that run on this machine, looked for only where no model is configured: at the ports where such servers
//! usually are, all at once and briefly. What answers is known by its answer, not by its port.

use std::time::Duration;

use hames_model::{Endpoint, ModelList, ServerKind, list_models, model_names};
use hames_protocol::ModelRef;
use tokio::time::timeout;

use crate::config::{LocalServers, Provider};

/// Where one is looked for: what usually is there, and at which port.
const USUAL: [(&str, u16); 3] = [("Ollama", 11_434), ("LM Studio", 1_234), ("llama.cpp", 8_080)];

/// The ports that are looked at, as the configuration has it.
pub(crate) fn ports(setting: &LocalServers) -> Vec<u16> {
    match setting {
        LocalServers::Usual => USUAL.iter().map(|(_, port)| *port).collect(),
        LocalServers::Off => Vec::new(),
        LocalServers::At(ports) => ports.clone(),
    }
}

/// What was looked for, in words: `Ollama (port 11434), …`.
pub(crate) fn looked_for(ports: &[u16]) -> String {
    let shown = |port: &u16| match USUAL.iter().find(|(_, usual)| usual == port) {
        Some((name, _)) => format!("{name} (port {port})"),
        None => format!("port {port}"),
    };
    ports.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// How long all of it may take: a server on this machine that does not answer by then is busy with something else.
const PATIENCE: Duration = Duration::from_millis(300);
/// How long a server that was found may take to tell its windows.
const DETAILS_PATIENCE: Duration = Duration::from_millis(1_000);

/// A server that was found, with a model to use.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) provider: Provider,
    pub(crate) model: ModelRef,
    /// What it calls itself, where that shows.
    pub(crate) title: String,
    pub(crate) list: ModelList,
}

/// The first server that answers with at least one model, in the order of `ports`.
pub(crate) async fn find(ports: &[u16]) -> Option<Found> {
    look(ports, 1).await.pop()
}

/// Every server that answers with at least one model, in the order of `ports`.
pub(crate) async fn all(ports: &[u16]) -> Vec<Found> {
    look(ports, usize::MAX).await
}

async fn look(ports: &[u16], most: usize) -> Vec<Found> {
    let asked: Vec<_> = ports
        .iter()
        .map(|port| {
            let url = format!("http://127.0.0.1:{port}/v1");
            tokio::spawn(async move {
                let mut endpoint = Endpoint::new("local", &url);
                endpoint.timeouts.connect = PATIENCE;
                let names = timeout(PATIENCE, model_names(&endpoint)).await.ok()?.ok()?;
                usable(&names).is_some().then_some((endpoint, names))
            })
        })
        .collect();
    let mut all = Vec::new();
    for answer in asked {
        if all.len() >= most {
            break;
        }
        let Ok(Some((endpoint, names))) = answer.await else { continue };
        // What it says beyond the names is worth a moment, and no more.
        let list = timeout(DETAILS_PATIENCE, list_models(&endpoint)).await.ok().and_then(Result::ok).unwrap_or(names);
        let Some(id) = usable(&list) else { continue };
        let (name, title) = named(list.server, &endpoint.base_url);
        let provider = Provider::at(name, &endpoint.base_url);
        let model = ModelRef { provider: name.into(), id: id.to_owned() };
        all.push(Found { provider, model, title, list });
    }
    all
}

/// The model to use: one that is in memory, else the first that is none for embeddings.
fn usable(list: &ModelList) -> Option<&str> {
    let chats = |id: &&str| !id.to_ascii_lowercase().contains("embed") && !id.chars().any(char::is_control);
    let ids = || list.models.iter().map(|model| model.id.as_str()).filter(chats);
    ids().find(|id| list.loaded.iter().any(|loaded| loaded == id)).or_else(|| ids().next())
}

fn named(server: Option<ServerKind>, url: &str) -> (&'static str, String) {
    let name = match server {
        Some(ServerKind::Ollama) => "ollama",
        Some(ServerKind::LmStudio) => "lmstudio",
        Some(ServerKind::LlamaCpp) => "llamacpp",
        Some(ServerKind::Vllm) => "vllm",
        None => return ("local", format!("a model server at {url}")),
    };
    (name, server.map(|kind| format!("{} at {url}", kind.name())).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use hames_model::catalog::ListedModel;
    use hames_testkit::{Script, blocking};
    use serde_json::json;

    use super::*;

    fn port(base_url: &str) -> u16 {
        base_url.trim_end_matches("/v1").rsplit(':').next().unwrap().parse().unwrap()
    }

    #[test]
    fn a_server_is_known_by_its_answer_and_the_first_with_a_model_is_taken() {
        let page = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let silent = page.local_addr().unwrap().port();
        let empty = blocking(Script::new().models(json!([]))).unwrap();
        let only_embeds = blocking(Script::new().models(json!([{"id": "nomic-embed-text"}]))).unwrap();
        let ollama =
            blocking(Script::new().models(json!([{"id": "bge-embed"}, {"id": "qwen3:8b", "owned_by": "library"}])))
                .unwrap();
        let other = blocking(Script::new().models(json!([{"id": "m"}]))).unwrap();
        let ports: Vec<u16> = [&empty, &only_embeds, &ollama, &other].map(|p| port(&p.base_url())).to_vec();
        let ports = [&[1, silent][..], &ports].concat();
        let runtime = crate::commands::runtime().unwrap();
        let find = |ports: &[u16]| runtime.block_on(find(ports));
        let found = find(&ports).unwrap();
        assert_eq!(found.model.to_string(), "ollama/qwen3:8b");
        assert_eq!(found.provider.base_url, ollama.base_url().replace("localhost", "127.0.0.1"));
        assert!(found.title.starts_with("Ollama at http://127.0.0.1:"));
        let found = find(&[port(&other.base_url())]).unwrap();
        assert_eq!((found.model.to_string().as_str(), found.provider.name.as_str()), ("local/m", "local"));
        assert!(find(&[1, silent]).is_none());
        assert!(find(&[]).is_none());
    }

    #[test]
    fn a_model_in_memory_comes_first() {
        let model = |id: &str| ListedModel { id: id.into(), ..ListedModel::default() };
        let list = |loaded: &[&str]| ModelList {
            models: ["embed-1", "a", "b"].map(model).to_vec(),
            server: None,
            loaded: loaded.iter().map(|id| (*id).to_owned()).collect(),
        };
        assert_eq!(usable(&list(&[])), Some("a"));
        assert_eq!(usable(&list(&["b"])), Some("b"));
        assert_eq!(usable(&list(&["embed-1", "gone"])), Some("a"));
        assert_eq!(usable(&ModelList::default()), None);
    }
}
