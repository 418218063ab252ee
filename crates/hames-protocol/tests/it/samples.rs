//! One full and, where fields may be absent, one bare event of every type.

#![allow(clippy::unwrap_used)] // helpers of tests fail like tests

use hames_protocol::*;
use serde_json::json;

pub(crate) fn blob() -> BlobRef {
    BlobRef { hash: "ab".repeat(32), bytes: 70_000, dropped: 12, name: Some("out-17".into()) }
}

pub(crate) fn pending(id: &str, delivery: Delivery) -> Pending {
    Pending { id: id.into(), parts: vec![Part::text("wait")], delivery, idempotency_id: None }
}

pub(crate) fn call(id: &str) -> ToolCall {
    ToolCall {
        call_id: id.into(),
        provider_id: format!("call_{id}"),
        name: "Read".into(),
        arguments: "{\"path\":\"a\"}".into(),
        input: None,
        label: Label::new("Read", "a"),
        declaration: None,
        extra: None,
    }
}

pub(crate) fn done(id: &str, output: &str) -> ToolDone {
    ToolDone {
        call_id: id.into(),
        name: "Read".into(),
        output: output.into(),
        blob: None,
        diffs: vec![],
        files: vec![],
        exit_code: None,
        attachments: vec![],
        duration_ms: 3,
        served_from: None,
        capability: false,
    }
}

pub(crate) fn error(id: &str, text: &str) -> ToolError {
    ToolError {
        call_id: id.into(),
        name: "Read".into(),
        error: text.into(),
        class: ToolErrorClass::NotRun,
        blob: None,
        duration_ms: 0,
    }
}

pub(crate) fn user(text: &str) -> MessageUser {
    MessageUser { parts: vec![Part::text(text)], delivery: None, pending_id: None, idempotency_id: None, note: None }
}

pub(crate) fn run_start() -> RunStart {
    RunStart {
        mode: Mode::Build,
        parallel: true,
        model: model(),
        settings: settings(),
        tools: vec![NamedHash { name: "Read".into(), hash: "00".into() }],
        instructions: vec![InstructionFile {
            path: "/w/AGENTS.md".into(),
            hash: "11".into(),
            bytes: 40_000,
            dropped: 7,
        }],
        skills: vec![NamedHash { name: "pdf".into(), hash: "22".into() }],
    }
}

pub(crate) fn outside() -> Outside {
    Outside {
        name: "a".into(),
        folder: "/w".into(),
        settings: settings(),
        todos: vec![Todo {
            id: "1".into(),
            content: "test".into(),
            status: TodoStatus::Pending,
            priority: TodoPriority::High,
        }],
        pending: vec![pending("p9", Delivery::Queue)],
        paused: true,
        grants: vec![],
        outputs: 18,
    }
}

fn model() -> ModelRef {
    "openrouter/a/b:free".parse().unwrap()
}

pub(crate) fn settings() -> Settings {
    Settings {
        model: Some(model()),
        mode: Some(Mode::Analyze),
        parallel: Some(false),
        thinking_level: Some(ThinkingLevel::High),
        sampler: Some(Sampler::TopP(TopP::at(0.9).unwrap())),
        presence_penalty: Some(Penalty::AUTO),
        frequency_penalty: Some(Penalty::at(0.5).unwrap()),
        context_window: Some(8_000),
        max_output_tokens: Some(1),
        max_steps: Some(0),
        guard: Some(GuardSettings::level(GuardLevel::High)),
        compaction: Some(CompactionSettings {
            strategy: Some(CompactionStrategy::PruneThenSummarize),
            ..CompactionSettings::default()
        }),
    }
}

fn usage() -> Usage {
    Usage { input: Some(0), output: Some((1 << 53) - 1), cache_read: Some(2), cache_write: None, reasoning: Some(4) }
}

fn failure() -> Failure {
    Failure {
        class: ErrorClass::RateLimit,
        message: "Too many requests; wait.".into(),
        provider_message: Some("slow \"down\"\n".into()),
        status: Some(429),
        retryable: true,
        request_id: Some("req_1".into()),
        retry_after_ms: Some(1_500),
        stated: Some(Box::new(Stated {
            code: Some("rate_limit_exceeded".into()),
            parameter: Some("max_tokens".into()),
            instead: Some("max_completion_tokens".into()),
            limit_tokens: Some(4_096),
            requested_tokens: Some(4_097),
            input_tokens: Some(97),
            not_in_tokens: true,
            is_loading: true,
        })),
    }
}

