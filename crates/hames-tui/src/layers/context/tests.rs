use hames_protocol::{
    Break, CheckpointKind, Envelope, ItemKind, ItemState, PinnedBy, Projection, ReportBudget, ReportItem,
    ReportOpening, ReportPin, ReportRequest, ReportSent, ReportSum, WindowPreview, WindowReport,
};

use super::super::parts::kit::{Stand, key, row};
use super::*;
use crate::snapshot::compare;

fn told(stage: &str) -> Box<SessionContext> {
    let sum = |items, tokens, bytes| ReportSum { items, tokens, bytes };
    let item = |event, kind, label: &str, state, projection| ReportItem {
        event,
        turn: 1,
        kind,
        label: label.into(),
        state,
        projection,
        tokens: 4_200,
        sent_tokens: 12,
        bytes: 17_000,
        sent_bytes: 48,
        kept: (projection == Projection::Stub).then(|| "out-3".into()),
        archive: (state == ItemState::Archived).then(|| "archive-1".into()),
    };
    let report = WindowReport {
        strategy: "carried".into(),
        budget: ReportBudget {
            window: 128_000,
            reserve: 16_384,
            margin: 6_400,
            usable: 111_616,
            trigger: 89_292,
            landing: 11_161,
            head: 7_400,
            fill: 91_000,
            pin_limit: 16_742,
            pinned: 310,
            ratio: 1_080,
        },
        items: vec![
            item(3, ItemKind::User, "mend the lathe \u{1b}[2J設計", ItemState::Archived, Projection::Opening),
            item(9, ItemKind::Pin, "never touch vendor/", ItemState::Pinned, Projection::Full),
            item(12, ItemKind::Result, "Shell cargo test", ItemState::Retained, Projection::Stub),
            item(15, ItemKind::Answer, "The count is wrong", ItemState::Active, Projection::Full),
        ],
        sent: sum(3, 84_000, 330_000),
        masked: sum(1, 4_200, 17_000),
        retired: sum(0, 0, 0),
        archived: sum(1, 4_200, 17_000),
        opening: Some(ReportOpening {
            event: 8,
            kind: CheckpointKind::Summary,
            document_tokens: 900,
            tokens: 1_200,
            items_above: 1,
            archives: vec!["archive-1".into()],
            deferred: vec![],
        }),
        pins: vec![ReportPin { pin: 9, item: 9, by: PinnedBy::Model, projection: Projection::Full }],
        request: Some(ReportRequest {
            event: 14,
            bytes: 342_110,
            changed_at: Some(28_412),
            changed_why: "item".into(),
            changed_by: Some(Break::Masked),
            changed_by_event: Some(13),
        }),
        requests: ReportSent {
            requests: 7,
            bytes: 1_800_000,
            uncached_bytes: 400_000,
            breaks: [("masked".to_owned(), 1)].into(),
        },
        repairs: Default::default(),
    };
    let next = WindowPreview {
        fill: 91_000,
        trigger: 89_292,
        stage: stage.into(),
        after: 20_000,
        kept: 11_000,
        leaving: 41,
        floor_percent: 4,
        ceiling_percent: 79,
        document: 8_000,
    };
    Box::new(SessionContext { report, next })
}

fn stand() -> Stand {
    Stand::showing(row("s1", "lathe"))
}

fn open(stand: &mut Stand, asks: bool, stage: &str) -> Report {
    let mut layer = Report::new(asks, &mut stand.cx());
    stand.answer(&mut layer, Ok(Answer::Context(told(stage))));
    layer
}

#[test]
fn the_screens() {
    let mut none = Stand::default();
    let mut out = none.screens(&mut Report::new(false, &mut Stand::default().cx()));
    let mut stand = stand();
    let mut busy = Report::new(false, &mut stand.cx());
    stand.answer(&mut busy, Err(ApiError::new(ApiErrorCode::Busy, "A run goes on.")));
    out.push_str(&stand.screens(&mut busy));
    let mut layer = open(&mut stand, false, "summary");
    out.push_str(&stand.screens(&mut layer));
    stand.give(&mut layer, &key(KeyCode::End));
    out.push_str(&stand.screens(&mut layer));
    let mut layer = open(&mut stand, true, "mask");
    out.push_str(&stand.screens(&mut layer));
    compare("layer-context", &out);
    stand.at_every_size(&mut layer);
}

#[test]
fn compacting_says_first_what_it_does_and_then_what_it_did() {
    let compacts =
        |stand: &mut Stand| matches!(&stand.asked()[..], [(_, Request::Compact(session))] if session.as_str() == "s1");
    for (keys, done) in [
        (vec![], false),
        (vec![KeyCode::Enter], false),
        (vec![KeyCode::Char('n')], false),
        (vec![KeyCode::Char('y')], true),
    ] {
        let mut stand = stand();
        let mut layer = open(&mut stand, true, "summary");
        let screen = stand.screen(&mut layer, 80, 24);
        assert!(screen.contains("Compact the window now?") && screen.contains("41 items"), "{screen}");
        for code in &keys {
            stand.give(&mut layer, &key(*code));
        }
        assert_eq!(compacts(&mut stand), done, "{keys:?}");
    }
    let mut stand = stand();
    let mut layer = open(&mut stand, false, "summary");
    stand.give(&mut layer, &key(KeyCode::Char('c')));
    stand.give(&mut layer, &key(KeyCode::Char('y')));
    let done = SessionCompacted { compacted: true, tokens_before: Some(91_000), tokens_after: Some(20_000) };
    stand.answer(&mut layer, Ok(Answer::Compacted(Box::new(done))));
    let screen = stand.screen(&mut layer, 80, 24);
    assert!(screen.contains("Compacted: about 20,000 tokens instead of 91,000."), "{screen}");
    assert!(matches!(&stand.asked()[..], [(_, Request::Context(_))]), "and it is read again");
    // Where nothing would be gained, nobody is asked.
    let mut layer = open(&mut stand, true, "nothing");
    assert!(stand.screen(&mut layer, 80, 24).contains("A compaction would gain nothing now."));
}

#[test]
fn it_is_read_again_when_the_run_goes_on_and_one_question_at_a_time() {
    let mut stand = stand();
    let mut layer = Report::new(false, &mut stand.cx());
    let [(first, _)] = stand.asked()[..] else { panic!() };
    for seq in 1..4 {
        let step = Envelope::detached(seq, Event::step_done_for_tests("stop"));
        stand.give(&mut layer, &Input::News(vec![step]));
    }
    assert!(stand.asked().is_empty());
    layer.answer(first, Ok(Answer::Context(told("mask"))), &mut stand.cx());
    let [(second, _)] = stand.asked()[..] else { panic!("it was outdated") };
    assert!(matches!(layer.answer(first, Ok(Answer::Done), &mut stand.cx()), Outcome::Passed));
    layer.answer(second, Ok(Answer::Context(told("mask"))), &mut stand.cx());
    assert!(stand.asked().is_empty());
}
