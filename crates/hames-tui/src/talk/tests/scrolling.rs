//! Where the reader is stays where it is, and a frame costs what it shows.

use ratatui::crossterm::event::{MouseEvent, MouseEventKind};
use ratatui::style::Color;

use super::*;

fn long(turns: usize) -> Log {
    let mut log = Log::default();
    for turn in 0..turns {
        log.run("build", &format!("Question {turn}")).step();
        log.says("text", 0, &format!("Answer {turn} with a few words, `code` and a second sentence.\n\n- a\n- b"), 0);
        log.step_done().ends();
    }
    log
}

fn wheel(up: bool) -> Input {
    let kind = if up { MouseEventKind::ScrollUp } else { MouseEventKind::ScrollDown };
    Input::Mouse(MouseEvent { kind, column: 1, row: 1, modifiers: KeyModifiers::NONE })
}

#[test]
fn thirty_thousand_messages_cost_what_is_shown() {
    let log = long(15_000);
    let mut talk = talk_of(&log);
    let first = text(&draw(&mut talk, 80, 24, theme())).join("\n");
    assert!(first.contains("Answer 14999"), "{first}");
    assert!(talk.stage.work.0 <= 24, "{} pieces for 24 rows", talk.stage.work.0);
    // A frame in which nothing changed lays out nothing.
    let before = talk.stage.work;
    draw(&mut talk, 80, 24, theme());
    assert_eq!(talk.stage.work, before);
    for _ in 0..10 {
        act(&mut talk, &plain(KeyCode::PageUp));
        let before = talk.stage.work.0;
        draw(&mut talk, 80, 24, theme());
        assert!(talk.stage.work.0 - before <= 48);
    }
    act(&mut talk, &key(KeyCode::Home, KeyModifiers::CONTROL));
    assert!(text(&draw(&mut talk, 80, 24, theme()))[0].contains("Question 0"));
    assert!(talk.stage.work.0 < 400);
}

#[test]
fn an_output_of_ten_megabytes_and_a_line_of_one_cost_what_is_shown() {
    let mut log = Log::default();
    log.run("build", "go").step().call("c", "Shell", "yes", json!({"command": "yes"})).step_done().start("c");
    let output = "a line of output that is neither long nor short\n".repeat(210_000);
    log.gives("c", &output, json!([])).call("d", "Shell", "one line", json!({"command": "tr"}));
    log.gives("d", &"x".repeat(1_000_000), json!([])).says("text", 0, &"word ".repeat(200_000), 0);
    let mut talk = talk_of(&log);
    for _ in 0..2 {
        draw(&mut talk, 80, 24, theme());
        act(&mut talk, &key(KeyCode::Home, KeyModifiers::CONTROL));
        draw(&mut talk, 80, 24, theme());
        for _ in 0..5 {
            act(&mut talk, &plain(KeyCode::PageDown));
            draw(&mut talk, 80, 24, theme());
        }
        act(&mut talk, &key(KeyCode::End, KeyModifiers::CONTROL));
        let shown = text(&draw(&mut talk, 80, 24, theme())).join("\n");
        assert!(shown.contains("word"));
        assert!(talk.stage.work.1 < 400_000, "{} bytes laid out", talk.stage.work.1);
        // Once more with everything open.
        act(&mut talk, &plain(KeyCode::F(5)));
    }
}

#[test]
fn streaming_lays_out_only_the_last_piece() {
    let mut log = Log::default();
    log.run("build", "go").step();
    let mut talk = talk_of(&log);
    let mut offset = 0;
    let mut said = |talk: &mut Talk, text: &str| {
        let mut log = Log { turn: 1, step: 1, ..Log::default() };
        log.json(json!({"type": "text.delta", "index": 0, "offset": offset, "text": text}));
        offset += text.len();
        talk.apply(&log.all);
        draw(talk, 80, 24, theme());
    };
    for paragraph in 0..200 {
        said(&mut talk, &format!("Paragraph {paragraph} of a long answer.\n\n"));
    }
    let before = talk.stage.work;
    for _ in 0..100 {
        said(&mut talk, "word ");
    }
    let (pieces, bytes) = (talk.stage.work.0 - before.0, talk.stage.work.1 - before.1);
    assert!(pieces <= 210, "{pieces} pieces for 100 words");
    assert!(bytes < 60_000, "{bytes} bytes for 100 words");
    assert!(text(&draw(&mut talk, 80, 24, theme())).join("\n").contains("word word"));
}