fn diff() -> Diff {
    Diff { path: "src/a.rs".into(), text: "-a\n+b\n".into(), added: 1, removed: 1 }
}

/// Every type at least once.
pub(crate) fn events() -> Vec<Event> {
    let mut all = session();
    all.extend(steps());
    all.extend(tools());
    all.extend(window());
    all.extend(life());
    all
}

fn session() -> Vec<Event> {
    vec![
        SessionCreated { name: "Größe \u{1f980}".into(), folder: "/w".into(), settings: Settings::default() }.into(),
        SessionCreated { name: "a".into(), folder: "/w".into(), settings: settings() }.into(),
        run_start().into(),
        RunStart { tools: vec![], instructions: vec![], skills: vec![], settings: Settings::default(), ..run_start() }
            .into(),
        user("hello").into(),
        MessageUser {
            parts: vec![
                Part::text(""),
                Part::Image { blob: blob(), media_type: "image/png".into(), name: Some("a.png".into()) },
                Part::Image { blob: BlobRef { name: None, dropped: 0, ..blob() }, media_type: "x".into(), name: None },
            ],
            delivery: Some(Delivery::Steer),
            pending_id: Some("p1".into()),
            idempotency_id: Some("mine".into()),
            note: Some("Mode: build".into()),
        }
        .into(),
        Event::PendingAdded(pending("p1", Delivery::Interrupt)),
        Event::PendingAdded(Pending { idempotency_id: Some("i".into()), ..pending("p2", Delivery::Queue) }),
        PendingEdited { pending: pending("p1", Delivery::Steer), before: Some("p2".into()), last: false }.into(),
        PendingCancelled { id: "p1".into() }.into(),
        PendingPaused { paused: true }.into(),
        SettingsChanged { settings: settings(), unset: vec!["max_steps".into()] }.into(),
        SettingsChanged { settings: Settings::default(), unset: vec![] }.into(),
        SessionRenamed { name: "b (2)".into() }.into(),
        SessionCut {
            from_seq: 12,
            removed: 4,
            outside: Some(Box::new(outside())),
            applied: vec!["/w/a".into()],
            discarded: vec!["/w/b".into()],
        }
        .into(),
        SessionMoved { folder: "/v".into() }.into(),
        SessionBranched { from: "s0".into(), up_to_seq: 9, outside: Some(Box::new(outside())) }.into(),
        SessionImported { from: "s0".into(), outside: Some(Box::new(outside())) }.into(),
    ]
}

fn steps() -> Vec<Event> {
    let delta = "ü\u{0}\u{7f}\u{2028}".to_owned();
    vec![
        StepStart {
            number: 1,
            fingerprint: "f".into(),
            bytes: 9,
            changed_at: None,
            changed_why: "first".into(),
            input_estimate: None,
        }
        .into(),
        StepStart {
            number: 2,
            fingerprint: "f".into(),
            bytes: 9,
            changed_at: Some(0),
            changed_why: "head".into(),
            input_estimate: Some(2),
        }
        .into(),
        TextDelta { index: 0, offset: 0, text: delta.clone() }.into(),
        ReasoningDelta { index: 1, offset: 4, text: delta.clone() }.into(),
        ToolInputDelta { index: 0, offset: 0, name: Some("Read".into()), text: String::new() }.into(),
        ToolInputDelta { index: 0, offset: 0, name: None, text: "{".into() }.into(),
        ToolOutputDelta { call_id: "c".into(), offset: 1 << 40, text: delta }.into(),
        StepSnapshot { blocks: vec![] }.into(),
        StepSnapshot {
            blocks: vec![
                OpenBlock { kind: OpenKind::Reasoning, index: 0, name: None, text: "hm".into() },
                OpenBlock { kind: OpenKind::Text, index: 0, name: None, text: "so".into() },
                OpenBlock { kind: OpenKind::ToolInput, index: 0, name: Some("Read".into()), text: "{".into() },
            ],
        }
        .into(),
        ReasoningDone { index: 0, block: ReasoningBlock::default(), cut: None }.into(),
        ReasoningDone {
            index: 0,
            block: ReasoningBlock {
                text: "why".into(),
                field: "reasoning_details".into(),
                blocks: vec!["{\"type\":\"x\",  \"n\":1.0}".into()],
            },
            cut: Some(Cut::Crash),
        }
        .into(),
        TextDone { index: 0, text: String::new(), cut: None }.into(),
        TextDone { index: 3, text: "a\r\nb".into(), cut: Some(Cut::Stream) }.into(),
        StepDone {
            finish_reason: None,
            whole: false,
            usage: None,
            cost: None,
            timings: Timings::default(),
            request_id: None,
        }
        .into(),
        StepDone {
            finish_reason: Some("stop".into()),
            whole: true,
            usage: Some(usage()),
            cost: Some(Cost { micros: 123_456, currency: "USD".into(), computed: true }),
            timings: Timings { first_token_ms: Some(0), total_ms: 9 },
            request_id: Some("r".into()),
        }
        .into(),
        Event::Error(failure()),
        Event::Error(Failure::new(ErrorClass::Internal, "what")),
        Nudge {
            kind: "tool_repeat".into(),
            text: "again?".into(),
            detected: "Read a, three times".into(),
            done: "answered from memory".into(),
            count: 1,
            max: 2,
        }
        .into(),
        LoopStopped { kind: "tool_repeat".into(), detected: "Read a, six times".into(), nudges: 2 }.into(),
        Retry { attempt: 1, max_attempts: 4, delay_ms: 500, failure: failure() }.into(),
        ParameterLearned {
            model: model(),
            lesson: Lesson {
                parameter: "reasoning_effort".into(),
                value: Some(json!("medium")),
                with_tools: true,
                remedy: Remedy::Set(json!("none")),
            },
            words: Some("not with tools".into()),
        }
        .into(),
    ]
}

