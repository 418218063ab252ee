//! Recall: parts of kept outputs, on its own and behind a door.

use std::fmt::Write as _;
use std::sync::Arc;

use hames_protocol::{BlobRef, BlobSource, BlobStore, Event, NobodyAnswers, RawCall, SessionId, ToolErrorClass};
use hames_tools::{Door, DoorParts, LockTable, Policy, RunCx, Secrets, Tool, ToolFailure, ToolSet};
use hames_workspace::recall::Recall;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::files::kit::Bench;
use crate::files::pictures::PNG;

async fn keep(bench: &Bench, name: &str, content: impl Into<Vec<u8>>) -> BlobRef {
    let kept = bench.blobs.put(&bench.cx.session, name, BlobSource::Bytes(content.into())).await.unwrap();
    bench.cx.state().blobs += 1;
    kept
}

async fn recalled(bench: &Bench, input: Value) -> Result<String, ToolFailure> {
    Recall.run(&input, &bench.cx).await.map(|output| output.text)
}

async fn said(bench: &Bench, input: Value) -> String {
    recalled(bench, input).await.unwrap_or_else(|failure| failure.text)
}

#[tokio::test]
async fn lines_come_numbered_from_where_one_wants() {
    let bench = Bench::new();
    keep(&bench, "out-1", (1..=3000).fold(String::new(), |all, n| all + &format!("line {n}\n"))).await;
    keep(&bench, "out-2", "one\r\ntwo\r\nlast").await;
    keep(&bench, "out-3", "").await;
    keep(
        &bench,
        "out-4",
        [&b"\xff\xfe"[..], &"zeile ü\n".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>()].concat(),
    )
    .await;
    for (input, first, last) in [
        (json!({"artifact": "out-1"}), "1\tline 1", "(lines 1-2000 of 3000; next offset: 2001)"),
        (json!({"artifact": "out-1", "offset": 2001}), "2001\tline 2001", "3000\tline 3000"),
        (json!({"artifact": "[out-1]", "offset": 7, "limit": 2}), "7\tline 7", "(lines 7-8 of 3000; next offset: 9)"),
        (json!({"artifact": "1", "offset": 3001}), "out-1 has only 3000 lines.", "out-1 has only 3000 lines."),
        (
            json!({"artifact": "out-1", "offset": 0, "limit": 0}),
            "1\tline 1",
            "(lines 1-2000 of 3000; next offset: 2001)",
        ),
        (json!({"artifact": "out-2"}), "1\tone", "3\tlast"),
        (json!({"artifact": "out-3"}), "out-3 is empty.", "out-3 is empty."),
        (json!({"artifact": "out-4"}), "1\tzeile ü", "1\tzeile ü"),
        (json!({"artifact": "out-2", "pattern": ""}), "1\tone", "3\tlast"),
    ] {
        let said = said(&bench, input.clone()).await;
        let lines: Vec<_> = said.split('\n').collect();
        assert_eq!((lines[0], lines[lines.len() - 1]), (first, last), "{input}");
    }
    for name in ["offset", "limit"] {
        let failure = recalled(&bench, json!({"artifact": "out-1", name: -5})).await.unwrap_err();
        assert_eq!(
            (failure.class, failure.text),
            (ToolErrorClass::Invalid, format!("{name} must not be negative, but is -5"))
        );
    }
}

#[tokio::test]
async fn pages_stay_within_the_cap_and_join_to_the_whole() {
    let mut bench = Bench::new();
    let text: String = (1..=400).map(|number| format!("{number} {}\n", "ä".repeat(number % 90))).collect();
    keep(&bench, "out-1", text.clone()).await;
    for cap in [500, 1_000, 4_096] {
        bench.cx.cap_bytes = cap;
        let (mut offset, mut joined) = (1, String::new());
        loop {
            let page = said(&bench, json!({"artifact": "out-1", "offset": offset})).await;
            assert!(page.len() <= cap, "{} > {cap}", page.len());
            let mut lines: Vec<_> = page.split('\n').collect();
            let footer = lines.pop_if(|line| line.starts_with("(lines"));
            for line in lines {
                let (number, text) = line.split_once('\t').unwrap();
                assert_eq!(number, offset.to_string());
                writeln!(joined, "{text}").unwrap();
                offset += 1;
            }
            let Some(footer) = footer else { break };
            assert!(footer.ends_with(&format!("next offset: {offset})")), "{footer}");
        }
        assert_eq!(joined, text);
    }
}