#[test]
fn the_reader_stays_while_more_comes_and_the_end_is_followed() {
    let log = long(50);
    let mut talk = talk_of(&log);
    draw(&mut talk, 80, 24, theme());
    assert!(talk.is_following());
    act(&mut talk, &wheel(true));
    act(&mut talk, &wheel(true));
    let before = text(&draw(&mut talk, 80, 24, theme()));
    assert!(!talk.is_following());
    let mut more = Log { seq: log.seq, turn: log.turn, ..Log::default() };
    more.run("build", "One more").step().says("text", 0, "streamed answer", 3).step_done().ends();
    for envelope in &more.all {
        talk.apply(std::slice::from_ref(envelope));
        assert_eq!(text(&draw(&mut talk, 80, 24, theme())), before);
    }
    act(&mut talk, &key(KeyCode::End, KeyModifiers::CONTROL));
    assert!(text(&draw(&mut talk, 80, 24, theme())).join("\n").contains("streamed answer"));
    assert!(talk.is_following());
    // All the way down by the wheel is following too.
    act(&mut talk, &wheel(true));
    assert!(!talk.is_following());
    act(&mut talk, &wheel(false));
    assert!(talk.is_following());
}

#[test]
fn the_anchor_and_the_screen_survive_twenty_resizes() {
    let mut log = session();
    let mut talk = talk_of(&log);
    draw(&mut talk, 120, 40, theme());
    act(&mut talk, &key(KeyCode::Home, KeyModifiers::CONTROL));
    act(&mut talk, &wheel(false));
    act(&mut talk, &wheel(false));
    let before = text(&draw(&mut talk, 120, 12, theme()));
    log.run("build", "And now?").step();
    for round in 0..20 {
        log.json(json!({"type": "text.delta", "index": 0, "offset": round * 6, "text": "words "}));
        talk.apply(&log.all);
        for (width, height) in [(40, 12), (120, 5), (1, 1), (0, 0), (3, 40), (120, 12)] {
            draw(&mut talk, width, height, theme());
        }
    }
    let after = text(&draw(&mut talk, 120, 12, theme()));
    assert_eq!(after[0], before[0]);
    // And it is what a fresh conversation shows at that place.
    assert_eq!(after, before);
}

#[test]
fn older_pages_come_in_front_without_moving_what_is_read() {
    let log = long(200);
    let durable: Vec<Envelope> = log.all.clone();
    let half = durable.len() / 2;
    let mut talk = Talk::default();
    talk.prepend(&page(&durable[half..], true));
    draw(&mut talk, 80, 24, theme());
    assert!(!talk.wants_older(), "far from the beginning");
    act(&mut talk, &key(KeyCode::Home, KeyModifiers::CONTROL));
    let before = text(&draw(&mut talk, 80, 24, theme()));
    assert!(talk.wants_older());
    assert_eq!(talk.oldest_seq(), durable[half].seq);
    talk.prepend(&page(&durable[..half], false));
    let after = text(&draw(&mut talk, 80, 24, theme()));
    assert_eq!(after[after.len() - 20..], before[before.len() - 20..]);
    assert!(!talk.wants_older());
    assert_eq!(talk.newest_seq(), log.seq);
}

