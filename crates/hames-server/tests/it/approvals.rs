//! Calls that wait for a person, with or without anybody attached, and proposals that wait for a decision.

use hames_protocol::api::*;
use hames_protocol::{CallId, Decision, Delivery, ErrorClass, Event, Failure, Mode, QuestionAsked, ToolErrorClass};
use serde_json::json;

use crate::support::{Bed, Reply, ask, message, wait};

/// A session whose run waits for a person about a call.
async fn waiting() -> (Bed, CallId, String) {
    let bed = Bed::with(false, |host| host.asks = true).await;
    bed.model.will([wait(), Reply::text("Then.")]);
    bed.model.allow_tools(10);
    bed.send("go", Delivery::Queue).await;
    bed.hub.counts().wait_for(|counts| counts.waiting == 1).await.unwrap();
    let asked = bed.hub.waiting(&bed.id).await.unwrap().approvals.remove(0);
    (bed, asked.call_id, asked.digest)
}

fn answer(digest: &str, decision: Decision, by: &str) -> AnswerApproval {
    AnswerApproval { digest: digest.into(), decision, by: Some(by.into()) }
}

#[tokio::test]
async fn a_call_waits_with_nobody_attached_and_lists_say_so() {
    let (bed, call, digest) = waiting().await;
    let row = bed.hub.sessions(None).await.unwrap().sessions.remove(0);
    assert_eq!(row.state, SessionActivity::WaitingForYou);
    let view = bed.hub.view(&bed.id).await.unwrap();
    assert_eq!(view.run.unwrap().doing, "waiting for you");
    assert!(!bed.hub.is_idle());
    // Whoever comes later finds the question in the log.
    let mut client = bed.hub.attach(&bed.id, Some(0)).await.unwrap();
    let seen = client.next().await.unwrap().unwrap();
    assert!(seen.iter().any(|news| matches!(news.envelope().event, Event::ApprovalAsked(_))));
    bed.hub.answer_approval(&bed.id, &call, answer(&digest, Decision::Once, "web")).await.unwrap();
    bed.quiet().await;
    let events = bed.log().await;
    let by = events.iter().find_map(|e| match &e.event {
        Event::ApprovalAnswered(answered) => Some((answered.by.clone(), answered.decision)),
        _ => None,
    });
    assert_eq!(by, Some(("web".into(), Decision::Once)));
    assert!(events.iter().any(|e| matches!(e.event, Event::ToolDone(_))));
}

#[tokio::test]
async fn the_first_answer_holds_and_others_are_told_whose_it_was() {
    let (bed, call, digest) = waiting().await;
    for (given, code) in [
        (bed.hub.answer_approval(&bed.id, &call, answer("other", Decision::Once, "a")).await, ApiErrorCode::Stale),
        (
            bed.hub.answer_approval(&bed.id, &"nobody".into(), answer(&digest, Decision::Once, "a")).await,
            ApiErrorCode::NotFound,
        ),
    ] {
        assert_eq!(given.unwrap_err().code, code);
    }
    let (first, second) = tokio::join!(
        bed.hub.answer_approval(&bed.id, &call, answer(&digest, Decision::Deny, "terminal")),
        bed.hub.answer_approval(&bed.id, &call, answer(&digest, Decision::Once, "web")),
    );
    first.unwrap();
    let late = second.unwrap_err();
    assert_eq!((late.code, late.by.as_deref()), (ApiErrorCode::Answered, Some("terminal")));
    bed.quiet().await;
    let late = bed.hub.answer_approval(&bed.id, &call, answer(&digest, Decision::Once, "web")).await.unwrap_err();
    assert_eq!((late.code, late.by.as_deref()), (ApiErrorCode::Answered, Some("terminal")));
    let refused = bed
        .log()
        .await
        .iter()
        .any(|e| matches!(&e.event, Event::ToolError(error) if error.class == ToolErrorClass::Refused));
    assert!(refused);
}

