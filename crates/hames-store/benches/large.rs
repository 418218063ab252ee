//! What a large home costs: `cargo bench -p hames-store --bench large`.
//!
//! Writes its own histories into a temporary folder: a session of 100,000 events whose last page is read, sessions up to
//! `HAMES_BENCH_MB` (1024 by default) of events that are searched for words everybody says and words nobody says, and 200
//! sessions that say things, append and keep their open steps at once. Fails where a page or a search takes 100 ms or more.
//! Appends its figures as a line of JSON to the file that `HAMES_BENCH_REPORT` names.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // a measurement that cannot go on has failed, and prints its figures

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hames_protocol::{
    Durability, Envelope, Event, EventLog, MessageUser, OpenBlock, OpenKind, Part, RunDone, RunResult, SessionId,
    Settings, TextDone, ToolError, ToolErrorClass,
};
use hames_store::{PageAt, SEARCH_PATIENCE, Store};
use serde_json::{Value, json};

const LIMIT: Duration = Duration::from_millis(100);
const PAGE_EVENTS: usize = 200;
const LONG_SESSION: usize = 100_000;
/// Events of one append while histories are written.
const BATCH: usize = 500;
const STREAMING: usize = 200;
const ROUNDS: usize = 50;
/// After so many rounds a run ends and a person says something.
const RUN_ROUNDS: usize = 10;
/// Words that histories are made of; the first are common.
const WORDS: [&str; 24] = [
    "the", "file", "function", "error", "test", "return", "value", "string", "because", "change", "parser", "number",
    "window", "session", "release", "branch", "quick", "memory", "thread", "socket", "handle", "buffer", "garden",
    "river",
];

fn said(n: usize) -> Event {
    // A few hundred bytes of words, other ones every time.
    let words = (0..60).map(|w| WORDS[(n * 31 + w * w * 7 + n / 7) % (6 + (n + w) % 18)]);
    // One in a few speaks Chinese too, with one word in all that nobody else says.
    let chinese = match n {
        31_676 => "麒麟在这里",
        _ if n.is_multiple_of(16) => "修复解析器中的错误并运行测试",
        _ => "",
    };
    let text = format!("{} item{n} {chinese}", words.collect::<Vec<_>>().join(" "));
    Event::TextDone(TextDone { index: 0, text, cut: None })
}

/// The output of a call: the bulk of every history, and never searched.
fn output(bytes: usize) -> Event {
    Event::ToolError(ToolError {
        call_id: "c".into(),
        name: "Shell".into(),
        error: "0123456789abcde\n".repeat(bytes / 16),
        class: ToolErrorClass::Failed,
        blob: None,
        duration_ms: 1,
    })
}

fn envelope(id: &SessionId, at: u64, event: Event) -> Envelope {
    Envelope { session: Some(id.clone()), ..Envelope::detached(at, event) }
}

fn session(store: &Store, folder: &str, at: u64) -> SessionId {
    store.create("s", Path::new(folder), Settings::default(), at, "bench").unwrap().0.id
}

/// The median of some runs.
fn median(mut run: impl FnMut()) -> Duration {
    let mut all: Vec<Duration> = (0..9)
        .map(|_| {
            let began = Instant::now();
            run();
            began.elapsed()
        })
        .collect();
    all.sort_unstable();
    all[all.len() / 2]
}

/// The figures, as they are printed.
#[derive(Default)]
struct Figures(Vec<Value>);

impl Figures {
    /// A time that has to be below the limit.
    fn held(&mut self, what: &str, took: Duration, note: &str) {
        let ms = took.as_secs_f64() * 1e3;
        println!("{what:<60} {ms:>9.2} ms  {note}");
        self.0.push(json!({"what": what, "ms": ms, "limit_ms": LIMIT.as_millis(), "ok": took < LIMIT, "note": note}));
    }

    fn told(&mut self, what: &str, figure: f64, unit: &str) {
        println!("{what:<60} {figure:>9.2} {unit}");
        self.0.push(json!({"what": what, "figure": figure, "unit": unit}));
    }

    fn are_held(&self) -> bool {
        self.0.iter().all(|figure| figure["ok"] != json!(false))
    }
}

fn user(text: &str) -> Event {
    Event::MessageUser(MessageUser {
        parts: vec![Part::text(text)],
        delivery: None,
        pending_id: None,
        idempotency_id: None,
        note: None,
    })
}

/// One of the sessions that go on at once: its open step, what it appends, and what has to outlive the loss of power.
/// Gives the longest time that a plain append took.
async fn goes_on(log: Arc<dyn EventLog>, id: SessionId) -> Duration {
    let (mut next, mut longest) = (2, Duration::ZERO);
    for round in 0..ROUNDS {
        if round % RUN_ROUNDS == 0 {
            log.append(&id, next, vec![envelope(&id, 1, user("go on"))], Durability::Power).await.unwrap();
            next += 1;
        }
        let piece = OpenBlock { kind: OpenKind::Text, index: 0, name: None, text: "so far ".repeat(100) };
        log.save_open(&id, vec![piece]).await.unwrap();
        let began = Instant::now();
        log.append(&id, next, vec![envelope(&id, 1, said(round))], Durability::Process).await.unwrap();
        longest = longest.max(began.elapsed());
        next += 1;
        if round % RUN_ROUNDS == RUN_ROUNDS - 1 {
            let done = Event::RunDone(RunDone { result: RunResult::Complete, exit_code: 0 });
            log.append(&id, next, vec![envelope(&id, 1, done)], Durability::Power).await.unwrap();
            next += 1;
        }
    }
    longest
}

