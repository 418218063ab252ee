//! Searching on several threads gives what one gives, and stops where that stops.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use hames_protocol::{BlobSource, BlobStore, ChangeProposed, Envelope, MemoryBlobs, SessionState, ToolErrorClass};
use hames_tools::{
    DirEntry, Expect, FileStat, FsError, FsPath, FsProvider, Preview, Staged, Tool, ToolCx, ToolFailure, WalkEntry,
    WalkOptions,
};
use hames_workspace::files::{MemoryFs, Overlay};
use hames_workspace::search::Grep;
use serde_json::{Value, json};

use crate::bench::Bench;

/// Files of the large tree: many times what threads take at once.
const FILES: usize = 600;

/// Files that threads may have opened beyond the one where the search stops: what they hold and what waits for its turn.
const AHEAD: usize = 2 * 32 * 8 + 32;

/// Text in which the words are spread unevenly; some files are binary, some only from their middle on.
fn content(n: usize) -> Vec<u8> {
    let mut text = String::new();
    for line in 0..(n * 7) % 23 {
        let word = ["plain", "needle", "other needle", "Needle and more", "end"][(n + line * line) % 5];
        writeln!(text, "{line} {word} of {n}").unwrap();
    }
    let mut bytes = text.into_bytes();
    match n % 41 {
        5 => bytes.extend(b"needle\0needle\n"),
        6 => bytes.splice(0..0, *b"\0\x01").for_each(drop),
        7 => bytes = vec![b'a'; 70_000].into_iter().chain(*b"\nneedle\n\0").collect(),
        8 => bytes = String::from_utf8(bytes).unwrap().replace('\n', "\r\n").into_bytes(),
        _ => {}
    }
    bytes
}

fn large_tree() -> Bench {
    let bench = Bench::new(&[(".gitignore", "*.log\n"), ("hidden.log", "needle\n")]);
    for n in 0..FILES {
        bench.write(&format!("d{}/e{}/f{n}.txt", n % 7, n % 13), &content(n));
    }
    // Too large for threads, with matches at its end; and too large for any search.
    let large = [vec![b'.'; 3 << 20], b"\nneedle at the end\n".to_vec(), vec![b'.'; 2 << 20]].concat();
    bench.write("d3/large.txt", &large);
    let huge = std::fs::File::create(bench.path("d5/huge.txt")).unwrap();
    huge.set_len((50 << 20) + 1).unwrap();
    bench
}

/// On its own thread, as the tool is when nobody waits for it there.
fn run(grep: &Grep, input: &Value, cx: &ToolCx) -> Result<String, ToolFailure> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(grep.run(input, cx)).map(|output| output.text)
}

#[test]
fn the_answer_is_the_same_on_any_number_of_threads() {
    let bench = large_tree();
    for input in [
        json!({"pattern": "needle"}),
        json!({"pattern": "needle", "mode": "count", "limit": 5000}),
        json!({"pattern": "needle", "mode": "files"}),
        json!({"pattern": "needle", "mode": "files", "offset": 300, "limit": 7}),
        json!({"pattern": "NEEDLE", "ignore_case": true, "context": 2, "limit": 5}),
        json!({"pattern": "needle", "offset": 1000, "limit": 3, "context": 1}),
        json!({"pattern": "needle", "offset": 1_000_000}),
        json!({"pattern": "needle", "no_ignore": true, "glob": "*.log"}),
        json!({"pattern": "at the end"}),
        json!({"pattern": "needle of 77\n"}),
        json!({"pattern": r"plain[^\n]*\n[^\n]*needle", "limit": 4}),
        json!({"pattern": "no such words"}),
        json!({"pattern": "needle", "path": "d3", "limit": 2}),
        json!({"pattern": "needle", "path": "d3/large.txt"}),
    ] {
        let one = run(&Grep::with_threads(1), &input, &bench.cx).unwrap();
        for threads in [2, 5] {
            let more = run(&Grep::with_threads(threads), &input, &bench.cx).unwrap();
            assert_eq!(more, one, "{input} on {threads}");
        }
    }
}