#[tokio::test]
async fn a_stop_and_a_restart_answer_what_waits() {
    let (bed, call, digest) = waiting().await;
    bed.hub.abort(&bed.id, Abort::default()).await.unwrap();
    assert_eq!(bed.hub.waiting(&bed.id).await.unwrap().approvals, []);
    let late = bed.hub.answer_approval(&bed.id, &call, answer(&digest, Decision::Once, "web")).await.unwrap_err();
    assert_eq!(late.code, ApiErrorCode::NotFound);
    assert_eq!(bed.hub.counts().borrow().waiting, 0);

    let (mut bed, ..) = waiting().await;
    bed.restart().await;
    let view = bed.hub.view(&bed.id).await.unwrap();
    assert_eq!((view.row.state, view.run), (SessionActivity::Idle, None));
    let (asked, closed) = bed.log().await.iter().fold((0, 0), |(asked, closed), e| match e.event {
        Event::ToolCall(_) => (asked + 1, closed),
        Event::ToolError(_) => (asked, closed + 1),
        _ => (asked, closed),
    });
    assert_eq!((asked, closed), (1, 1));
}

/// A session whose run waits for a person about a question.
async fn asked(questions: &[&str]) -> (Bed, QuestionAsked) {
    let bed = Bed::new().await;
    bed.model.will([ask(questions), Reply::text("Then.")]);
    bed.send("go", Delivery::Queue).await;
    let question = next_question(&bed).await;
    (bed, question)
}

async fn next_question(bed: &Bed) -> QuestionAsked {
    bed.hub.counts().wait_for(|counts| counts.waiting == 1).await.unwrap();
    bed.hub.waiting(&bed.id).await.unwrap().questions.remove(0)
}

fn told(question: &QuestionAsked, text: &str, by: &str) -> AnswerQuestion {
    AnswerQuestion { digest: Some(question.digest.clone()), answer: text.into(), by: Some(by.into()) }
}

#[tokio::test]
async fn a_question_waits_with_nobody_attached_and_its_answer_reaches_the_tool() {
    let (bed, question) = asked(&["Which colour?"]).await;
    assert_eq!((question.text.as_str(), question.choices.len()), ("Which colour?", 2));
    let row = bed.hub.sessions(None).await.unwrap().sessions.remove(0);
    assert_eq!(row.state, SessionActivity::WaitingForYou);
    assert_eq!(bed.hub.view(&bed.id).await.unwrap().run.unwrap().doing, "waiting for you");
    let mut client = bed.hub.attach(&bed.id, Some(0)).await.unwrap();
    let seen = client.next().await.unwrap().unwrap();
    assert!(seen.iter().any(|news| matches!(news.envelope().event, Event::QuestionAsked(_))));
    bed.hub.answer_question(&bed.id, &question.call_id, told(&question, "green", "web")).await.unwrap();
    bed.quiet().await;
    let log = bed.log().await;
    let answer = log.iter().find_map(|e| match &e.event {
        Event::QuestionAnswered(answer) => Some((answer.text.as_str(), answer.by.as_str(), &answer.digest)),
        _ => None,
    });
    assert_eq!(answer, Some(("green", "web", &question.digest)));
    assert!(log.iter().any(|e| matches!(&e.event, Event::ToolDone(done) if done.output == "green")));
    assert_eq!(bed.hub.waiting(&bed.id).await.unwrap().questions, []);
}