#[tokio::test]
async fn a_pattern_finds_lines_with_what_stands_around_them() {
    let bench = Bench::new();
    let mut text: String = (1..=100).map(|number| format!("step {number}\n")).collect();
    text.push_str("error[E1]: broken\n  at a.rs\n");
    text.push_str(&format!("{}needle{}\n", "x".repeat(3_000), "y".repeat(3_000)));
    keep(&bench, "out-1", text).await;
    for (pattern, expected) in [
        ("^error", "out-1\n99- step 99\n100- step 100\n101: error[E1]: broken\n102-   at a.rs\n103- xxxx"),
        ("step 5$", "out-1\n3- step 3\n4- step 4\n5: step 5\n6- step 6\n7- step 7"),
        ("(?i)ERROR", "101: error[E1]: broken"),
        (r"broken\n\s+at", "101: error[E1]: broken\n102:   at a.rs"),
        ("error[E1", "Not a valid regex ("),
        ("needle", "…xxx"),
        ("never there", "No matches in out-1."),
    ] {
        let said = said(&bench, json!({"artifact": "out-1", "pattern": pattern})).await;
        assert!(said.contains(expected), "{pattern}: {said}");
        assert!(said.len() < 2_000, "{pattern}: a long line is cut around the match");
    }
    let page = said(&bench, json!({"artifact": "out-1", "pattern": "step .0$", "offset": 2, "limit": 3})).await;
    let found: Vec<&str> = page.lines().filter(|line| line.contains(": step")).collect();
    assert_eq!(found, ["30: step 30", "40: step 40", "50: step 50"]);
    assert!(page.ends_with("(matches 3-5 of 9; continue with offset 5)"), "{page}");
    let empty = recalled(&bench, json!({"artifact": "out-1", "pattern": "x".repeat(9_000)})).await.unwrap_err();
    assert_eq!(empty.class, ToolErrorClass::Invalid);
}

#[tokio::test]
async fn an_unknown_name_is_told_with_the_names_there_are() {
    let bench = Bench::new();
    let ask = |name: &str| said(&bench, json!({"artifact": name}));
    assert_eq!(
        ask("out-1").await,
        "this session has no kept output \"out-1\"; nothing was kept so far; results that are shown whole are not kept"
    );
    keep(&bench, "out-1", "x").await;
    assert_eq!(ask("out-9").await, "this session has no kept output \"out-9\"; only out-1 was kept so far");
    keep(&bench, "out-2", "x").await;
    assert!(ask("notes.txt").await.ends_with("kept were, the latest first: out-2, out-1"));
    for number in 3..=40 {
        keep(&bench, &format!("out-{number}"), "x").await;
    }
    for name in ["out-41", "", "0", "out-0", "4294967296", "../../etc/passwd", "out-1\u{0}"] {
        let said = ask(name).await;
        assert!(said.ends_with("the latest first: out-40, out-39, out-38, out-37, out-36, and earlier ones"), "{said}");
        assert!(!said.contains('\0'));
    }
}

#[tokio::test]
async fn what_another_session_kept_is_not_there_by_name_or_hash() {
    let bench = Bench::new();
    let theirs = SessionId::from("another");
    let kept = bench.blobs.put(&theirs, "out-1", BlobSource::Bytes(b"their words".to_vec())).await.unwrap();
    let own = keep(&bench, "out-2", "own words").await;
    for name in ["out-1", kept.hash.as_str(), own.hash.as_str(), "another/out-1"] {
        let said = said(&bench, json!({"artifact": name})).await;
        assert!(said.starts_with("this session has no kept output"), "{name}: {said}");
    }
    assert_eq!(said(&bench, json!({"artifact": "out-2"})).await, "1\town words");
}

