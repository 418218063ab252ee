//! Random interleavings of everything a person can do to what waits, against a run that goes on a piece at a time.
//!
//! Whatever the order: each message that was acknowledged is delivered once, or withdrawn, or still waits; it says what
//! it last was changed to; and at no moment does a message that nobody moved change places with another such one, nor is
//! it delivered before one that stands before it. Runs fail and the server restarts in between.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hames_protocol::api::*;
use hames_protocol::{Delivery, Envelope, Event, Part, PendingId, SessionState};

use crate::support::{Bed, Picture, Reply, edit, settle, text_of, wait};

/// Numbers that look random and are the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 8) % bound
    }
}

/// What is known of a message that was taken in.
#[derive(Debug)]
struct Known {
    text: String,
    /// Nobody changed its delivery or place.
    untouched: bool,
    /// It was sent where nothing went on: then it goes ahead of a queue that stands still.
    begins: bool,
    gone: bool,
}

fn cases() -> u64 {
    std::env::var("HAMES_PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(24)
}

#[tokio::test]
async fn no_message_is_lost_or_sent_twice_whatever_happens_around_it() {
    for seed in 1..=cases() {
        case(seed).await;
    }
}

async fn case(seed: u64) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut bed = Bed::held().await;
    let fails = random.below(4);
    let script = (0..40).map(|n| match n % 5 {
        0 => Reply::pieces(["a ".into(), "b".into()]),
        1 => wait(),
        n if n <= fails => Reply::failed(),
        _ => Reply::text("c"),
    });
    bed.model.will(script);
    let mut known: BTreeMap<PendingId, Known> = BTreeMap::new();
    let (mut picture, mut client) = (Picture::default(), None);
    for step in 0..80 {
        let some = |random: &mut Random, known: &BTreeMap<PendingId, Known>| {
            let at = random.below(known.len().max(1) as u64);
            known.keys().nth(usize::try_from(at).unwrap()).cloned()
        };
        match random.below(13) {
            0..=3 => {
                let delivery = [Delivery::Queue, Delivery::Steer, Delivery::Interrupt][random.below(3) as usize];
                let text = format!("m{step}");
                let sent = bed.send(&text, delivery).await;
                let (untouched, begins) = (true, sent.starts_run);
                known.insert(sent.pending_id, Known { text, untouched, begins, gone: false });
            }
            4 => {
                let Some(id) = some(&mut random, &known) else { continue };
                let text = format!("e{step}");
                let words = EditPending { parts: Some(vec![Part::text(text.clone())]), ..edit() };
                if bed.hub.edit_pending(&bed.id, &id, words).await.is_ok() {
                    known.get_mut(&id).unwrap().text = text;
                }
            }
            5 => {
                let Some(id) = some(&mut random, &known) else { continue };
                let delivery = Some([Delivery::Queue, Delivery::Steer][random.below(2) as usize]);
                if bed.hub.edit_pending(&bed.id, &id, EditPending { delivery, ..edit() }).await.is_ok() {
                    known.get_mut(&id).unwrap().untouched = false;
                }
            }
            6 => {
                let Some(id) = some(&mut random, &known) else { continue };
                let before = some(&mut random, &known).filter(|_| random.below(2) == 0);
                let to = EditPending { last: before.is_none(), before, ..edit() };
                if bed.hub.edit_pending(&bed.id, &id, to).await.is_ok() {
                    known.get_mut(&id).unwrap().untouched = false;
                }
            }
            7 => {
                let Some(id) = some(&mut random, &known) else { continue };
                if bed.hub.cancel_pending(&bed.id, &id).await.is_ok() {
                    known.get_mut(&id).unwrap().gone = true;
                }
            }
            8 => {
                let paused = random.below(2) == 0;
                bed.hub.pause(&bed.id, PausePending { paused }).await.unwrap();
            }
            9 if random.below(4) == 0 => {
                let aborted = bed.hub.abort(&bed.id, Abort::default()).await.unwrap();
                for back in aborted.returned {
                    known.get_mut(&back.id).unwrap().gone = true;
                }
            }
            11 if random.below(3) == 0 => {
                client = None;
                bed.restart().await;
            }
            10 if client.is_none() => {
                client = Some(bed.hub.attach(&bed.id, Some(picture.seqs.last().copied().unwrap_or(0))).await.unwrap());
            }
            10 => client = None,
            _ => {
                bed.model.allow(random.below(5) as usize);
                bed.model.allow_tools(random.below(2) as usize);
            }
        }
        for _ in 0..random.below(20) {
            tokio::task::yield_now().await;
        }
        if let Some(client) = &mut client {
            tokio::select! {
                biased;
                batch = client.next() => batch.unwrap().unwrap().iter().for_each(|news| picture.take_in(news)),
                () = settle() => {}
            }
        }
    }
    bed.model.allow(100_000);
    bed.model.allow_tools(1_000);
    let mut view = bed.quiet().await;
    for _ in 0..known.len() + 40 {
        if view.pending.is_empty() {
            break;
        }
        // Each run that fails lets the queue stand still again.
        bed.hub.pause(&bed.id, PausePending { paused: false }).await.unwrap();
        view = bed.quiet().await;
    }
    assert_eq!(view.pending, [], "seed {seed}");

    let log = bed.log().await;
    let mut delivered: HashMap<PendingId, String> = HashMap::new();
    for envelope in &log {
        if let Event::MessageUser(message) = &envelope.event {
            let id = message.pending_id.clone().unwrap();
            assert_eq!(delivered.insert(id.clone(), text_of(&message.parts)), None, "seed {seed}: {id} was sent twice");
        }
    }
    for (id, message) in &known {
        let expected = (!message.gone).then(|| message.text.clone());
        assert_eq!(delivered.get(id).cloned(), expected, "seed {seed}: {message:?}");
    }
    order_is_kept(&log, &known, seed);
    let mut client = bed.hub.attach(&bed.id, Some(picture.seqs.last().copied().unwrap_or(0))).await.unwrap();
    while client.cursor() < view.row.last_seq {
        client.next().await.unwrap().unwrap().iter().for_each(|news| picture.take_in(news));
    }
    let seqs: Vec<u64> = log.iter().filter_map(|e| e.seq).collect();
    assert_eq!(picture.seqs, seqs, "seed {seed}");
}