#[tokio::test]
async fn the_first_answer_to_a_question_holds_and_one_to_another_question_does_not_count() {
    let (bed, first) = asked(&["Which colour?", "Which colour?"]).await;
    let call = &first.call_id;
    for (given, code) in [
        (
            bed.hub.answer_question(&bed.id, call, AnswerQuestion { digest: None, ..told(&first, "red", "a") }).await,
            ApiErrorCode::Stale,
        ),
        (bed.hub.answer_question(&bed.id, call, told(&first, " \n", "a")).await, ApiErrorCode::Invalid),
        (bed.hub.answer_question(&bed.id, &"nobody".into(), told(&first, "red", "a")).await, ApiErrorCode::NotFound),
        (
            bed.hub.answer_approval(&bed.id, call, answer(&first.digest, Decision::Once, "a")).await,
            ApiErrorCode::NotFound,
        ),
    ] {
        assert_eq!(given.unwrap_err().code, code);
    }
    let (held, late) = tokio::join!(
        bed.hub.answer_question(&bed.id, call, told(&first, "red", "terminal")),
        bed.hub.answer_question(&bed.id, call, told(&first, "blue", "web")),
    );
    held.unwrap();
    // The same words are asked once more; whoever still answers what was shown before answers nothing.
    let late = late.unwrap_err();
    assert!(
        (late.code, late.by.as_deref()) == (ApiErrorCode::Answered, Some("terminal"))
            || late.code == ApiErrorCode::Stale,
        "{late:?}"
    );
    let second = next_question(&bed).await;
    assert_ne!(second.digest, first.digest);
    let stale = bed.hub.answer_question(&bed.id, call, told(&first, "blue", "web")).await.unwrap_err();
    assert_eq!(stale.code, ApiErrorCode::Stale);
    bed.hub.answer_question(&bed.id, call, told(&second, "blue", "")).await.unwrap();
    bed.quiet().await;
    let late = bed.hub.answer_question(&bed.id, call, told(&second, "red", "web")).await.unwrap_err();
    assert_eq!((late.code, late.by.as_deref()), (ApiErrorCode::Answered, Some("user")));
    let log = bed.log().await;
    assert!(log.iter().any(|e| matches!(&e.event, Event::ToolDone(done) if done.output == "red, blue")));
}

#[tokio::test]
async fn a_stop_and_a_restart_end_what_was_asked() {
    let (bed, question) = asked(&["Which colour?"]).await;
    bed.hub.abort(&bed.id, Abort::default()).await.unwrap();
    assert_eq!(bed.hub.waiting(&bed.id).await.unwrap().questions, []);
    assert_eq!(bed.hub.counts().borrow().waiting, 0);
    let late = bed.hub.answer_question(&bed.id, &question.call_id, told(&question, "red", "web")).await.unwrap_err();
    assert_eq!(late.code, ApiErrorCode::NotFound);

    let (mut bed, question) = asked(&["Which colour?"]).await;
    bed.restart().await;
    assert_eq!(bed.hub.view(&bed.id).await.unwrap().row.state, SessionActivity::Idle);
    let late = bed.hub.answer_question(&bed.id, &question.call_id, told(&question, "red", "web")).await.unwrap_err();
    assert_eq!(late.code, ApiErrorCode::NotFound);
}

/// A session whose run in Analyze has proposed a file.
async fn proposed() -> (Bed, ProposalsAsked) {
    let mut bed = Bed::new().await;
    bed.id = bed.session(Some(Mode::Analyze)).await;
    bed.model.will([Reply::call("Write", &json!({"path": "a.txt", "content": "hello\n"})), Reply::text("Proposed.")]);
    bed.send("go", Delivery::Queue).await;
    let view = bed.quiet().await;
    assert_eq!(view.row.state, SessionActivity::WaitingForYou);
    let asked = bed.hub.waiting(&bed.id).await.unwrap().proposals.unwrap();
    assert_eq!(asked.paths, view.proposals);
    (bed, asked)
}