#[tokio::test]
async fn what_is_no_text_is_named_with_its_type_and_size() {
    let bench = Bench::new();
    for (name, content, what) in [
        ("out-1", PNG, "a PNG image of 73 bytes"),
        ("out-2", b"%PDF-1.7\n1 0 obj", "a PDF document of 16 bytes"),
        ("out-3", b"abc\0def", "a binary file of 7 bytes"),
        ("out-4", b"PK\x03\x04\x14\0\0\0", "a ZIP archive (or an office document) of 8 bytes"),
        ("out-5", b"\x1f\x8b\x08\0\0\0", "gzip data of 6 bytes"),
        ("out-6", b"\x7fELF\x02\x01\x01\0", "an ELF program or library of 8 bytes"),
        ("out-7", b"SQLite format 3\0\x10\0", "an SQLite database of 18 bytes"),
        ("out-8", b"\xff\xfe\0\0a\0\0\0", "UTF-32 text of 8 bytes"),
    ] {
        keep(&bench, name, content).await;
        let said = said(&bench, json!({"artifact": name})).await;
        assert_eq!(said, format!("{name} is {what}, not text; it cannot be shown by lines"));
    }
    let said = said(&bench, json!({"artifact": "out-3", "pattern": "abc"})).await;
    assert_eq!(said, "No matches in out-3: it is binary.");
}

#[tokio::test]
async fn where_the_middle_is_missing_a_line_stands_there() {
    let bench = Bench::new();
    // As the store and the shell keep what is too large: as much from the beginning as from the end.
    let kept = keep(&bench, "x", "1\n2\n3\n7\n8\n9\n").await;
    let cut = BlobRef { dropped: 4_000, name: Some("out-1".into()), ..kept };
    let cx = hames_tools::ToolCx { blobs: Arc::new(Cut { inner: bench.blobs.clone(), blob: cut }), ..bench.cx.clone() };
    let run = |input: Value| {
        let cx = cx.clone();
        async move { Recall.run(&input, &cx).await.unwrap().text }
    };
    let note = "\n(of its middle, 4000 bytes were never kept; a line in [ ] stands there)";
    let all = run(json!({"artifact": "out-1"})).await;
    assert_eq!(all, format!("1\t1\n2\t2\n3\t3\n4\t\n5\t[4000 bytes are missing here]\n6\t7\n7\t8\n8\t9{note}"));
    let part = run(json!({"artifact": "out-1", "offset": 6, "limit": 1})).await;
    assert_eq!(part, format!("6\t7\n(lines 6-6 of 8; next offset: 7){note}"));
    let found = run(json!({"artifact": "out-1", "pattern": "^8$"})).await;
    assert!(found.contains("7: 8\n") && found.ends_with(note), "{found}");
}

/// Blobs of which one lost its middle.
struct Cut {
    inner: Arc<dyn BlobStore>,
    blob: BlobRef,
}

#[async_trait::async_trait]
impl BlobStore for Cut {
    async fn put(
        &self,
        session: &SessionId,
        name: &str,
        source: BlobSource,
    ) -> Result<BlobRef, hames_protocol::LogError> {
        self.inner.put(session, name, source).await
    }
    async fn get(&self, hash: &str, offset: u64, limit: u64) -> Result<Vec<u8>, hames_protocol::LogError> {
        // No more than five bytes at once, however many are asked for.
        self.inner.get(hash, offset, limit.min(5)).await
    }
    async fn named(&self, _: &SessionId, name: &str) -> Result<Option<BlobRef>, hames_protocol::LogError> {
        Ok(self.blob.name.as_deref().filter(|own| *own == name).map(|_| self.blob.clone()))
    }
}

#[tokio::test]
async fn a_blob_that_is_damaged_is_an_error_that_says_so() {
    let bench = Bench::new();
    let kept = keep(&bench, "x", "short").await;
    let longer = BlobRef { bytes: 50, name: Some("out-1".into()), ..kept.clone() };
    let gone = BlobRef { hash: "0".repeat(64), name: Some("out-1".into()), ..kept };
    for (blob, expected) in [(longer, "it ends after 5 of 50 bytes"), (gone, "there is no blob 000")] {
        let cx = hames_tools::ToolCx { blobs: Arc::new(Cut { inner: bench.blobs.clone(), blob }), ..bench.cx.clone() };
        for input in [json!({"artifact": "out-1"}), json!({"artifact": "out-1", "pattern": "x"})] {
            let failure = Recall.run(&input, &cx).await.unwrap_err();
            assert!(failure.text.contains(expected), "{}", failure.text);
        }
    }
}