#[test]
fn counting_ends_at_the_same_match() {
    let bench = Bench::new(&[]);
    // The limit of 100,000 is reached in the middle of a file, and behind that one is a binary file with matches.
    for n in 0..400 {
        bench.write(&format!("f{n:03}.txt"), "x needle\n".repeat(333).as_bytes());
    }
    bench.write("f300a.txt", b"needle\nneedle\0");
    for input in [
        json!({"pattern": "needle", "mode": "count", "limit": 5000}),
        json!({"pattern": "needle", "offset": 99_990, "limit": 20}),
        json!({"pattern": "x needle\nx", "mode": "count", "limit": 5000}),
    ] {
        let one = run(&Grep::with_threads(1), &input, &bench.cx).unwrap();
        assert!(one.contains("(stopped after 100000 matches") || input["pattern"] != "needle", "{one}");
        assert_eq!(run(&Grep::with_threads(2), &input, &bench.cx).unwrap(), one, "{input}");
    }
}

/// What happens when a file is opened: how many were before, and the file.
type OnOpen = Box<dyn Fn(usize, &FsPath) + Send + Sync>;

/// A filesystem that is watched as it is read.
struct Watched {
    inner: Arc<dyn FsProvider>,
    opened: AtomicUsize,
    threads: Mutex<HashSet<ThreadId>>,
    on_open: OnOpen,
}

impl Watched {
    fn over(inner: Arc<dyn FsProvider>, on_open: impl Fn(usize, &FsPath) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { inner, opened: AtomicUsize::new(0), threads: Mutex::default(), on_open: Box::new(on_open) })
    }

    fn opened(&self) -> usize {
        self.opened.load(Ordering::SeqCst)
    }
}

impl FsProvider for Watched {
    fn root(&self) -> &Path {
        self.inner.root()
    }
    fn resolve(&self, path: &str) -> Result<FsPath, FsError> {
        self.inner.resolve(path)
    }
    fn resolve_entry(&self, path: &str) -> Result<FsPath, FsError> {
        self.inner.resolve_entry(path)
    }
    fn stat(&self, path: &FsPath) -> Result<FileStat, FsError> {
        self.inner.stat(path)
    }
    fn shared_identity(&self, path: &FsPath) -> Option<(u64, u64)> {
        self.inner.shared_identity(path)
    }
    fn open(&self, path: &FsPath) -> Result<Box<dyn Read + Send>, FsError> {
        self.threads.lock().unwrap().insert(std::thread::current().id());
        (self.on_open)(self.opened.fetch_add(1, Ordering::SeqCst), path);
        self.inner.open(path)
    }
    fn list(&self, path: &FsPath) -> Result<Vec<DirEntry>, FsError> {
        self.inner.list(path)
    }
    fn stage_write(
        &self,
        path: &FsPath,
        content: &[u8],
        expect: &Expect,
        mode: Option<u32>,
    ) -> Result<Box<dyn Staged>, FsError> {
        self.inner.stage_write(path, content, expect, mode)
    }
    fn stage_remove(&self, path: &FsPath, expect: &Expect) -> Result<Box<dyn Staged>, FsError> {
        self.inner.stage_remove(path, expect)
    }
    fn walk(
        &self,
        from: &FsPath,
        options: &WalkOptions,
        visit: &mut dyn FnMut(WalkEntry) -> ControlFlow<()>,
    ) -> Result<(), FsError> {
        self.inner.walk(from, options, visit)
    }
}

/// Files in memory, all with the same content.
fn in_memory(files: usize, content: &str) -> Arc<dyn FsProvider> {
    let fs = MemoryFs::default();
    for n in 0..files {
        let path = fs.resolve(&format!("f{n:05}.txt")).unwrap();
        fs.write(&path, content.as_bytes(), &Expect::Absent, &mut |_| Ok(())).unwrap();
    }
    Arc::new(fs)
}

fn cx(fs: Arc<dyn FsProvider>) -> ToolCx {
    ToolCx { fs, ..Bench::new(&[]).cx }
}

