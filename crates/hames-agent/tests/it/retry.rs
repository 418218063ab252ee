//! When a request is tried again, and what happens meanwhile.

use std::time::Duration;

use hames_protocol::{Delivery, ErrorClass, Event, Failure, Retry, RunResult, Stated};
use tokio::time::Instant;

use crate::support::{Hames, Reply, ended, hames, pending};

fn busy() -> Failure {
    Failure::new(ErrorClass::Overloaded, "The provider is busy.").retryable()
}

fn asks_for(ms: u64) -> Failure {
    Failure { retry_after_ms: Some(ms), ..busy() }
}

fn retries(hames: &Hames) -> Vec<Retry> {
    hames.find(|event| if let Event::Retry(retry) = event { Some(retry.clone()) } else { None })
}

#[tokio::test(start_paused = true)]
async fn a_failure_before_anything_was_seen_is_tried_again_with_growing_waits() {
    let mut hames =
        hames([Reply::refused(busy()), Reply::refused(busy()), Reply::refused(busy()), Reply::text("Here.")]).await;
    let began = Instant::now();
    ended(&hames.run("go").await, RunResult::Complete, 0);
    let all = retries(&hames);
    let attempts: Vec<(u32, u32)> = all.iter().map(|r| (r.attempt, r.max_attempts)).collect();
    assert_eq!(attempts, [(1, 4), (2, 4), (3, 4)]);
    for (retry, base) in all.iter().zip([2_000, 4_000, 8_000]) {
        assert!((base..base + base / 4).contains(&retry.delay_ms), "{retry:?}");
        assert_eq!(retry.failure, busy());
    }
    let waited: u64 = all.iter().map(|r| r.delay_ms).sum();
    assert_eq!(began.elapsed().as_millis() / 10, u128::from(waited) / 10);
    // It is said before it is waited for, and one step is one step.
    let expected = "run.start message.user step.start retry retry retry text.done step.done done turn.done run.done";
    assert_eq!(hames.types().join(" "), expected);
}

#[tokio::test(start_paused = true)]
async fn four_requests_are_enough() {
    for reply in [Reply::refused(busy()), Reply::new().breaks(busy()), Reply::new().finish(Some("error"))] {
        let mut hames = hames(std::iter::repeat_n(reply, 20)).await;
        let end = hames.run("go").await;
        ended(&end, RunResult::Error, 1);
        assert!(end.failure.is_some());
        assert_eq!((hames.model.asked().len(), retries(&hames).len()), (4, 3));
        // The same bytes each time.
        let asked = hames.model.asked();
        assert!(asked.iter().all(|a| a.items.len() == 1 && a.options == asked[0].options));
    }
}