#[tokio::test]
async fn proposals_of_a_run_are_asked_about_once() {
    for decision in
        [ProposalsDecision::Apply, ProposalsDecision::Build, ProposalsDecision::Keep, ProposalsDecision::Discard]
    {
        let (bed, asked) = proposed().await;
        let file = bed.folder.path().join("a.txt");
        let other = DecideProposals { run: "another".into(), decision };
        assert_eq!(bed.hub.decide_proposals(&bed.id, other).await.unwrap_err().code, ApiErrorCode::Stale);
        let decide = || DecideProposals { run: asked.run.clone(), decision };
        bed.hub.decide_proposals(&bed.id, decide()).await.unwrap();
        let again = bed.hub.decide_proposals(&bed.id, decide()).await.unwrap_err();
        assert_eq!(again.code, ApiErrorCode::Answered);
        let view = bed.quiet().await;
        let (is_there, open) = (file.exists(), view.proposals.len());
        let expected = match decision {
            ProposalsDecision::Apply => (true, 0, Mode::Analyze),
            ProposalsDecision::Build => (false, 1, Mode::Build),
            ProposalsDecision::Keep => (false, 1, Mode::Analyze),
            ProposalsDecision::Discard => (false, 0, Mode::Analyze),
        };
        assert_eq!((is_there, open, view.effective.mode.unwrap()), expected, "{decision:?}");
        let runs = bed.types().await.iter().filter(|kind| *kind == "run.start").count();
        assert_eq!(runs, if decision == ProposalsDecision::Build { 2 } else { 1 });
        assert_eq!(bed.hub.waiting(&bed.id).await.unwrap().proposals, None);
    }
}

#[tokio::test]
async fn a_run_in_build_that_makes_what_was_proposed_leaves_nothing_of_it_open() {
    let write = |content: &str| Reply::call("Write", &json!({"path": "a.txt", "content": content}));
    for (made, is_open) in [("hello\n", false), ("something else\n", true)] {
        let (mut bed, asked) = proposed().await;
        bed.model.will([write(made), Reply::text("Made.")]);
        let build = DecideProposals { run: asked.run, decision: ProposalsDecision::Build };
        bed.hub.decide_proposals(&bed.id, build).await.unwrap();
        let view = bed.quiet().await;
        assert_eq!(std::fs::read_to_string(bed.folder.path().join("a.txt")).unwrap(), made);
        assert_eq!((view.proposals.len(), view.row.state), (usize::from(is_open), SessionActivity::Idle), "{made:?}");
        let changes = bed.hub.changes(&bed.id).await.unwrap().changes;
        assert!(changes.iter().all(|change| change.conflict.is_some()), "{changes:?}");
        assert_eq!(bed.types().await.contains(&"changes.applied".to_owned()), !is_open);
        bed.restart().await;
        assert_eq!(bed.hub.view(&bed.id).await.unwrap().proposals, view.proposals, "the outline says the same");
    }
}

#[tokio::test]
async fn going_on_in_build_changes_nothing_where_no_run_can_begin() {
    let (bed, asked) = proposed().await;
    let no_key = Failure::new(ErrorClass::Configuration, "There is no key.");
    *bed.host.refuses.lock().unwrap() = Some(no_key);
    let build = || DecideProposals { run: asked.run.clone(), decision: ProposalsDecision::Build };
    let refused = bed.hub.decide_proposals(&bed.id, build()).await.unwrap_err();
    assert_eq!(refused.code, ApiErrorCode::Configuration);
    let view = bed.hub.view(&bed.id).await.unwrap();
    assert_eq!((view.effective.mode, view.pending.len()), (Some(Mode::Analyze), 0));
    assert_eq!(bed.hub.waiting(&bed.id).await.unwrap().proposals.as_ref(), Some(&asked), "it is still asked");
    *bed.host.refuses.lock().unwrap() = None;
    bed.hub.decide_proposals(&bed.id, build()).await.unwrap();
    assert_eq!(bed.quiet().await.effective.mode, Some(Mode::Build));
}

async fn in_list(bed: &Bed) -> SessionActivity {
    let sessions = bed.hub.sessions(None).await.unwrap().sessions;
    sessions.into_iter().find(|row| row.id == bed.id).unwrap().state
}

