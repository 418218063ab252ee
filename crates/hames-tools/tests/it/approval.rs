//! The border of the workspace, and asking at it.

use std::sync::{Arc, Mutex};

use hames_protocol::{
    ApprovalAnswered, Decision, Declaration, Diff, Effect, Event, Grant, GrantKeeper, LogError, MemoryGrants, Mode,
    Resource, ToolErrorClass,
};
use hames_tools::{About, PathPattern, Policy, Rule, RuleVerdict, ToolFailure, ToolOutput};
use serde_json::{Value, json};

use crate::kit::{Answers, Gate, Setup, TestDoor, TestTool, door, until};

fn at(path: &str) -> Value {
    json!({"path": path})
}

/// Answers with what it may touch outside.
fn opener(name: &str, effect: Effect) -> TestTool {
    TestTool::new(name).effect(effect).does(|input, cx| async move {
        let path = cx.resolve(input["path"].as_str().unwrap_or_default())?;
        Ok(ToolOutput::text(format!("{} {:?}", path.abs.display(), cx.approved)))
    })
}

fn asking(answers: &Arc<Answers>, tools: Vec<TestTool>) -> TestDoor {
    let mut setup = Setup::new(tools);
    setup.approver = answers.clone();
    setup.build()
}

fn about_path(verdict: RuleVerdict, pattern: &str) -> Rule {
    Rule { verdict, about: About::Path { pattern: PathPattern::new(pattern).unwrap(), access: None } }
}

fn answered(test: &TestDoor) -> Vec<ApprovalAnswered> {
    let answered = |event| match event {
        Event::ApprovalAnswered(answered) => Some(answered),
        _ => None,
    };
    test.log.events().into_iter().filter_map(answered).collect()
}

#[tokio::test]
async fn outside_the_workspace_is_refused_where_nobody_answers() {
    for mode in [Mode::Build, Mode::Analyze] {
        let mut setup = Setup::new(vec![opener("Read", Effect::Read)]);
        setup.mode = mode;
        let test = setup.build();
        test.fs.links.lock().unwrap().insert("/w/link".into(), "/etc".into());
        for (path, target) in [
            ("/etc/hosts", "/etc/hosts"),
            ("../x", "/x"),
            ("a/../../w2/b", "/w2/b"),
            ("link/passwd", "/etc/passwd"),
            ("./link/../shadow", "/shadow"),
            ("/", "/"),
            ("/wx", "/wx"),
            ("..", "/"),
        ] {
            let outcome = &test.run(&[("Read", at(path))]).await[0];
            let error = outcome.failed_as(ToolErrorClass::Refused);
            assert!(error.contains(&format!("{target} is outside the workspace")), "{error}");
            assert!(error.contains("nobody can answer") && !outcome.started);
        }
        assert!(test.log.types().iter().all(|kind| kind == "tool.error"));
    }
}

#[tokio::test]
async fn what_the_filesystem_denies_is_refused_in_its_words() {
    let test = door(vec![opener("Read", Effect::Read)]);
    let outcome = &test.run(&[("Read", at("secret-home/config"))]).await[0];
    assert!(outcome.failed_as(ToolErrorClass::Refused).contains("belongs to Hames itself"));
}

#[tokio::test]
async fn an_approved_path_is_given_to_this_call_only() {
    let answers = Answers::new(&[Some(Decision::Once), Some(Decision::Deny)]);
    let test = asking(&answers, vec![opener("Read", Effect::Read)]);
    assert_eq!(test.run(&[("Read", at("/etc/hosts"))]).await[0].output(), "/etc/hosts [\"/etc/hosts\"]");
    let declined = &test.run(&[("Read", at("/etc/hosts"))]).await[0];
    assert!(declined.failed_as(ToolErrorClass::Refused).contains("declined") && !declined.started);
    let kinds = [
        "approval.asked",
        "approval.answered",
        "tool.start",
        "tool.done",
        "approval.asked",
        "approval.answered",
        "tool.error",
    ];
    assert_eq!(test.log.types(), kinds);
    let asked = answers.asked.lock().unwrap();
    assert_eq!(asked[0].reason, "/etc/hosts is outside the workspace");
    assert_eq!(asked[0].input, at("/etc/hosts"));
}

#[tokio::test]
async fn an_approval_for_the_session_is_not_asked_again() {
    for decision in [Decision::Session, Decision::Folder] {
        let answers = Answers::new(&[Some(decision)]);
        let test = asking(&answers, vec![opener("Read", Effect::Read), opener("Edit", Effect::Edit)]);
        for path in ["/etc", "/etc", "/etc/hosts", "/etc/../etc/hosts"] {
            test.run(&[("Read", at(path))]).await[0].output();
        }
        assert_eq!(answers.asked.lock().unwrap().len(), 1);
        // Reading was allowed, changing was not.
        let running = test.start(&[("Edit", at("/etc/hosts"))]);
        until(|| answers.asked.lock().unwrap().len() == 2).await;
        test.cx.abort.cancel();
        running.await.unwrap()[0].failed_as(ToolErrorClass::NotRun);
    }
}