fn tools() -> Vec<Event> {
    let declaration = Declaration {
        effect: Effect::Edit,
        resources: vec![
            Resource::Path { path: "a".into(), write: true, no_follow: true },
            Resource::Workspace { write: false },
            Resource::Named { name: "todos".into(), write: true },
        ],
        cacheable: true,
        cache_ms: Some(60_000),
        polling: true,
        timeout_ms: Some(5),
        cap_bytes: Some(6),
        preview: true,
        ask: Some("removes a folder".into()),
        reason: Some("It writes.".into()),
    };
    vec![
        call("c0").into(),
        ToolCall {
            input: Some(json!({"path": "a", "n": [1, 2.5, -3, null, true], "deep": {"z": 1, "a": 2}})),
            declaration: Some(declaration),
            extra: Some("{\"signature\": \"x\"}".into()),
            label: Label::new("Edit", "a").sized("+4/-2"),
            ..call("c1")
        }
        .into(),
        ToolCall { declaration: Some(Declaration::new(Effect::External, vec![])), ..call("c2") }.into(),
        ApprovalAsked {
            call_id: "c1".into(),
            name: "Shell".into(),
            label: Label::new("Shell", "rm"),
            reason: "outside".into(),
            input: json!({"command": "rm"}),
            diff: Some(diff()),
            digest: "d".into(),
            grants: vec![Grant::Command { words: vec!["rm".into()] }],
        }
        .into(),
        ApprovalAnswered {
            call_id: "c1".into(),
            decision: Decision::Folder,
            by: "user".into(),
            digest: "d".into(),
            grants: vec![Grant::Host { host: "example.com".into() }],
            note: Some("not kept".into()),
        }
        .into(),
        QuestionAsked { call_id: "q".into(), text: "which?".into(), choices: vec!["a".into()], digest: "d".into() }
            .into(),
        QuestionAnswered { call_id: "q".into(), text: "a".into(), by: "user".into(), digest: "d".into() }.into(),
        ToolStart { call_id: "c1".into(), name: "Edit".into() }.into(),
        FileChanged { call_id: "c1".into(), path: "/w/a".into(), before: None, after: None, mode: None, link: None }
            .into(),
        FileChanged {
            call_id: "c1".into(),
            path: "/w/a".into(),
            before: Some(blob()),
            after: Some("h".into()),
            mode: Some(0o755),
            link: Some("../target".into()),
        }
        .into(),
        ChangeProposed {
            call_id: "c1".into(),
            path: "/w/a".into(),
            base: None,
            content: None,
            mode: None,
            kind: ChangeKind::Dir,
            folders: vec![],
        }
        .into(),
        ChangeProposed {
            call_id: "c1".into(),
            path: "/w/a".into(),
            base: Some("h".into()),
            content: Some(blob()),
            mode: Some(0),
            kind: ChangeKind::Link,
            folders: vec!["/w".into()],
        }
        .into(),
        Event::ChangesApplyStarted(ChangePaths { paths: vec!["/w/a".into()] }),
        ChangesApplied { paths: vec!["/w/a".into()] }.into(),
        ChangesDiscarded { paths: vec![] }.into(),
        ChangesKept { run: "r-1".into() }.into(),
        done("c0", "").into(),
        ToolDone {
            blob: Some(blob()),
            diffs: vec![diff()],
            files: vec![FileHash { path: "/w/a".into(), hash: "h".into() }],
            exit_code: Some(-1),
            attachments: vec![],
            served_from: Some("c0".into()),
            capability: true,
            ..done("c1", "out")
        }
        .into(),
        error("c2", "no").into(),
        ToolError { blob: Some(blob()), duration_ms: 8, class: ToolErrorClass::OutcomeUnknown, ..error("c3", "?") }
            .into(),
    ]
}

