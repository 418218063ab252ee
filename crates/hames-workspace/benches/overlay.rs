//! What reading over proposals costs beside reading the disk: `cargo bench -p hames-workspace --bench overlay [-- --json]`.
//!
//! A read is what a tool does: resolve, look, read. The ways are measured turn by turn, so that whatever else the machine
//! does meets all of them; ratios count. Fails where an overlay read
//! costs more than a tenth above a plain one; with `--json` whoever reads the figures holds them to that.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // a measurement that cannot go on has failed, and prints its figures

use std::hint::black_box;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use hames_protocol::{
    BlobRef, BlobSource, BlobStore, ChangeKind, ChangeProposed, Envelope, MemoryBlobs, SessionId, SessionState,
};
use hames_tools::{FsProvider, Preview};
use hames_workspace::files::{LocalFs, LocalFsOptions, Overlay};

/// Files of the workspace, each of a typical source's size.
const FILES: usize = 200;
const BYTES: usize = 8 * 1024;
/// Rounds, in each of which every way reads every file.
const ROUNDS: usize = 200;
/// How much more an overlay read may cost.
const LIMIT: f64 = 1.10;

fn name(number: usize) -> String {
    format!("src/part{}/file{number}.rs", number % 10)
}

/// Microseconds a read takes.
fn round(fs: &dyn FsProvider) -> f64 {
    let began = Instant::now();
    for number in 0..FILES {
        let path = fs.resolve(&name(number)).unwrap();
        assert!(fs.stat(&path).unwrap().size >= BYTES as u64);
        black_box(fs.read(&path, u64::MAX - 1).unwrap());
    }
    began.elapsed().as_secs_f64() * 1e6 / FILES as f64
}

/// A time that the quiet moments of a busy machine come near to.
fn quiet(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 20]
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let content = |number: usize| format!("// {number}\n{}", "x".repeat(BYTES)).into_bytes();
    for number in 0..FILES {
        let path = folder.path().join(name(number));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content(number)).unwrap();
    }
    let disk = Arc::new(LocalFs::new(folder.path(), LocalFsOptions::default()).unwrap());
    let blobs = Arc::new(MemoryBlobs::default());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _inside = runtime.enter();
    let proposed = |count: usize, elsewhere: bool| {
        let mut state = SessionState::default();
        for number in 0..count {
            let content = content(number + 1);
            let hash = blake3::hash(&content).to_hex().to_string();
            let bytes = content.len() as u64;
            runtime.block_on(blobs.put(&SessionId::from("s"), "", BlobSource::Bytes(content))).unwrap();
            let name = if elsewhere { format!("other/{}", name(number)) } else { name(number) };
            let change = ChangeProposed {
                call_id: "c".into(),
                path: disk.root().join(name).to_str().unwrap().to_owned(),
                base: Some("base".into()),
                content: Some(BlobRef { hash, bytes, dropped: 0, name: None }),
                mode: Some(0o644),
                kind: ChangeKind::File,
                folders: Vec::new(),
            };
            state.apply(&Envelope { seq: Some(number as u64 + 1), ..Envelope::detached(0, change.into()) });
        }
        Overlay::default().over(disk.clone(), Arc::new(Mutex::new(state)), blobs.clone())
    };
    let ways: [(&str, Arc<dyn FsProvider>); 4] = [
        ("the disk", disk.clone()),
        ("an overlay without proposals", proposed(0, false)),
        ("files beside 200 proposals", proposed(FILES, true)),
        ("proposed files", proposed(FILES, false)),
    ];
    let mut times: Vec<Vec<f64>> = ways.iter().map(|_| Vec::new()).collect();
    for number in 0..ROUNDS {
        // Each way comes first as often as any other.
        for turn in 0..ways.len() {
            let way = (number + turn) % ways.len();
            times[way].push(round(ways[way].1.as_ref()));
        }
    }
    let times: Vec<f64> = times.into_iter().map(quiet).collect();
    let ratio_of = |us: &f64| us / times[0];
    if std::env::args().any(|arg| arg == "--json") {
        let rows = ways.iter().zip(&times);
        let rows: Vec<_> =
            rows.map(|((name, _), us)| serde_json::json!({"way": name, "us": us, "ratio": ratio_of(us)})).collect();
        println!("{}", serde_json::json!({"ways": rows}));
        return;
    }
    for ((name, _), us) in ways.iter().zip(&times) {
        println!("{us:8.2} us a read  {:5.2} x  {name}", ratio_of(us));
    }
    let too_slow = times.iter().any(|us| ratio_of(us) > LIMIT);
    assert!(!too_slow, "an overlay read costs more than {LIMIT} times a plain one");
}