#[test]
fn folds_are_kept_through_resize_scroll_and_reattach() {
    let log = session();
    let mut talk = talk_of(&log);
    act(&mut talk, &plain(KeyCode::F(5)));
    let open = text(&draw(&mut talk, 80, 200, theme())).join("\n");
    assert!(open.contains("line 15 of the file") && open.contains("Input") && open.contains("Then at its callers."));
    act(&mut talk, &plain(KeyCode::F(5)));
    let folded = text(&draw(&mut talk, 80, 200, theme())).join("\n");
    assert!(!folded.contains("line 15 of the file") && folded.contains("… 22 lines more"), "{folded}");
    // The card is opened by a click on its first row.
    let row = text(&draw(&mut talk, 80, 200, theme())).iter().position(|row| row.contains("Read src/lib.rs")).unwrap();
    for kind in [MouseEventKind::Down, MouseEventKind::Up] {
        let kind = kind(ratatui::crossterm::event::MouseButton::Left);
        let mouse = MouseEvent { kind, column: 3, row: row as u16, modifiers: KeyModifiers::NONE };
        act(&mut talk, &Input::Mouse(mouse));
    }
    draw(&mut talk, 40, 15, theme());
    // Read anew, in pages: what was said before comes in front of the end.
    talk.forget();
    talk.prepend(&page(&log.all[40..], true));
    draw(&mut talk, 80, 24, theme());
    talk.prepend(&page(&log.all[..40], false));
    let again = text(&draw(&mut talk, 80, 200, theme())).join("\n");
    assert!(again.contains("line 15 of the file"), "{again}");
    // In another terminal, by what the first one has kept.
    let mut other = Talk::default();
    other.recall_folds(&serde_json::from_value(serde_json::to_value(talk.saved_folds()).unwrap()).unwrap());
    other.prepend(&page(&log.all, false));
    assert_eq!(text(&draw(&mut other, 80, 200, theme())).join("\n"), again);
    // What somebody did there meanwhile counts more.
    let mut third = talk_of(&log);
    act(&mut third, &plain(KeyCode::F(5)));
    third.recall_folds(&talk.saved_folds());
    assert!(text(&draw(&mut third, 80, 200, theme())).join("\n").contains("Then at its callers."));
}

#[test]
fn the_reader_stays_where_they_are_when_all_is_read_anew() {
    let log = long(400);
    let mut talk = talk_of(&log);
    draw(&mut talk, 80, 24, theme());
    for _ in 0..60 {
        act(&mut talk, &plain(KeyCode::PageUp));
        draw(&mut talk, 80, 24, theme());
    }
    let before = text(&draw(&mut talk, 80, 24, theme()));
    talk.forget();
    let mut end = log.all.len();
    let mut pages = 0;
    while end > 0 && (pages == 0 || talk.wants_older()) {
        let from = end.saturating_sub(500);
        talk.prepend(&page(&log.all[from..end], from > 0));
        drawn(&mut talk, 80, 24, theme());
        (end, pages) = (from, pages + 1);
    }
    assert_eq!(text(&draw(&mut talk, 80, 24, theme())), before);
    assert!(pages > 1 && end > 0, "as far back as it has to, and no further: {pages} pages");
}

#[test]
fn code_is_plain_until_its_colours_come_and_no_frame_waits_for_them() {
    let mut log = Log::default();
    let code: String = (0..3_000).map(|n| format!("let value_{n} = compute({n}); // note\n")).collect();
    log.run("build", "go").step().says("text", 0, &format!("```rust\n{code}```"), 0);
    let mut talk = talk_of(&log);
    act(&mut talk, &key(KeyCode::Home, KeyModifiers::CONTROL));
    let coloured = |buf: &Buffer| buf.content.iter().filter(|c| c.symbol() == "l" && c.fg != Color::Reset).count();
    assert_eq!(coloured(&drawn(&mut talk, 80, 24, theme())), 0);
    let asked = talk.stage.fences.asked;
    assert!(asked > 0 && asked < 200, "{asked} lines for 24 rows");
    assert!(talk.wake_at(0).is_some());
    talk.stage.fences.wait();
    assert!(coloured(&drawn(&mut talk, 80, 24, theme())) > 15);
    // What has its colours keeps them, and nothing is left to wait for.
    let work = talk.stage.work;
    drawn(&mut talk, 80, 24, theme());
    assert_eq!((talk.stage.fences.asked, talk.stage.work), (asked, work));
    assert_eq!(talk.wake_at(0), None);
    // Further down than colours go, code is plain.
    act(&mut talk, &key(KeyCode::End, KeyModifiers::CONTROL));
    assert_eq!(coloured(&draw(&mut talk, 80, 24, theme())), 0);
    assert!(talk.stage.fences.asked <= 2_000);
}