#[tokio::test]
async fn proposals_wait_for_their_decision_across_restarts_and_for_one_only() {
    let (mut bed, asked) = proposed().await;
    for _ in 0..2 {
        bed.restart().await;
        assert_eq!(in_list(&bed).await, SessionActivity::WaitingForYou);
        assert_eq!(bed.hub.view(&bed.id).await.unwrap().row.state, SessionActivity::WaitingForYou);
        assert_eq!(bed.hub.waiting(&bed.id).await.unwrap().proposals.as_ref(), Some(&asked));
        assert_eq!(bed.hub.counts().borrow().sessions, 0, "looking opens nothing");
    }
    let keep = || DecideProposals { run: asked.run.clone(), decision: ProposalsDecision::Keep };
    bed.hub.decide_proposals(&bed.id, keep()).await.unwrap();
    for _ in 0..2 {
        assert_eq!(in_list(&bed).await, SessionActivity::Idle);
        assert_eq!(bed.hub.waiting(&bed.id).await.unwrap().proposals, None);
        assert_eq!(bed.hub.decide_proposals(&bed.id, keep()).await.unwrap_err().code, ApiErrorCode::Answered);
        assert_eq!(bed.hub.view(&bed.id).await.unwrap().proposals, asked.paths, "they are still there");
        bed.restart().await;
    }
}

#[tokio::test]
async fn a_run_that_takes_back_what_it_proposed_asks_nothing() {
    let mut bed = Bed::new().await;
    bed.id = bed.session(Some(Mode::Analyze)).await;
    let write = Reply::call("Write", &json!({"path": "a.txt", "content": "hello\n"}));
    bed.model.will([write, Reply::call("Delete", &json!({"path": "a.txt"})), Reply::text("On second thought, no.")]);
    bed.send("go", Delivery::Queue).await;
    let view = bed.quiet().await;
    assert_eq!((view.proposals, view.row.state), (vec![], SessionActivity::Idle));
    assert!(bed.types().await.contains(&"change.proposed".to_owned()));
    assert_eq!(in_list(&bed).await, SessionActivity::Idle);
}

#[tokio::test]
async fn what_was_kept_is_not_asked_about_again_and_changes_are_listed_and_settled_one_by_one() {
    let (bed, asked) = proposed().await;
    let keep = DecideProposals { run: asked.run, decision: ProposalsDecision::Keep };
    bed.hub.decide_proposals(&bed.id, keep).await.unwrap();
    bed.model.will([Reply::text("Nothing new.")]);
    bed.send("and?", Delivery::Queue).await;
    bed.quiet().await;
    assert_eq!(bed.hub.waiting(&bed.id).await.unwrap().proposals, None);

    let changes = bed.hub.changes(&bed.id).await.unwrap().changes;
    assert_eq!((changes.len(), changes[0].kind.as_str(), changes[0].added), (1, "write", 1));
    assert!(changes[0].diff.as_ref().unwrap().contains("+hello"));
    let given = |path: &str| ChangePathsGiven { paths: vec![path.into()] };
    assert_eq!(bed.hub.apply_changes(&bed.id, given("b.txt")).await.unwrap_err().code, ApiErrorCode::Invalid);
    std::fs::write(bed.folder.path().join("a.txt"), "mine\n").unwrap();
    let stale = bed.hub.apply_changes(&bed.id, given("a.txt")).await.unwrap_err();
    assert_eq!(stale.code, ApiErrorCode::Stale);
    std::fs::remove_file(bed.folder.path().join("a.txt")).unwrap();
    let settled = bed.hub.apply_changes(&bed.id, given("a.txt")).await.unwrap();
    assert_eq!((settled.paths.len(), settled.left.len()), (1, 0));
    assert_eq!(std::fs::read_to_string(bed.folder.path().join("a.txt")).unwrap(), "hello\n");
    assert_eq!(bed.hub.changes(&bed.id).await.unwrap().changes, []);
}

#[tokio::test]
async fn changes_are_not_made_beside_a_run() {
    let (bed, ..) = waiting().await;
    let all = || ChangePathsGiven { paths: vec![] };
    for refused in [
        bed.hub.apply_changes(&bed.id, all()).await.unwrap_err(),
        bed.hub.discard_changes(&bed.id, all()).await.unwrap_err(),
        bed.hub.delete(&bed.id).await.unwrap_err(),
    ] {
        assert_eq!(refused.code, ApiErrorCode::Busy);
    }
    assert!(!bed.hub.send(&bed.id, message("later", Delivery::Queue)).await.unwrap().starts_run);
}