#[tokio::test(start_paused = true)]
async fn the_providers_own_delay_is_kept_to() {
    for ms in [0, 1, 700, 2_000, 45_000, 299_999, 300_000] {
        let mut hames = hames([Reply::refused(asks_for(ms)), Reply::text("Here.")]).await;
        let began = Instant::now();
        ended(&hames.run("go").await, RunResult::Complete, 0);
        let waited = began.elapsed();
        assert!(waited >= Duration::from_millis(ms) && waited < Duration::from_millis(ms + 50), "{ms}: {waited:?}");
        assert_eq!(retries(&hames)[0].delay_ms, ms);
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_hours_is_not_waited() {
    for ms in [300_001, 3_600_000, u64::MAX] {
        let mut hames = hames([Reply::refused(asks_for(ms)), Reply::text("unasked")]).await;
        let began = Instant::now();
        ended(&hames.run("go").await, RunResult::Error, 1);
        assert_eq!(hames.model.asked().len(), 1);
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}

#[tokio::test(start_paused = true)]
async fn what_would_fail_again_is_not_tried_again() {
    use ErrorClass::*;
    for class in [Auth, QuotaExhausted, ModelNotFound, InvalidRequest, ContextOverflow, ContentFilter, WrongBaseUrl] {
        let mut hames = hames([Reply::refused(Failure::new(class, "No.")), Reply::text("unasked")]).await;
        let end = hames.run("go").await;
        ended(&end, RunResult::Error, 1);
        assert_eq!((hames.model.asked().len(), end.failure.map(|f| f.class)), (1, Some(class)));
    }
    for class in [Configuration, Usage] {
        let mut hames = hames([Reply::refused(Failure::new(class, "No."))]).await;
        ended(&hames.run("go").await, RunResult::Error, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_loads_its_model_is_asked_for_minutes() {
    let loading = Failure { stated: Some(Box::new(Stated { is_loading: true, ..Stated::default() })), ..busy() };
    let mut replies: Vec<Reply> = std::iter::repeat_n(Reply::refused(loading.clone()), 40).collect();
    replies.push(Reply::text("Loaded."));
    let mut patient = hames(replies).await;
    let began = Instant::now();
    ended(&patient.run("go").await, RunResult::Complete, 0);
    assert!(began.elapsed() > Duration::from_secs(300), "{:?}", began.elapsed());
    assert_eq!(retries(&patient).len(), 40);
    assert!(retries(&patient).iter().all(|retry| retry.attempt < retry.max_attempts));

    let mut hopeless = hames(std::iter::repeat_n(Reply::refused(loading.clone()), 200)).await;
    let began = Instant::now();
    let end = hopeless.run("go").await;
    ended(&end, RunResult::Error, 1);
    assert_eq!(end.failure, Some(loading));
    assert!(began.elapsed() <= Duration::from_secs(600) && hopeless.model.asked().len() < 100);
}

#[tokio::test(start_paused = true)]
async fn a_call_the_provider_could_not_read_is_asked_for_once_more() {
    let unreadable = || Failure::new(ErrorClass::ToolUseFailed, "No call.").retryable();
    let mut twice =
        hames([Reply::refused(unreadable()), Reply::new().breaks(unreadable()), Reply::text("unasked")]).await;
    let began = Instant::now();
    ended(&twice.run("go").await, RunResult::Error, 1);
    assert_eq!((twice.model.asked().len(), began.elapsed()), (2, Duration::ZERO));

    let mut once = hames([Reply::refused(unreadable()), Reply::text("Here.")]).await;
    ended(&once.run("go").await, RunResult::Complete, 0);
    assert_eq!(once.model.asked().len(), 2);

    // What the connection could mend, it has mended; the same bytes would be refused again.
    let refused = Failure::new(ErrorClass::InvalidRequestFixable, "No such parameter.").retryable();
    let mut fixable = hames([Reply::refused(refused), Reply::text("unasked")]).await;
    ended(&fixable.run("go").await, RunResult::Error, 1);
    assert_eq!(fixable.model.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_next_step_has_all_its_attempts_again() {
    let look = || Reply::call("Look", serde_json::json!({"path": "a"}));
    let mut replies = Vec::new();
    for _ in 0..5 {
        replies.extend([Reply::refused(busy()), Reply::refused(busy()), Reply::refused(busy()), look()]);
    }
    replies.push(Reply::text("Done."));
    let mut hames = hames(replies).await;
    ended(&hames.run("go").await, RunResult::Complete, 0);
    assert_eq!(retries(&hames).len(), 15);
}

#[tokio::test(start_paused = true)]
async fn stopping_during_the_wait_ends_the_run_at_once() {
    let mut hames = hames([Reply::refused(asks_for(290_000)), Reply::text("unasked")]).await;
    let (abort, trace) = (hames.abort.clone(), hames.trace.clone());
    let began = Instant::now();
    let stops = async {
        trace.until("see retry").await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        abort.cancel();
    };
    let (end, ()) = tokio::join!(hames.run("go"), stops);
    ended(&end, RunResult::Interrupted, 130);
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_eq!(hames.model.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_message_during_the_wait_is_heard_at_once() {
    let mut hames = hames([Reply::refused(asks_for(290_000)), Reply::text("Heard.")]).await;
    let (inbox, trace) = (hames.inbox.clone(), hames.trace.clone());
    let began = Instant::now();
    let says = async {
        trace.until("see retry").await;
        tokio::time::sleep(Duration::from_millis(10)).await;
        inbox.push(pending("1", Delivery::Interrupt)).unwrap();
    };
    let (end, ()) = tokio::join!(hames.run("go"), says);
    ended(&end, RunResult::Complete, 0);
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_eq!(hames.model.asked()[1].items.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_last_failure_is_told_with_what_the_provider_said() {
    let failure = Failure {
        provider_message: Some("too many".into()),
        status: Some(429),
        request_id: Some("req-1".into()),
        ..asks_for(10)
    };
    let mut hames = hames(std::iter::repeat_n(Reply::refused(failure.clone()), 4)).await;
    let end = hames.run("go").await;
    assert_eq!(end.failure.as_ref(), Some(&failure));
    let told = hames.find(|event| if let Event::Error(told) = event { Some(told.clone()) } else { None });
    assert_eq!(told, [failure]);
}
