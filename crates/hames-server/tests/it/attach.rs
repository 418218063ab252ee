//! Clients that come and go.

use hames_protocol::api::ApiErrorCode;
use hames_protocol::{Delivery, Event};
use hames_server::Subscription;

use crate::support::{Bed, Picture, Reply, settle};

/// Reads until the run's last event.
async fn to_the_end(subscription: &mut Subscription, picture: &mut Picture) {
    loop {
        let batch = subscription.next().await.unwrap().unwrap();
        batch.iter().for_each(|news| picture.take_in(news));
        if batch.iter().any(|news| matches!(news.envelope().event, Event::RunDone(_))) {
            return;
        }
    }
}

fn words(count: usize) -> Reply {
    Reply::pieces((0..count).map(|n| format!("word{n} ")))
}

#[tokio::test]
async fn three_clients_of_one_session_see_the_same_one_of_them_from_the_middle_of_a_step() {
    let bed = Bed::held().await;
    bed.model.will([words(40)]);
    let mut first = bed.hub.attach(&bed.id, Some(0)).await.unwrap();
    let mut second = bed.hub.attach(&bed.id, Some(0)).await.unwrap();
    // Both watch what happens before it does.
    for client in [&mut first, &mut second] {
        client.next().await.unwrap().unwrap();
        tokio::select! {
            biased;
            _ = client.next() => panic!("nothing has happened"),
            () = settle() => {}
        }
    }
    bed.send("go", Delivery::Queue).await;
    bed.model.allow(20);
    bed.model.reached(21).await;
    settle().await;
    let mut third = bed.hub.attach(&bed.id, Some(0)).await.unwrap();
    let (mut a, mut b, mut c) = (Picture::default(), Picture::default(), Picture::default());
    // What it gets first ends in a snapshot of the open step.
    while c.open().is_empty() {
        third.next().await.unwrap().unwrap().iter().for_each(|news| c.take_in(news));
    }
    assert!(c.open().starts_with("word0 word1 "), "{}", c.open());
    bed.model.allow(100);
    tokio::join!(to_the_end(&mut first, &mut a), to_the_end(&mut second, &mut b), to_the_end(&mut third, &mut c));
    let log: Vec<u64> = bed.log().await.iter().filter_map(|e| e.seq).collect();
    assert_eq!((&c.seqs, &a.seqs, &a), (&log, &log[1..].to_vec(), &b));
    assert_eq!((&a.texts, a.open()), (&c.texts, c.open()));
    assert_eq!(a.texts, [a.open().to_owned()], "the pieces are the text");
}

#[tokio::test]
async fn whoever_comes_and_goes_misses_nothing_and_sees_nothing_twice() {
    let bed = Bed::held().await;
    bed.model.will([words(300), words(200)]);
    bed.send("go", Delivery::Queue).await;
    bed.send("and then", Delivery::Queue).await;
    let mut random = 0x2545_f491_4f6c_dd1du64;
    let mut next = move |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let (mut picture, mut after) = (Picture::default(), 0);
    for _ in 0..25 {
        let mut subscription = bed.hub.attach(&bed.id, Some(after)).await.unwrap();
        for _ in 0..next(4) {
            bed.model.allow(usize::try_from(next(12)).unwrap());
            for _ in 0..next(30) {
                tokio::task::yield_now().await;
            }
            tokio::select! {
                biased;
                batch = subscription.next() => batch.unwrap().unwrap().iter().for_each(|news| picture.take_in(news)),
                () = settle() => {}
            }
        }
        after = subscription.cursor();
    }
    bed.model.allow(2_000);
    let mut subscription = bed.hub.attach(&bed.id, Some(after)).await.unwrap();
    let view = bed.quiet().await;
    while subscription.cursor() < view.row.last_seq {
        subscription.next().await.unwrap().unwrap().iter().for_each(|news| picture.take_in(news));
    }
    let log: Vec<u64> = bed.log().await.iter().filter_map(|e| e.seq).collect();
    assert_eq!(picture.seqs, log);
    let said = |count: usize| (0..count).map(|n| format!("word{n} ")).collect::<String>();
    assert_eq!(picture.texts, [said(300), said(200)]);
}

#[tokio::test]
async fn who_does_not_read_is_cut_off_and_told_so_and_the_run_does_not_notice() {
    let bed = Bed::new().await;
    let text = "x".repeat(8_000);
    bed.model.will([Reply::pieces((0..1_000).map(|_| text.clone()))]);
    let mut slow = bed.hub.attach(&bed.id, None).await.unwrap();
    // Joined what happens, then read no more.
    tokio::select! {
        biased;
        _ = slow.next() => panic!("nothing has happened"),
        () = settle() => {}
    }
    bed.send("go", Delivery::Queue).await;
    let view = bed.quiet().await;
    let refusal = slow.next().await.unwrap().unwrap_err();
    assert_eq!(refusal.code, ApiErrorCode::Resync);
    assert!(slow.next().await.is_none());
    // It comes again from where it was, and has everything.
    let (mut again, mut picture) = (bed.hub.attach(&bed.id, Some(slow.cursor())).await.unwrap(), Picture::default());
    while again.cursor() < view.row.last_seq {
        again.next().await.unwrap().unwrap().iter().for_each(|news| picture.take_in(news));
    }
    assert_eq!(picture.texts, [text.repeat(1_000)]);
    let ahead = bed.hub.attach(&bed.id, Some(view.row.last_seq + 1)).await.err().unwrap();
    assert_eq!(ahead.code, ApiErrorCode::Resync);
}