fn window() -> Vec<Event> {
    vec![
        WindowMasked { calls: vec!["c0".into()], tokens: 900, kept: vec![] }.into(),
        WindowMasked {
            calls: vec!["c0".into()],
            tokens: 900,
            kept: vec![KeptOutput { call_id: "c0".into(), blob: blob() }],
        }
        .into(),
        WindowRetired { up_to_seq: 40, tokens: 0, scope: RetireScope::Exchanges, archive: None }.into(),
        checkpoint(41, "# State").into(),
        WindowCheckpoint {
            kind: CheckpointKind::Trim,
            held: vec![3],
            deferred: Some(SeqSpan { from_seq: 4, to_seq: 9 }),
            archive: Some(blob()),
            pin_tokens: Some(7),
            span_tokens: 5,
            ceiling_tokens: 6,
            ..checkpoint(41, "")
        }
        .into(),
        WindowExternalised { seq: 2, blob: None, head_bytes: 3, tail_bytes: 4, without_images: false, tokens: 5 }
            .into(),
        WindowExternalised {
            seq: 2,
            blob: Some(blob()),
            head_bytes: 3,
            tail_bytes: 4,
            without_images: true,
            tokens: 5,
        }
        .into(),
        PinAdded { target: PinTarget::Message { seq: 2 }, by: PinnedBy::User }.into(),
        PinAdded { target: PinTarget::Text { text: "port 8080".into() }, by: PinnedBy::Model }.into(),
        PinRemoved { pin: 5 }.into(),
        WindowLimited {
            model: "acme/large".parse().unwrap(),
            tokens: 8_192,
            before: 128_000,
            how: "stated".into(),
            words: Some("at most 8192 tokens".into()),
        }
        .into(),
        CompactionStart { reason: "manual".into(), tokens_before: 9 }.into(),
        CompactionPruned { tokens_removed: 1, messages_removed: 2 }.into(),
        CompactionAsked {
            model: "acme/large".parse().unwrap(),
            compress: true,
            usage: Some(Usage { input: Some(9), ..Usage::default() }),
            cost: Some(Cost { micros: 7, currency: "USD".into(), computed: true }),
            duration_ms: 5,
            failure: Some("cut".into()),
        }
        .into(),
        CompactionSummary { summary: "short".into() }.into(),
        CompactionDone { tokens_before: 9, tokens_after: 3 }.into(),
    ]
}

fn life() -> Vec<Event> {
    let todo =
        Todo { id: "1".into(), content: "mend".into(), status: TodoStatus::InProgress, priority: TodoPriority::High };
    vec![
        TodoUpdated { todos: vec![todo] }.into(),
        TodoUpdated { todos: vec![] }.into(),
        SubagentStart { profile: "explore".into(), task: "look".into(), call_id: "c".into() }.into(),
        SubagentDone { call_id: "c".into(), result: RunResult::MaxSteps, duration_ms: 5 }.into(),
        SubagentError { call_id: "c".into(), error: "died".into() }.into(),
        Done {
            result: RunResult::Stopped,
            reason: Some("question".into()),
            usage: usage(),
            steps: 1,
            calls: 2,
            errors: 3,
        }
        .into(),
        Done { result: RunResult::Complete, reason: None, usage: Usage::default(), steps: 0, calls: 0, errors: 0 }
            .into(),
        TurnDone { duration_ms: 7, usage: usage() }.into(),
        RunDone { result: RunResult::Interrupted, exit_code: 130 }.into(),
    ]
}

pub(crate) fn checkpoint(from_seq: u64, document: &str) -> WindowCheckpoint {
    WindowCheckpoint {
        from_seq,
        document: document.into(),
        kind: CheckpointKind::Summary,
        held: vec![],
        deferred: None,
        archive: None,
        pin_tokens: None,
        span_tokens: 0,
        ceiling_tokens: 0,
    }
}
