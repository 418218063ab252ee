//! How full a window is said to be, and what a compaction by hand leaves alone.

use hames_protocol::api::CutSession;
use hames_protocol::{Delivery, Event, Mode};
use serde_json::json;

use crate::support::{Bed, Reply, text_of};

#[tokio::test]
async fn a_window_is_as_full_as_was_counted_or_estimated_also_after_a_cut() {
    let bed = Bed::new().await;
    bed.model.will([
        Reply::text("one").counting(700),
        Reply::text("two").counting(900),
        Reply::text("three").counting(0),
    ]);
    let mut firsts = Vec::new();
    for (text, used) in [("first", Some(710)), ("second", Some(910)), ("third", None)] {
        bed.send(text, Delivery::Queue).await;
        let view = bed.quiet().await;
        match used {
            Some(used) => assert_eq!(view.window.used, used, "{text}"),
            // A provider that counts nothing leaves what was estimated: the tools alone are more than that.
            None => assert!((500..20_000).contains(&view.window.used) && view.window.used != 910, "{:?}", view.window),
        }
        let said = |envelope: &hames_protocol::Envelope| match &envelope.event {
            Event::MessageUser(message) => (text_of(&message.parts) == text).then_some(envelope.seq).flatten(),
            _ => None,
        };
        firsts.push(bed.log().await.iter().find_map(said).unwrap());
    }
    for (from_seq, used) in [(firsts[2], 910), (firsts[1], 710), (firsts[0], 0)] {
        bed.hub.cut(&bed.id, CutSession { from_seq }).await.unwrap();
        assert_eq!(bed.hub.view(&bed.id).await.unwrap().window.used, used);
    }
}

#[tokio::test]
async fn a_message_that_waits_for_a_compaction_comes_once_and_mode_and_todos_are_as_they_were() {
    let mut bed = Bed::held().await;
    bed.id = bed.session(Some(Mode::Analyze)).await;
    let todos = json!({"todos": [
        {"content": "read the parser", "status": "pending"},
        {"content": "write the test", "status": "in_progress"},
        {"content": "tell the user", "status": "pending"},
    ]});
    bed.model.will([Reply::call("TodoWrite", &todos), Reply::text("Planned.")]);
    bed.model.allow(4);
    bed.send("plan it", Delivery::Queue).await;
    bed.quiet().await;
    for n in 0..12 {
        bed.model.allow(2);
        bed.send(&format!("{n}: {}", "many words of no weight ".repeat(800)), Delivery::Queue).await;
        bed.quiet().await;
    }
    let before = bed.hub.view(&bed.id).await.unwrap();
    assert_eq!(before.todos.len(), 3);

    let write = json!({"path": "new.txt", "content": "x"});
    bed.model.will([Reply::text("- the work goes on"), Reply::call("Write", &write), Reply::text("Written.")]);
    let hub = bed.hub.clone();
    let id = bed.id.clone();
    let compacting = tokio::spawn(async move { hub.compact(&id).await });
    // Twelve turns of two pieces, one of four, and the document's first.
    bed.model.reached(29).await;
    bed.send("later", Delivery::Queue).await;
    assert_eq!(bed.hub.view(&bed.id).await.unwrap().pending.len(), 1);
    bed.model.allow(20);
    assert!(compacting.await.unwrap().unwrap().compacted);
    let after = bed.quiet().await;

    assert_eq!((after.todos, after.effective.mode), (before.todos, Some(Mode::Analyze)));
    assert!(after.pending.is_empty());
    assert!(!bed.folder.path().join("new.txt").exists() && after.proposals.len() == 1, "{:?}", after.proposals);
    let types = bed.types().await;
    let checkpoint = types.iter().position(|kind| kind == "window.checkpoint").unwrap();
    let said = bed.log().await.into_iter().filter(|envelope| match &envelope.event {
        Event::MessageUser(message) => text_of(&message.parts) == "later",
        _ => false,
    });
    assert_eq!(said.count(), 1);
    let last_message = types.iter().rposition(|kind| kind == "message.user").unwrap();
    assert!(last_message > checkpoint, "behind the compaction: {types:?}");
    let heard = bed.model.heard();
    let request = &heard[heard.len() - 2];
    assert_eq!(request.iter().filter(|text| text.contains("later")).count(), 1, "{request:?}");
    for todo in ["read the parser", "write the test", "tell the user"] {
        assert!(request[0].contains(todo), "{}", request[0]);
    }
}
