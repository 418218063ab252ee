//! Screens of the prompt, in several sizes and looks.

use hames_protocol::{Delivery, Mode, Part};

use super::kit::*;

const SIZES: [(u16, u16); 5] = [(80, 24), (120, 40), (40, 15), (1, 1), (0, 0)];

fn scenes() -> Vec<(&'static str, Desk)> {
    let mut empty = Desk::new();
    empty.press("end");
    let mut text = Desk::new();
    text.write("Rename the parser's type `Nöde` to 節点 everywhere, and tell me 👩‍👩‍👧 what else it touches.");
    text.press("shift+enter").write("Keep the tests.").press("shift+left shift+left shift+left");
    let mut paste = Desk::new();
    paste.view().effective.mode = Some(Mode::Build);
    paste.write("why does this fail? ").paste(&"at frame\n".repeat(1_204)).write(" see also \u{202e}this");
    let mut commands = Desk::new();
    commands.write("/co").press("down");
    let mut files = Desk::new();
    files.write("look at @pa");
    let asked = files.requests();
    files.files(asked[0].0, &["src/parser.rs", "src/parser/lines.rs", "tests/my patches/one.diff"]);
    let mut busy = Desk::new();
    busy.view().run = Some(run(Mode::Analyze, &["Shell npm test"]));
    busy.view().pending = vec![
        pending("s", Delivery::Steer, "stop using npm, use pnpm; the lock file is pnpm-lock.yaml and nothing else"),
        pending("q", Delivery::Queue, "then lint\nand format"),
        pending("r", Delivery::Queue, "release"),
    ];
    busy.view().pending[2].parts.push(Part::text("Attached file notes.md:\n```\nx\n```"));
    busy.write("wait");
    let mut section = Desk::new();
    section.view().pending = busy.view().pending.clone();
    section.view().paused = true;
    section.press("ctrl+q down right");
    let mut along = Desk::new();
    along.paste("/tmp/a.png /tmp/b.txt").press("tab").write("compare these");
    let failed = along.effects.iter().find_map(|effect| match effect {
        crate::Effect::ReadFile(ticket, path) if path.ends_with("b.txt") => Some(*ticket),
        _ => None,
    });
    along.answer(failed.unwrap(), refused(hames_protocol::api::ApiErrorCode::NotFound, "there is no such file"));
    vec![
        ("prompt-empty", empty),
        ("prompt-text", text),
        ("prompt-paste", paste),
        ("prompt-commands", commands),
        ("prompt-files", files),
        ("prompt-busy", busy),
        ("prompt-waiting", section),
        ("prompt-attachments", along),
    ]
}

#[test]
fn screens_are_as_they_were_looked_at() {
    for (name, mut desk) in scenes() {
        let mut out = String::new();
        for (look, theme) in THEMES {
            desk.theme = theme;
            for (width, height) in SIZES {
                // The tiny ones have no room for looks.
                let styles = width >= 40;
                if !styles && look != "dark" {
                    continue;
                }
                out.push_str(&format!("{look}, {}\n", desk.screen(width, height, styles)));
            }
        }
        compare(name, &out);
    }
}
