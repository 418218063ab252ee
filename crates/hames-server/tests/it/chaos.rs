//! Random interleavings of everything a person can do to what waits, against a run that goes on a piece at a time.
//!
//! Whatever the order: each message that was acknowledged is delivered once, or withdrawn, or still waits; it says what
//! it last was changed to; messages nobody moved keep their order.

use std::collections::{BTreeMap, HashMap};

use hames_protocol::api::*;
use hames_protocol::{Delivery, Event, Part, PendingId};

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
    delivery: Delivery,
    /// Nobody changed its delivery or place.
    untouched: bool,
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
    let bed = Bed::held().await;
    let script = (0..30).map(|n| match n % 3 {
        0 => Reply::pieces(["a ".into(), "b".into()]),
        1 => wait(),
        _ => Reply::text("c"),
    });
    bed.model.will(script);
    let mut known: BTreeMap<PendingId, Known> = BTreeMap::new();
    let (mut picture, mut client) = (Picture::default(), None);
    for step in 0..60 {
        let some = |random: &mut Random, known: &BTreeMap<PendingId, Known>| {
            let at = random.below(known.len().max(1) as u64);
            known.keys().nth(usize::try_from(at).unwrap()).cloned()
        };
        match random.below(12) {
            0..=3 => {
                let delivery = [Delivery::Queue, Delivery::Steer, Delivery::Interrupt][random.below(3) as usize];
                let text = format!("m{step}");
                let sent = bed.send(&text, delivery).await;
                known.insert(sent.pending_id, Known { text, delivery, untouched: true, gone: false });
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
                if bed.hub.edit_pending(&bed.id, &id, EditPending { last: true, ..edit() }).await.is_ok() {
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
                let aborted = bed.hub.abort(&bed.id, Abort { scope: AbortScope::Foreground }).await.unwrap();
                for back in aborted.returned {
                    known.get_mut(&back.id).unwrap().gone = true;
                }
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
    bed.hub.pause(&bed.id, PausePending { paused: false }).await.unwrap();
    let view = bed.quiet().await;
    assert_eq!((view.pending.len(), view.paused), (0, false), "seed {seed}");

    let log = bed.log().await;
    let mut delivered: HashMap<PendingId, String> = HashMap::new();
    let mut order: Vec<PendingId> = Vec::new();
    for envelope in &log {
        if let Event::MessageUser(message) = &envelope.event {
            let id = message.pending_id.clone().unwrap();
            assert_eq!(delivered.insert(id.clone(), text_of(&message.parts)), None, "seed {seed}: {id} was sent twice");
            order.push(id);
        }
    }
    for (id, message) in &known {
        let expected = (!message.gone).then(|| message.text.clone());
        assert_eq!(delivered.get(id).cloned(), expected, "seed {seed}: {message:?}");
    }
    for class in [&[Delivery::Queue][..], &[Delivery::Steer, Delivery::Interrupt]] {
        let of_class = |id: &&PendingId| known[*id].untouched && class.contains(&known[*id].delivery);
        let sent: Vec<&PendingId> = known.keys().filter(of_class).filter(|id| !known[*id].gone).collect();
        let heard: Vec<&PendingId> = order.iter().filter(of_class).collect();
        // But one that begins a run where nothing goes on goes ahead of a queue that is paused.
        if class.len() > 1 {
            assert_eq!(heard, sent, "seed {seed}");
        }
    }
    let mut client = bed.hub.attach(&bed.id, Some(picture.seqs.last().copied().unwrap_or(0))).await.unwrap();
    while client.cursor() < view.row.last_seq {
        client.next().await.unwrap().unwrap().iter().for_each(|news| picture.take_in(news));
    }
    let seqs: Vec<u64> = log.iter().filter_map(|e| e.seq).collect();
    assert_eq!(picture.seqs, seqs, "seed {seed}");
}
