//! The tools over proposals: the same results, recorded as proposed, and the disk as it was.

use std::os::unix::fs::symlink;

use hames_protocol::{ChangeKind, ChangeProposed, Event};
use hames_tools::Preview;
use hames_workspace::files::Overlay;
use serde_json::json;

use super::kit::{Bench, tree};

fn proposals(bench: &Bench) -> Vec<ChangeProposed> {
    let events = bench.recorder.events.lock().unwrap();
    let proposed = |event: &Event| match event {
        Event::ChangeProposed(change) => Some(change.clone()),
        _ => None,
    };
    events.iter().filter_map(proposed).collect()
}

fn hash(content: &str) -> Option<String> {
    Some(blake3::hash(content.as_bytes()).to_hex().to_string())
}

#[tokio::test]
async fn what_is_only_proposed_says_so_and_is_recorded_as_such() {
    let mut bench = Bench::new();
    bench.file("f", "one\n");
    bench.file("gone", "x\ny\n");
    bench.file("d/a", "a");
    bench.file("d/sub/b", "b");
    symlink("f", bench.path("link")).unwrap();
    bench.cx.fs = Overlay::default().over(bench.fs.clone(), bench.cx.state.clone(), bench.blobs.clone());
    let before = tree(&bench.path(""));
    for (tool, input, said) in [
        (
            "StrReplace",
            json!({"path": "f", "old_string": "one", "new_string": "two"}),
            "Proposed f: +1/-1, not written yet\n@@ -1 +1 @@\n-one\n+two\n",
        ),
        ("Write", json!({"path": "new/deep", "content": "1\n2\n"}), "Proposed new/deep: +2/-0, not written yet"),
        (
            "Edit",
            json!({"path": "f", "edits": [{"old_string": "two", "new_string": "three"}]}),
            "Proposed f: +1/-1, not written yet\n@@ -1 +1 @@\n-two\n+three\n",
        ),
        ("Delete", json!({"path": "gone"}), "Proposed to delete gone: -2, still on disk"),
        ("Delete", json!({"path": "link"}), "Proposed to delete the link link, still on disk"),
        ("Write", json!({"path": "d/new", "content": "x"}), "Proposed d/new: +1/-0, not written yet"),
        (
            "Delete",
            json!({"path": "d", "recursive": true}),
            "Proposed to delete d with everything in it (3 files, 1 folder), still on disk",
        ),
        ("Read", json!({"path": "f"}), "1\tthree"),
        ("List", json!({}), "f (6 B)\nnew/"),
    ] {
        assert_eq!(bench.ok(tool, input.clone()).await.text, said, "{tool} {input}");
    }
    for (tool, input, said) in [
        ("Read", json!({"path": "gone"}), "gone does not exist"),
        ("Delete", json!({"path": "gone"}), "gone does not exist"),
        ("Delete", json!({"path": "new"}), "new is a folder that holds 1 entry"),
        ("StrReplace", json!({"path": "d/a", "old_string": "a", "new_string": "b"}), "does not exist"),
    ] {
        let text = bench.refused(tool, input.clone()).await;
        assert!(text.contains(said), "{tool} {input}: {text}");
    }
    assert_eq!(tree(&bench.path("")), before);
    assert_eq!((bench.bytes("f"), bench.changes()), (b"one\n".to_vec(), vec![]));
    let root = std::fs::canonicalize(bench.path("")).unwrap();
    let proposed = proposals(&bench);
    let of = |name: &str| {
        proposed.iter().filter(|change| root.join(name).to_str() == Some(&change.path)).collect::<Vec<_>>()
    };
    let (file, dir, link) = (ChangeKind::File, ChangeKind::Dir, ChangeKind::Link);
    for (name, kind, base, content) in [
        ("f", file, hash("one\n"), Some("three\n")),
        ("new/deep", file, None, Some("1\n2\n")),
        ("gone", file, hash("x\ny\n"), None),
        ("link", link, hash("f"), None),
        ("d/a", file, hash("a"), None),
        ("d/sub/b", file, hash("b"), None),
        ("d/sub", dir, None, None),
        ("d", dir, None, None),
    ] {
        let change = of(name).pop().unwrap_or_else(|| panic!("{name} is proposed"));
        assert_eq!((change.kind, &change.base), (kind, &base), "{name}");
        let kept = match &change.content {
            Some(content) => Some(bench.blob(&content.hash).await),
            None => None,
        };
        assert_eq!(kept.as_deref(), content.map(str::as_bytes), "{name}");
    }
}
