//! The head of a session stays what it was: tools and system text are kept by hash from the session's first run to the
//! next checkpoint or another model, so that a changed instruction file does not make the whole prefix new. What changed
//! is told in the run's note instead.

use std::sync::Arc;

use hames_protocol::{BlobSource, BlobStore, Head, InstructionFile, ModelRef, SessionId};
use serde::{Deserialize, Serialize};

use hames_protocol::ToolSpec;

/// Bytes of a head that is read back; none is near that.
const MAX_HEAD_BYTES: u64 = 4 << 20;
/// Bytes of one changed instruction file that are told; the rest can be read.
const TOLD_BYTES: usize = 4_000;

/// A head as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    tools: Vec<ToolSpec>,
    system: String,
}

/// The name a head is kept under: one for each stretch of a session between checkpoints and for each model.
fn name(model: &ModelRef, checkpoint: u64) -> String {
    let hash = blake3::hash(model.to_string().as_bytes()).to_hex();
    format!("head-{checkpoint}-{}", &hash.as_str()[..12])
}

/// The head that the session has had since its last checkpoint, where it offers the same tools as `now`; otherwise `now`,
/// which is kept from here on. What cannot be kept or read is no obstacle.
pub(crate) async fn head_of(
    blobs: &dyn BlobStore,
    session: &SessionId,
    model: &ModelRef,
    checkpoint: u64,
    now: &Arc<Head>,
) -> Arc<Head> {
    if let Some(head) = known_head(blobs, session, model, checkpoint, now).await {
        return head;
    }
    let name = name(model, checkpoint);
    let kept = Kept { tools: now.tools.clone(), system: now.system.clone() };
    if let Ok(bytes) = serde_json::to_vec(&kept) {
        let _ = blobs.put(session, &name, BlobSource::Bytes(bytes)).await;
    }
    Arc::clone(now)
}

/// The head that the session has had since its last checkpoint, where one was kept that offers the same tools as `now`.
pub(crate) async fn known_head(
    blobs: &dyn BlobStore,
    session: &SessionId,
    model: &ModelRef,
    checkpoint: u64,
    now: &Arc<Head>,
) -> Option<Arc<Head>> {
    let blob = blobs.named(session, &name(model, checkpoint)).await.ok()??;
    let bytes = blobs.get(&blob.hash, 0, blob.bytes.min(MAX_HEAD_BYTES)).await.ok()?;
    let kept: Kept = serde_json::from_slice(&bytes).ok().filter(|kept: &Kept| kept.tools == now.tools)?;
    let is_now = kept.system == now.system;
    Some(if is_now { Arc::clone(now) } else { Arc::new(Head { tools: kept.tools, system: kept.system }) })
}

/// What a run's note says of instruction files that are not what they were when the last run began, by the text of a head
/// of now.
pub(crate) fn changed_instructions(
    before: &[InstructionFile],
    now: &[InstructionFile],
    system: &str,
) -> Option<String> {
    let hash = |files: &[InstructionFile], path: &str| {
        files.iter().find(|file| file.path == path).map(|file| file.hash.clone())
    };
    let mut told = String::new();
    for file in now.iter().filter(|file| hash(before, &file.path).as_ref() != Some(&file.hash)) {
        let section = section_of(system, &file.path).unwrap_or("");
        match section.len() {
            0 => told.push_str(&format!("\n{} has changed; read it.", file.path)),
            1..=TOLD_BYTES => told.push_str(&format!("\n{section}")),
            _ => told.push_str(&format!("\n{} has changed and is long; read it.", file.path)),
        }
    }
    for file in before.iter().filter(|file| hash(now, &file.path).is_none()) {
        told.push_str(&format!("\n{} is gone; it no longer applies.", file.path));
    }
    (!told.is_empty()).then(|| format!("[Instruction files have changed; this holds from here on:{told}]"))
}

/// The part of a system text that an instruction file is.
fn section_of<'s>(system: &'s str, path: &str) -> Option<&'s str> {
    let path = path.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    let from = system.find(&format!("<instructions file=\"{path}\">"))?;
    let end = "</instructions>";
    let to = from + system[from..].find(end)? + end.len();
    system.get(from..to)
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use hames_protocol::MemoryBlobs;

    use super::*;

    fn head(system: &str, tools: &[&str]) -> Arc<Head> {
        let tool = |name: &&str| ToolSpec {
            name: (*name).to_owned(),
            description: "A tool.".into(),
            parameters: serde_json::Value::Object(serde_json::Map::new()),
        };
        Arc::new(Head { tools: tools.iter().map(tool).collect(), system: system.to_owned() })
    }

    #[tokio::test]
    async fn a_head_stays_until_a_checkpoint_another_model_or_other_tools() {
        let blobs = MemoryBlobs::default();
        let (one, two): (ModelRef, ModelRef) = ("a/m".parse().unwrap(), "a/n".parse().unwrap());
        let session = SessionId::from("s");
        let of = |model: &ModelRef, checkpoint, now: Arc<Head>| {
            let (blobs, session, model) = (&blobs, &session, model.clone());
            async move { head_of(blobs, session, &model, checkpoint, &now).await.system.clone() }
        };
        assert_eq!(of(&one, 0, head("first", &["Read"])).await, "first");
        assert_eq!(of(&one, 0, head("second", &["Read"])).await, "first");
        assert_eq!(of(&two, 0, head("second", &["Read"])).await, "second");
        assert_eq!(of(&one, 9, head("second", &["Read"])).await, "second");
        assert_eq!(of(&one, 9, head("third", &["Read", "Write"])).await, "third");
        assert_eq!(of(&one, 9, head("fourth", &["Read", "Write"])).await, "third");
    }

    #[test]
    fn what_changed_is_told_once_and_in_bounds() {
        let file =
            |path: &str, hash: &str| InstructionFile { path: path.into(), hash: hash.into(), bytes: 1, dropped: 0 };
        let system = "Be brief.\n\n<instructions file=\"/w/AGENTS.md\">\nUse tabs.\n</instructions>";
        let told = |before: &[InstructionFile], now: &[InstructionFile]| changed_instructions(before, now, system);
        let (old, new) = (file("/w/AGENTS.md", "1"), file("/w/AGENTS.md", "2"));
        assert_eq!(told(from_ref(&old), from_ref(&old)), None);
        assert!(told(from_ref(&old), &[new]).unwrap().contains("Use tabs."));
        assert!(told(from_ref(&old), &[]).unwrap().contains("/w/AGENTS.md is gone"));
        assert!(
            told(&[old], &[file("/w/AGENTS.md", "1"), file("/w/x", "1")])
                .unwrap()
                .contains("/w/x has changed; read it")
        );
    }
}