#[test]
fn a_small_tree_is_searched_by_one_thread_and_a_large_one_by_several() {
    for (files, large) in [(100, false), (3000, true)] {
        // The first to come waits for another, so that chance does not decide how many come.
        let seen = Arc::new(std::sync::Barrier::new(2));
        let first = Mutex::new(HashSet::new());
        let fs = Watched::over(in_memory(files, "needle\n"), move |_, _| {
            let is_new = first.lock().unwrap().insert(std::thread::current().id());
            if large && is_new && first.lock().unwrap().len() <= 2 {
                seen.wait();
            }
        });
        let found =
            run(&Grep::with_threads(2), &json!({"pattern": "needle", "mode": "files", "limit": 9}), &cx(fs.clone()));
        assert!(found.unwrap().contains(&format!("of {files};")));
        assert_eq!(fs.threads.lock().unwrap().len() > 1, large, "{files}");
        assert_eq!(fs.opened(), files, "no file that is only counted is looked at twice");
    }
}

#[test]
fn nobody_runs_on_once_the_answer_is_known() {
    // 100,000 matches are in the first few files.
    let fs = Watched::over(in_memory(5000, &"needle\n".repeat(5000)), |_, _| ());
    let text = run(&Grep::with_threads(2), &json!({"pattern": "needle", "mode": "count"}), &cx(fs.clone())).unwrap();
    assert!(text.contains("stopped after 100000 matches"), "{text}");
    assert!(fs.opened() <= 21 + AHEAD, "{} files were opened", fs.opened());
}

#[test]
fn a_cancelled_search_ends_wherever_it_is() {
    for at in [0, 40, 700] {
        let bench = Bench::new(&[]);
        let cancel = bench.cx.cancel.clone();
        let fs = Watched::over(in_memory(5000, "nothing here\n"), move |before, _| {
            if before == at {
                cancel.cancel();
            }
        });
        let cx = ToolCx { fs: fs.clone(), ..bench.cx.clone() };
        let failure = run(&Grep::with_threads(2), &json!({"pattern": "needle"}), &cx).unwrap_err();
        assert_eq!(failure.class, ToolErrorClass::Cancelled);
        assert!(fs.opened() <= at + AHEAD, "{} files were opened", fs.opened());
    }
}

#[test]
fn a_thread_that_crashes_is_a_failure_and_no_wait_without_end() {
    for at in ["f00000.txt", "f00300.txt", "f02999.txt"] {
        let fs = Watched::over(in_memory(3000, "nothing here\n"), move |_, path| {
            if path.shown == at {
                std::panic::resume_unwind(Box::new("meant"));
            }
        });
        let failure = run(&Grep::with_threads(2), &json!({"pattern": "needle"}), &cx(fs)).unwrap_err();
        assert!(failure.text.contains("the tool crashed"), "{failure:?}");
    }
}

#[test]
fn proposed_content_is_searched_on_every_thread() {
    let bench = Bench::new(&[]);
    let blobs = Arc::new(MemoryBlobs::default());
    let mut state = SessionState::default();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let root = bench.cx.fs.root().to_owned();
    for n in 0..600 {
        bench.write(&format!("f{n:03}.txt"), b"on the disk\n");
        if n % 3 == 0 {
            continue;
        }
        let content = format!("a needle is proposed, {n}\n").into_bytes();
        let (hash, bytes) = (blake3::hash(&content).to_hex().to_string(), content.len());
        runtime.block_on(blobs.put(&"s".into(), "", BlobSource::Bytes(content))).unwrap();
        let change: ChangeProposed = serde_json::from_value(json!({
            "call_id": "c", "path": root.join(format!("f{n:03}.txt")), "kind": "file", "base": "base", "mode": 0o644,
            "content": {"hash": hash, "bytes": bytes},
        }))
        .unwrap();
        state.apply(&Envelope::detached(0, change.into()));
    }
    // Made outside of any runtime: it takes the one that whoever reads is in.
    let fs = Overlay::default().over(bench.cx.fs.clone(), Arc::new(Mutex::new(state)), blobs);
    let cx = ToolCx { fs, ..bench.cx.clone() };
    for input in [json!({"pattern": "needle", "mode": "count", "limit": 1000}), json!({"pattern": "needle"})] {
        let one = run(&Grep::with_threads(1), &input, &cx).unwrap();
        assert!(one.contains("f001.txt") && !one.contains("f003.txt") && !one.contains("could not"), "{one}");
        assert_eq!(run(&Grep::with_threads(2), &input, &cx).unwrap(), one);
    }
}