#[tokio::test]
async fn a_large_output_is_read_and_searched_from_anywhere() {
    let bench = Bench::new();
    let line = format!("{}\n", "x".repeat(99));
    keep(&bench, "out-1", format!("{}the last line", line.repeat(300_000))).await;
    keep(&bench, "out-2", "y".repeat(70 << 20)).await;
    let page = said(&bench, json!({"artifact": "out-1", "offset": 300_000, "limit": 5})).await;
    assert_eq!(page, format!("300000\t{}\n300001\tthe last line", "x".repeat(99)));
    let page = said(&bench, json!({"artifact": "out-1", "limit": 1})).await;
    assert_eq!(page, format!("1\t{}\n(lines 1-1, more follow; next offset: 2)", "x".repeat(99)));
    let found = said(&bench, json!({"artifact": "out-1", "pattern": "last"})).await;
    assert!(found.ends_with("300001: the last line"), "{found}");
    let page = said(&bench, json!({"artifact": "out-2"})).await;
    assert!(page.starts_with("1\tyyy") && page.len() < 9_000 && page.ends_with("(long lines are cut)"));
    let failure = recalled(&bench, json!({"artifact": "out-2", "pattern": "z"})).await.unwrap_err();
    assert!(failure.text.starts_with("out-2 cannot be searched to its end: "), "{}", failure.text);
    bench.cx.cancel.cancel();
    for input in [json!({"artifact": "out-1", "offset": 300_000}), json!({"artifact": "out-1", "pattern": "z"})] {
        assert_eq!(recalled(&bench, input).await.unwrap_err().class, ToolErrorClass::Cancelled);
    }
}

#[tokio::test]
async fn behind_a_door_no_result_of_it_is_kept_again() {
    for window_tokens in [0, 2_000, 8_000, 32_000, 200_000] {
        let bench = Bench::new();
        let text: String = (1..=9_000).map(|number| format!("{number} {}\n", "é".repeat(number % 300))).collect();
        keep(&bench, "out-1", text).await;
        let door = Door::new(DoorParts {
            tools: ToolSet::new(vec![Arc::new(Recall)]).unwrap(),
            policy: Policy::default(),
            fs: bench.fs.clone(),
            preview: None,
            shell: bench.cx.shell.clone(),
            blobs: bench.blobs.clone(),
            approver: Arc::new(NobodyAnswers),
            grants: None,
            secrets: Secrets::new(vec!["é".repeat(20)]),
            locks: Arc::new(LockTable::new()),
            window_tokens,
            parallel_tools: true,
        });
        let inputs = [
            json!({"artifact": "out-1"}),
            json!({"artifact": "out-1", "offset": 500, "limit": 100_000}),
            json!({"artifact": "out-1", "pattern": "é", "limit": 100_000}),
            json!({"artifact": "out-1", "pattern": "^[0-9]*5 ", "unknown": 1}),
        ];
        for input in inputs {
            let call = RawCall { id: "c".into(), name: "Recall".into(), arguments: input.to_string(), extra: None };
            let cx = RunCx {
                session: bench.cx.session.clone(),
                mode: hames_protocol::Mode::Analyze,
                emit: bench.recorder.clone(),
                state: bench.cx.state.clone(),
                abort: CancellationToken::new(),
                interrupt: CancellationToken::new(),
                memory: None,
                pins: hames_tools::PinRoom::default(),
            };
            door.run(vec![door.admit(call)], cx).await.unwrap();
            let last = bench.recorder.events.lock().unwrap().last().cloned().unwrap();
            let Event::ToolDone(done) = last else { panic!("{last:?}") };
            assert_eq!(done.blob, None, "{window_tokens} {input}");
            assert!(done.output.contains("next offset: ") || done.output.contains("continue with offset "), "{input}");
        }
    }
}

#[test]
fn what_the_model_is_told_of_it_is_short() {
    let spec = serde_json::to_string(Recall.spec()).unwrap();
    assert!(spec.len() <= 440, "{} characters", spec.len());
}
