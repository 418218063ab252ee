//! What a large home costs: `cargo bench -p hames-store --bench large`.
//!
//! Writes its own histories into a temporary folder: a session of 100,000 events whose last page is read, sessions up to
//! `HAMES_BENCH_MB` (1024 by default) of events that are searched for words everybody says and words nobody says, and 200
//! sessions that append and keep their open steps at once. Fails where a page or a search takes 100 ms or more.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // a measurement that cannot go on has failed, and prints its figures

use std::path::Path;
use std::time::{Duration, Instant};

use hames_protocol::{
    Durability, Envelope, Event, OpenBlock, OpenKind, SessionId, Settings, TextDone, ToolError, ToolErrorClass,
};
use hames_store::{PageAt, Store};

const LIMIT: Duration = Duration::from_millis(100);
const PAGE_EVENTS: usize = 200;
const LONG_SESSION: usize = 100_000;
/// Events of one append while histories are written.
const BATCH: usize = 500;
const STREAMING: usize = 200;
const ROUNDS: usize = 50;
/// Words that histories are made of; the first are common.
const WORDS: [&str; 24] = [
    "the", "file", "function", "error", "test", "return", "value", "string", "because", "change", "parser", "number",
    "window", "session", "release", "branch", "quick", "memory", "thread", "socket", "handle", "buffer", "garden",
    "river",
];

fn said(n: usize) -> Event {
    // A few hundred bytes of words, other ones every time.
    let words = (0..60).map(|w| WORDS[(n * 31 + w * w * 7 + n / 7) % (6 + (n + w) % 18)]);
    let text = format!("{} item{n}", words.collect::<Vec<_>>().join(" "));
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

fn held(what: &str, took: Duration, is_held: &mut bool) {
    println!("{what:<48} {:>9.2} ms", took.as_secs_f64() * 1e3);
    *is_held &= took < LIMIT;
}

fn main() {
    let megabytes: u64 = std::env::var("HAMES_BENCH_MB").ok().and_then(|mb| mb.parse().ok()).unwrap_or(1024);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap().store;
    let log = store.log();
    let mut is_held = true;

    let long = session(&store, "/bench/long", 1);
    for batch in 0..LONG_SESSION / BATCH {
        let first = batch * BATCH + 2;
        let events = (first..first + BATCH).map(|n| envelope(&long, n as u64, said(n))).collect();
        runtime.block_on(log.append(&long, first as u64, events, Durability::Process)).unwrap();
    }
    let page = |at| assert_eq!(store.page(&long, at, PAGE_EVENTS).unwrap().events.len(), PAGE_EVENTS);
    held("last page of 100,000 events", median(|| page(PageAt::End)), &mut is_held);
    held("page in the middle", median(|| page(PageAt::Before(50_000))), &mut is_held);

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
    let stats = store.stats().unwrap();
    println!(
        "{} MB in {} events; {} MB of index, made in {:.1} s",
        stats.space.bytes >> 20,
        stats.events,
        stats.search_bytes >> 20,
        began.elapsed().as_secs_f64()
    );
    for (what, query, folder) in [
        ("a word everywhere", "the", None),
        ("a longer word everywhere", "function", None),
        ("three words everywhere", "the error function", None),
        ("a word nobody said", "xylophone", None),
        ("a word of common parts that nobody said", "therelease", None),
        ("a word said once", "item31676", None),
        ("a common word in one folder", "function", Some("/bench/7")),
        ("a common word in the oldest folder", "function", Some("/bench/long")),
        ("a common word of two characters", "er", None),
    ] {
        let took = median(|| drop(store.search(query, folder.map(Path::new), 50).unwrap()));
        held(&format!("search: {what}"), took, &mut is_held);
    }

    let ids: Vec<SessionId> = (0..STREAMING).map(|n| session(&store, &format!("/bench/s{n}"), at)).collect();
    let began = Instant::now();
    runtime.block_on(async {
        let tasks: Vec<_> = ids
            .iter()
            .cloned()
            .map(|id| {
                let log = store.log();
                tokio::spawn(async move {
                    for round in 0..ROUNDS {
                        let text = "so far ".repeat(100);
                        let piece = OpenBlock { kind: OpenKind::Text, index: 0, name: None, text };
                        log.save_open(&id, vec![piece]).await.unwrap();
                        let event = envelope(&id, 1, said(round));
                        log.append(&id, round as u64 + 2, vec![event], Durability::Process).await.unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    let commits = (STREAMING * ROUNDS * 2) as f64;
    println!("200 sessions, appends and open steps: {:.0} a second", commits / began.elapsed().as_secs_f64());
    assert!(ids.iter().all(|id| store.last_seq(id) == Ok(ROUNDS as u64 + 1)), "nothing is lost");
    assert!(is_held, "a page or a search took {} ms or more", LIMIT.as_millis());
}
