//! Anything that can be done, in any order, at any size.

use hames_protocol::Delivery;
use proptest::prelude::*;

use super::kit::*;
use crate::Input;

#[derive(Clone, Debug)]
enum Did {
    Key(&'static str),
    Type(char),
    Paste(String),
    Resize(u16, u16),
    Click(u16, u16),
}

const KEYS: &[&str] = &[
    "enter",
    "alt+enter",
    "ctrl+s",
    "shift+enter",
    "esc",
    "tab",
    "back",
    "delete",
    "left",
    "right",
    "up",
    "down",
    "home",
    "end",
    "shift+left",
    "shift+right",
    "shift+up",
    "shift+end",
    "ctrl+left",
    "ctrl+right",
    "ctrl+w",
    "ctrl+u",
    "ctrl+k",
    "ctrl+y",
    "alt+y",
    "alt+d",
    "alt+u",
    "ctrl+shift+z",
    "ctrl+a",
    "alt+r",
    "alt+o",
    "alt+s",
    "ctrl+q",
    "ctrl+v",
    "ctrl+d",
    "ctrl+c",
    "alt+up",
    "alt+down",
];

fn did() -> impl Strategy<Value = Did> {
    let odd = "[a-z/@ \\n\\t漢🙂\u{301}\u{200d}👩🇩\"\u{1b}\r]{0,20}";
    prop_oneof![
        6 => proptest::sample::select(KEYS).prop_map(Did::Key),
        5 => proptest::sample::select(vec!['a', '/', '@', 'm', 'o', ' ', '漢', '\u{301}', '🙂', '\u{200d}', 's', 'q', 'p']).prop_map(Did::Type),
        2 => odd.prop_map(Did::Paste),
        1 => Just(Did::Paste("/tmp/a.png".into())),
        1 => Just(Did::Paste("x\n".repeat(30))),
        2 => (0u16..90, 0u16..30).prop_map(|(w, h)| Did::Resize(w, h)),
        1 => (0u16..90, 0u16..30).prop_map(|(x, y)| Did::Click(x, y)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_that_is_done_at_any_size_panics_or_submits_by_itself(all in proptest::collection::vec(did(), 0..25), busy in any::<bool>()) {
        let mut desk = Desk::new();
        desk.view().pending = vec![pending("p1", Delivery::Queue, "one\ntwo"), pending("p2", Delivery::Steer, &"漢".repeat(90))];
        desk.view().run = busy.then(|| run(Default::default(), &["Shell make"]));
        let mut size = (80, 24);
        for one in &all {
            let before = desk.sent.len();
            let mut may_send = false;
            match one {
                Did::Key(name) => {
                    may_send = matches!(*name, "enter" | "alt+enter" | "ctrl+s");
                    desk.press(name);
                }
                Did::Type(c) => {
                    desk.write(&c.to_string());
                }
                Did::Paste(text) => { desk.paste(text); }
                Did::Resize(width, height) => size = (*width, *height),
                Did::Click(column, row) => {
                    let kind = ratatui::crossterm::event::MouseEventKind::Down(ratatui::crossterm::event::MouseButton::Left);
                    let modifiers = ratatui::crossterm::event::KeyModifiers::NONE;
                    desk.input(Input::Mouse(ratatui::crossterm::event::MouseEvent { kind, column: *column, row: *row, modifiers }));
                }
            }
            desk.screen(size.0, size.1, false);
            prop_assert!(desk.sent.len() <= before + usize::from(may_send), "{:?}", one);
            let text = desk.prompt.now.draft.text();
            prop_assert_eq!(crate::prompt::text::floor(text, desk.prompt.now.draft.cursor()), desk.prompt.now.draft.cursor());
        }
    }
}
