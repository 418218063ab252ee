//! Whole screens, as text beside the tests. `HAMES_BLESS=1` writes them anew.

use std::path::PathBuf;

use ratatui::style::{Color, Modifier};

use super::*;

/// A letter for the style of each cell: what stands out in which way, not which shade it has.
fn letter(cell: &ratatui::buffer::Cell) -> char {
    let m = cell.modifier;
    let colour = match cell.fg {
        Color::Reset => '.',
        Color::Red => 'r',
        Color::Green => 'g',
        Color::Yellow => 'y',
        Color::Blue => 'b',
        Color::Magenta => 'm',
        Color::Cyan => 'c',
        Color::DarkGray => 'd',
        _ => '#',
    };
    if m.contains(Modifier::REVERSED) {
        'R'
    } else if m.intersects(Modifier::BOLD | Modifier::UNDERLINED) {
        if colour == '.' { 'B' } else { colour.to_ascii_uppercase() }
    } else if m.contains(Modifier::DIM) {
        'd'
    } else {
        colour
    }
}

fn check(name: &str, buf: &Buffer, with_styles: bool) {
    let mut rows = text(buf);
    if with_styles {
        rows.push("-- styles --".into());
        let (width, height) = (buf.area.width, buf.area.height);
        rows.extend((0..height).map(|y| {
            let row: String = (0..width).map(|x| letter(&buf[(x, y)])).collect();
            row.trim_end_matches('.').to_owned()
        }));
    }
    let shown = format!("{}\n", rows.join("\n"));
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/screens").join(format!("talk-{name}.txt"));
    if std::env::var_os("HAMES_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &shown).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(shown, expected, "{name}: look at the difference; HAMES_BLESS=1 takes it over");
}

#[test]
fn the_session_at_each_size() {
    for (width, height) in [(80, 24), (120, 40), (40, 15)] {
        let mut talk = talk_of(&session());
        check(&format!("end-{width}x{height}"), &draw(&mut talk, width, height, theme()), false);
        act(&mut talk, &key(KeyCode::Home, KeyModifiers::CONTROL));
        check(&format!("top-{width}x{height}"), &draw(&mut talk, width, height, theme()), false);
    }
}

#[test]
fn everything_in_few_colours_and_none() {
    for (name, depth, shade) in [("sixteen", Depth::Sixteen, Shade::Dark), ("none", Depth::None, Shade::Dark)] {
        let mut talk = talk_of(&session());
        check(&format!("all-{name}"), &draw(&mut talk, 80, 110, Theme { shade, depth }), true);
    }
}

#[test]
fn light_and_dark_have_the_same_words_in_other_colours() {
    let mut talk = talk_of(&session());
    let dark = draw(&mut talk, 80, 110, theme());
    let light = draw(&mut talk, 80, 110, Theme { shade: Shade::Light, depth: Depth::True });
    assert_eq!(text(&dark), text(&light));
    check("all-dark", &dark, true);
    check("all-light", &light, true);
    let coloured = |buf: &Buffer| buf.content.iter().filter(|cell| cell.fg != Color::Reset).count();
    assert!(coloured(&dark) > 500 && coloured(&light) > 500);
    let differ = dark.content.iter().zip(&light.content).filter(|(a, b)| a.fg != b.fg || a.bg != b.bg);
    assert!(differ.count() > 500);
}

#[test]
fn everything_open() {
    let mut talk = talk_of(&session());
    act(&mut talk, &plain(KeyCode::F(5)));
    check("open", &draw(&mut talk, 80, 170, theme()), false);
}

#[test]
fn in_the_middle_of_a_step() {
    let mut log = Log::default();
    log.run("build", "Go on").step();
    let thought: String = (1..=10).map(|n| format!("thought {n}\n")).collect();
    log.json(json!({"type": "reasoning.delta", "index": 0, "offset": 0, "text": thought}));
    let half = "Here is **a start** and a list\n\n- one\n- tw";
    log.json(json!({"type": "text.delta", "index": 1, "offset": 0, "text": half}));
    log.json(
        json!({"type": "tool.input.delta", "index": 0, "offset": 0, "name": "write", "text": "{\"path\": \"a\", \"co"}),
    );
    log.agent = vec!["explore-1".into()];
    log.step().json(json!({"type": "text.delta", "index": 0, "offset": 0, "text": "A child is looking around"}));
    check("streaming", &draw(&mut talk_of(&log), 60, 24, theme()), false);
}

#[test]
fn running_waiting_and_failing() {
    let mut log = Log::default();
    log.run("build", "Go on").step().call("a", "Shell", "make", json!({"command": "make"}));
    log.call("b", "Write", "x.rs", json!({"path": "x.rs", "content": "1"})).call(
        "c",
        "Read",
        "no",
        json!({"path": "no"}),
    );
    log.step_done().start("a");
    let printed: String = (1..=20).map(|n| format!("[{n}/20] compiling\n")).collect();
    log.json(json!({"type": "tool.output.delta", "call_id": "a", "offset": 0, "text": printed}));
    log.json(json!({"type": "approval.asked", "call_id": "b", "label": {"tool": "Write"}, "input": {}, "digest": "d",
        "reason": "it writes outside of the folder",
        "diff": {"path": "x.rs", "text": "@@ -0,0 +1 @@\n+1\n", "added": 1, "removed": 0}}));
    log.json(json!({"type": "tool.error", "call_id": "c", "name": "read", "class": "refused",
        "error": "Refused: no is outside of the folder", "duration_ms": 0}));
    log.json(json!({"type": "loop.stopped", "kind": "same_call", "detected": "the same call four times", "nudges": 2}));
    log.json(json!({"type": "error", "class": "auth", "message": "The key was refused; check it in the settings.",
        "provider_message": "invalid api key", "request_id": "req-1", "status": 401, "retryable": false}));
    log.json(json!({"type": "done", "result": "stopped", "reason": "loop", "usage": {}, "steps": 1, "calls": 1, "errors": 1}));
    log.json(json!({"type": "turn.done", "duration_ms": 61_000, "usage": {}}));
    log.json(json!({"type": "run.done", "result": "stopped", "exit_code": 3}));
    check("troubles", &draw(&mut talk_of(&log), 76, 40, theme()), false);
}