/// Messages nobody moved, as they stand in what waits: those for a run, and the queue.
fn standing(state: &SessionState, known: &BTreeMap<PendingId, Known>) -> [Vec<PendingId>; 2] {
    let of = |queued: bool| {
        let those = state.pending.iter().filter(|pending| (pending.delivery == Delivery::Queue) == queued);
        those.map(|pending| pending.id.clone()).filter(|id| known[id].untouched).collect()
    };
    [of(false), of(true)]
}

fn order_is_kept(log: &[Envelope], known: &BTreeMap<PendingId, Known>, seed: u64) {
    let mut state = SessionState::default();
    let mut before: Vec<PendingId> = Vec::new();
    for (at, envelope) in log.iter().enumerate() {
        let [for_runs, queue] = standing(&state, known);
        if let Event::MessageUser(message) = &envelope.event {
            let id = message.pending_id.as_ref().unwrap();
            let is_first = [&for_runs, &queue].iter().any(|class| class.first() == Some(id));
            let message = &known[id];
            assert!(is_first || !message.untouched || message.begins, "seed {seed}, {id} in {for_runs:?} {queue:?}");
        }
        state.apply(envelope);
        // What is moved together is judged when all of it stands.
        if matches!(log.get(at + 1).map(|next| &next.event), Some(Event::PendingEdited(_))) {
            continue;
        }
        let after: Vec<PendingId> = standing(&state, known).concat();
        let (were, are): (BTreeSet<_>, BTreeSet<_>) = (before.iter().collect(), after.iter().collect());
        let stayed: Vec<_> = before.iter().filter(|id| are.contains(id)).collect();
        assert_eq!(after.iter().filter(|id| were.contains(id)).collect::<Vec<_>>(), stayed, "seed {seed}, event {at}");
        before = after;
    }
}