#[tokio::test]
async fn a_rule_beats_a_grant_and_is_not_asked_about() {
    let answers = Answers::new(&[]);
    let mut setup = Setup::new(vec![opener("Read", Effect::Read)]);
    setup.approver = answers.clone();
    setup.policy = Policy {
        rules: vec![about_path(RuleVerdict::Deny, "/data/private")],
        grants: vec![Grant::Path { path: "/data".into(), write: true }],
    };
    let test = setup.build();
    test.run(&[("Read", at("/data/a"))]).await[0].output();
    test.run(&[("Read", at("/data/x/../private/b"))]).await[0].failed_as(ToolErrorClass::Refused);
    assert!(answers.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_approval_holds_only_for_what_was_shown() {
    let content = Arc::new(Mutex::new(0));
    let answers = Answers::doing(&[Some(Decision::Once), Some(Decision::Once), Some(Decision::Once)], {
        let content = content.clone();
        // Somebody else changes the file while the first question stands.
        move |count| *content.lock().unwrap() += i32::from(count == 1)
    });
    let edit = opener("Edit", Effect::Edit).previews({
        let content = content.clone();
        move |_| {
            Ok(vec![Diff { path: "/x".into(), text: format!("+{}", content.lock().unwrap()), added: 1, removed: 0 }])
        }
    });
    let test = asking(&answers, vec![edit]);
    test.run(&[("Edit", at("/x"))]).await[0].output();
    let asked = answers.asked.lock().unwrap();
    let shown: Vec<_> = asked.iter().map(|asked| asked.diff.as_ref().unwrap().text.as_str()).collect();
    assert_eq!(shown, ["+0", "+1"]);
    assert_ne!(asked[0].digest, asked[1].digest);
    let answered = test.log.events().into_iter().filter_map(|event| match event {
        Event::ApprovalAnswered(answered) => Some(answered.digest),
        _ => None,
    });
    assert_eq!(answered.collect::<Vec<_>>(), [asked[0].digest.clone(), asked[1].digest.clone()]);
}

#[tokio::test]
async fn a_file_that_never_stands_still_is_not_asked_about_for_ever() {
    let count = Arc::new(Mutex::new(0));
    let answers = Answers::new(&[Some(Decision::Once); 9]);
    let edit = opener("Edit", Effect::Edit).previews(move |_| {
        let mut count = count.lock().unwrap();
        *count += 1;
        Ok(vec![Diff { path: "/x".into(), text: count.to_string(), added: 1, removed: 0 }])
    });
    let test = asking(&answers, vec![edit]);
    let outcome = &test.run(&[("Edit", at("/x"))]).await[0];
    assert!(outcome.failed_as(ToolErrorClass::Failed).contains("kept changing") && !outcome.started);
    assert_eq!(answers.asked.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn a_path_that_moves_under_the_question_is_not_used() {
    let links = Arc::new(Mutex::new(None::<Arc<crate::kit::StubFs>>));
    let answers = Answers::doing(&[Some(Decision::Once)], {
        let links = links.clone();
        move |_| {
            let fs = links.lock().unwrap().clone().unwrap();
            fs.links.lock().unwrap().insert("/out".into(), "/etc/passwd".into());
        }
    });
    let test = asking(&answers, vec![opener("Read", Effect::Read)]);
    *links.lock().unwrap() = Some(test.fs.clone());
    let outcome = &test.run(&[("Read", at("/out"))]).await[0];
    assert!(outcome.failed_as(ToolErrorClass::Failed).contains("/etc/passwd") && !outcome.started);
}

#[tokio::test]
async fn a_question_nobody_answers_is_a_no() {
    let answers = Answers::new(&[None]);
    let test = asking(&answers, vec![opener("Read", Effect::Read)]);
    let outcome = &test.run(&[("Read", at("/x"))]).await[0];
    assert!(outcome.failed_as(ToolErrorClass::Refused).contains("nobody can answer"));
    assert_eq!(test.log.types(), ["approval.asked", "approval.answered", "tool.error"]);
}

#[tokio::test]
async fn a_preview_that_fails_tells_the_model_nothing_before_the_approval() {
    for (panics, decision) in
        [(false, Decision::Deny), (true, Decision::Deny), (false, Decision::Once), (true, Decision::Once)]
    {
        let answers = Answers::new(&[Some(decision)]);
        let edit = opener("Edit", Effect::Edit).previews(move |_| {
            assert!(!panics, "a fault in the preview");
            Err(ToolFailure::failed("the nearest line is: root:x:0:0"))
        });
        let test = asking(&answers, vec![edit]);
        let outcome = &test.run(&[("Edit", at("/x"))]).await[0];
        match decision {
            Decision::Deny => assert!(!outcome.failed_as(ToolErrorClass::Refused).contains("root:x")),
            _ => assert!(outcome.output().starts_with("/x")),
        }
        assert_eq!(answers.asked.lock().unwrap()[0].diff, None);
    }
}

#[tokio::test]
async fn who_waits_behind_a_question_is_not_asked_what_was_granted_meanwhile() {
    let gate = Gate::new();
    let answers = Answers::new(&[Some(Decision::Session)]);
    let test = asking(&answers, vec![TestTool::new("Edit").effect(Effect::Edit).gated(&gate)]);
    ["/x", "/./x", "/x/y"].iter().for_each(|name| gate.open(name));
    for outcome in test.run(&[("Edit", at("/x")), ("Edit", at("/./x")), ("Edit", at("/x/y"))]).await {
        outcome.output();
    }
    assert_eq!(answers.asked.lock().unwrap().len(), 1);
}

/// A tool that runs the words it is given, as commands split at `;`.
fn runner() -> TestTool {
    TestTool::new("Run").declares(|input| {
        let line = input["path"].as_str().unwrap_or_default();
        let words = |command: &str| command.split_whitespace().map(str::to_owned).collect();
        let commands = line.split(';').filter(|command| !command.is_empty());
        let resources = commands.map(|command| Resource::Command { words: words(command) }).collect();
        Declaration::new(Effect::Run, resources)
    })
}

fn asks_about(command: &str) -> Policy {
    let words = command.split_whitespace().map(str::to_owned).collect();
    Policy { rules: vec![Rule { verdict: RuleVerdict::Ask, about: About::Command(words) }], grants: vec![] }
}

#[tokio::test]
async fn a_grant_for_the_session_is_in_the_log_and_holds_for_a_later_door() {
    let answers = Answers::new(&[Some(Decision::Session)]);
    let mut setup = Setup::new(vec![runner()]);
    (setup.approver, setup.policy) = (answers.clone(), asks_about("git push"));
    let test = setup.build();
    test.run(&[("Run", at("ls;git push origin"))]).await[0].output();
    let granted = vec![Grant::Command { words: vec!["git".into(), "push".into(), "origin".into()] }];
    assert_eq!(answers.asked.lock().unwrap()[0].grants, granted);
    assert_eq!(answered(&test)[0].grants, granted);
    let mut later = Setup::new(vec![runner()]);
    later.policy = asks_about("git push");
    let mut later = later.build();
    later.cx.state = test.cx.state.clone();
    later.run(&[("Run", at("git push origin;ls"))]).await[0].output();
    later.run(&[("Run", at("git push origin -f"))]).await[0].failed_as(ToolErrorClass::Refused);
}

#[tokio::test]
async fn a_grant_for_the_folder_is_kept_and_holds_at_once() {
    let answers = Answers::new(&[Some(Decision::Folder)]);
    let keeper = Arc::new(MemoryGrants::default());
    let mut setup = Setup::new(vec![opener("Read", Effect::Read)]);
    setup.approver = answers.clone();
    setup.grants = Some(keeper.clone());
    let test = setup.build();
    for path in ["/etc/hosts", "/etc/hosts"] {
        test.run(&[("Read", at(path))]).await[0].output();
    }
    let granted = [Grant::Path { path: "/etc/hosts".into(), write: false }];
    assert_eq!(keeper.all(), granted);
    assert_eq!(answers.asked.lock().unwrap().len(), 1);
    let answer = &answered(&test)[0];
    assert_eq!((answer.decision, &answer.note, answer.grants.as_slice()), (Decision::Folder, &None, &granted[..]));
    // It is not the session's: another door of the same session without the folder's grants asks.
    assert_eq!(test.cx.state.lock().unwrap().grants, []);
}

#[tokio::test]
async fn a_grant_that_cannot_be_kept_holds_for_the_session_and_says_so() {
    struct Broken;
    #[async_trait::async_trait]
    impl GrantKeeper for Broken {
        async fn keep(&self, _: &[Grant]) -> Result<(), LogError> {
            Err(LogError::NoSpace("the database".into()))
        }
    }
    let answers = Answers::new(&[Some(Decision::Folder)]);
    let mut setup = Setup::new(vec![opener("Read", Effect::Read)]);
    setup.approver = answers.clone();
    setup.grants = Some(Arc::new(Broken));
    let test = setup.build();
    for path in ["/etc/hosts", "/etc/hosts"] {
        test.run(&[("Read", at(path))]).await[0].output();
    }
    let answer = &answered(&test)[0];
    assert_eq!((answer.decision, answer.grants.len()), (Decision::Session, 1));
    assert!(
        answer.note.as_ref().unwrap().contains("this session only") && answer.note.as_ref().unwrap().contains("full")
    );
    assert_eq!(answers.asked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_answer_that_no_longer_holds_grants_nothing() {
    let count = Arc::new(Mutex::new(0));
    let answers = Answers::new(&[Some(Decision::Session), Some(Decision::Once)]);
    let edit = opener("Edit", Effect::Edit).previews(move |_| {
        // Changes between the first question and its answer.
        let mut count = count.lock().unwrap();
        *count += 1;
        let text = if *count == 1 { "a" } else { "b" };
        Ok(vec![Diff { path: "/x".into(), text: text.into(), added: 1, removed: 0 }])
    });
    let test = asking(&answers, vec![edit]);
    test.run(&[("Edit", at("/x"))]).await[0].output();
    let grants: Vec<usize> = answered(&test).iter().map(|answer| answer.grants.len()).collect();
    assert_eq!(grants, [0, 0]);
    assert_eq!(test.cx.state.lock().unwrap().grants, []);
}

#[tokio::test]
async fn parallel_calls_are_asked_about_one_after_the_other() {
    // The first answer is for the session, so that the second call of the same path is no question any more.
    let answers = Answers::new(&[Some(Decision::Session), Some(Decision::Once)]);
    let test = asking(&answers, vec![opener("Read", Effect::Read)]);
    let calls = [("Read", at("/etc/hosts")), ("Read", at("/etc/hosts")), ("Read", at("/srv"))];
    for outcome in test.run(&calls).await {
        outcome.output();
    }
    assert_eq!(answers.asked.lock().unwrap().len(), 2);
    let approvals: Vec<String> = test.log.types().into_iter().filter(|kind| kind.starts_with("approval.")).collect();
    assert_eq!(approvals, ["approval.asked", "approval.answered", "approval.asked", "approval.answered"]);
}

#[tokio::test]
async fn an_abort_ends_the_question_and_those_that_wait_behind_it() {
    let answers = Answers::new(&[]);
    let test = asking(&answers, vec![opener("Read", Effect::Read)]);
    let running = test.start(&[("Read", at("/a")), ("Read", at("/b"))]);
    until(|| answers.asked.lock().unwrap().len() == 1).await;
    test.cx.abort.cancel();
    for outcome in running.await.unwrap() {
        outcome.failed_as(ToolErrorClass::NotRun);
    }
}

#[tokio::test]
async fn a_secret_is_never_granted() {
    let answers = Answers::new(&[Some(Decision::Session), Some(Decision::Session)]);
    let keeper = Arc::new(MemoryGrants::default());
    let mut setup = Setup::new(vec![runner()]);
    (setup.approver, setup.policy) = (answers.clone(), asks_about("curl"));
    setup.grants = Some(keeper.clone());
    setup.secrets = vec!["hunter2-hunter2".into()];
    let test = setup.build();
    for _ in 0..2 {
        test.run(&[("Run", at("curl -u hunter2-hunter2 x"))]).await[0].output();
    }
    let asked = answers.asked.lock().unwrap();
    assert_eq!(asked.iter().map(|asked| asked.grants.len()).collect::<Vec<_>>(), [0, 0]);
    assert!(!serde_json::to_string(&test.log.events()).unwrap().contains("hunter2"));
    assert_eq!(keeper.all(), []);
}

#[tokio::test]
async fn what_a_rule_keeps_is_left_out_of_what_a_call_sees() {
    use hames_tools::FsError;
    let mut setup = Setup::new(vec![TestTool::new("Look").does(|input, cx| async move {
        let (folder, inner) = (cx.resolve(".")?, cx.resolve(input["n"].as_str().unwrap_or("a.env"))?);
        let names: Vec<String> = cx.fs.list(&folder)?.into_iter().map(|entry| entry.name).collect();
        let opened = match cx.fs.open(&inner) {
            Err(FsError::Ruled { path }) => format!("{path} is ruled"),
            other => format!("{}", other.is_ok()),
        };
        Ok(ToolOutput::text(format!("{} {opened}", names.join(","))))
    })]);
    setup.policy.rules = vec![about_path(RuleVerdict::Ask, "*.env"), about_path(RuleVerdict::Deny, "private")];
    setup.approver = Answers::new(&[Some(Decision::Once)]);
    let test = setup.build();
    *test.fs.entries.lock().unwrap() = vec!["a.env", "b.txt", "private"];
    assert_eq!(test.run(&[("Look", at("."))]).await[0].output(), "b.txt a.env is ruled");
    assert_eq!(test.run(&[("Look", json!({"path": "a.env"}))]).await[0].output(), "a.env,b.txt true");
}