fn main() {
    let megabytes: u64 = std::env::var("HAMES_BENCH_MB").ok().and_then(|mb| mb.parse().ok()).unwrap_or(1024);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap().store;
    let log = store.log();
    let mut figures = Figures::default();

    let long = session(&store, "/bench/long", 1);
    for batch in 0..LONG_SESSION / BATCH {
        let first = batch * BATCH + 2;
        let events = (first..first + BATCH).map(|n| envelope(&long, n as u64, said(n))).collect();
        runtime.block_on(log.append(&long, first as u64, events, Durability::Process)).unwrap();
    }
    let page = |at| assert_eq!(store.page(&long, at, PAGE_EVENTS).unwrap().events.len(), PAGE_EVENTS);
    figures.held("last page of 100,000 events", median(|| page(PageAt::End)), "");
    figures.held("page in the middle of them", median(|| page(PageAt::Before(50_000))), "");

    let (mut bytes, mut n, mut at) = (0, 0, 1_000_000);
    while bytes < megabytes << 20 {
        let id = session(&store, &format!("/bench/{}", n % 40), at);
        for batch in 0..4 {
            let events: Vec<Envelope> = (0..BATCH)
                .map(|e| {
                    at += 1000;
                    envelope(&id, at, if e % 2 == 0 { said(n * 7919 + batch * BATCH + e) } else { output(4096) })
                })
                .collect();
            bytes += events.len() as u64 * (4096 + 450) / 2;
            let next = (batch * BATCH + 2) as u64;
            runtime.block_on(log.append(&id, next, events, Durability::Process)).unwrap();
        }
        n += 1;
    }
    let began = Instant::now();
    store.search("nothing", None, 1).unwrap();
    let indexed = began.elapsed().as_secs_f64();
    let stats = store.stats().unwrap();
    figures.told("database", (stats.space.bytes >> 20) as f64, "MB");
    figures.told("events", stats.events as f64, "");
    figures.told("search index", (stats.search_bytes >> 20) as f64, "MB");
    figures.told("indexing what was not yet", indexed, "s");
    for (what, query, folder) in [
        ("a word everywhere", "the", None),
        ("a longer word everywhere", "function", None),
        ("three words everywhere", "the error function", None),
        ("a phrase", "parser change", None),
        ("the beginning of a word", "functi", None),
        ("a word nobody said", "xylophone", None),
        ("a word of common parts that nobody said", "therelease", None),
        ("common words that never meet", "item31676 item31677", None),
        ("a word said once", "item31676", None),
        ("a common word in one folder", "function", Some("/bench/7")),
        ("a common word in the oldest folder", "function", Some("/bench/long")),
        ("a word nobody said, in the oldest folder", "xylophone", Some("/bench/long")),
        ("two common characters", "er", None),
        ("two characters nobody said", "zq", None),
        ("one common character", "e", None),
        ("one character nobody said", "z", None),
        ("a common Chinese word of two characters", "错误", None),
        ("a common Chinese word of three characters", "解析器", None),
        ("a Chinese word said once", "麒麟", None),
        ("a Chinese word nobody said", "长城", None),
        ("two characters nobody said, in one folder", "zq", Some("/bench/7")),
    ] {
        let folder = folder.map(Path::new);
        let mut left = false;
        let took = median(|| left = store.search_within(query, folder, 50, SEARCH_PATIENCE).unwrap().since.is_some());
        let note = if left { "the oldest is not looked at" } else { "" };
        figures.held(&format!("search: {what}"), took, note);
        if left {
            let whole = median(|| drop(store.search(query, folder, 50).unwrap()));
            figures.told(&format!("search of everything: {what}"), whole.as_secs_f64() * 1e3, "ms");
        }
    }

    let ids: Vec<SessionId> = (0..STREAMING).map(|n| session(&store, &format!("/bench/s{n}"), at)).collect();
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let began = Instant::now();
    let longest = threads.block_on(async {
        let tasks: Vec<_> = ids.iter().map(|id| tokio::spawn(goes_on(store.log(), id.clone()))).collect();
        let mut longest = Vec::new();
        for task in tasks {
            longest.push(task.await.unwrap());
        }
        longest.sort_unstable();
        longest
    });
    let rounds = ROUNDS * 2 + ROUNDS / RUN_ROUNDS * 2;
    let rate = (STREAMING * rounds) as f64 / began.elapsed().as_secs_f64();
    figures.told("200 sessions: appends and open steps", rate, "a second");
    figures.told("200 sessions: longest plain append, median", longest[STREAMING / 2].as_secs_f64() * 1e3, "ms");
    let events = (ROUNDS + ROUNDS / RUN_ROUNDS * 2) as u64;
    assert!(ids.iter().all(|id| store.last_seq(id) == Ok(events + 1)), "nothing is lost");
    if let Some(path) = std::env::var_os("HAMES_BENCH_REPORT") {
        let mut report = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(report, "{}", json!({"megabytes": megabytes, "figures": figures.0})).unwrap();
    }
    assert!(figures.are_held(), "a page or a search took {} ms or more", LIMIT.as_millis());
}
