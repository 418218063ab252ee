use proptest::prelude::*;
use ratatui::crossterm::event::{MouseButton, MouseEventKind};

use super::*;

fn all(pieces: &[&[u8]]) -> Vec<Token> {
    let (mut decoder, mut tokens) = (Decoder::default(), Vec::new());
    for piece in pieces {
        decoder.feed(piece, &mut tokens);
    }
    decoder.settle(&mut tokens);
    tokens
}

/// Keys as they are written in the table below.
fn said(tokens: &[Token]) -> String {
    let one = |token: &Token| match token {
        Token::Key(event) => match crate::Chord::of(event) {
            Some(chord) => chord.to_string(),
            None => "?".into(),
        },
        Token::Paste(text) => format!("paste {text:?}"),
        Token::Focus(on) => format!("focus {on}"),
        Token::Ground([r, g, b]) => format!("ground {r:.2} {g:.2} {b:.2}"),
        Token::Attributes => "attributes".into(),
        Token::Keyboard => "keyboard".into(),
        Token::Mouse(mouse) => format!("{:?} {},{}", mouse.kind, mouse.column, mouse.row),
    };
    tokens.iter().map(one).collect::<Vec<_>>().join(" | ")
}

#[test]
fn what_terminals_send_is_the_key_that_was_pressed() {
    for (bytes, expected) in [
        ("a", "A"),
        ("é안🙂", "É | 안 | 🙂"),
        ("\r", "Enter"),
        ("\n", "Ctrl+J"),
        ("\t", "Tab"),
        ("\x7f", "Backspace"),
        ("\x13", "Ctrl+S"),
        ("\x1a", "Ctrl+Z"),
        ("\x1f", "Ctrl+_"),
        ("\x1b", "Esc"),
        ("\x1b\x1b", "Esc | Esc"),
        ("\x1ba", "Alt+A"),
        ("\x1b\r", "Alt+Enter"),
        ("\x1b[A", "Up"),
        ("\x1bOB", "Down"),
        ("\x1b[1;5C", "Ctrl+Right"),
        ("\x1b[5~", "PageUp"),
        ("\x1b[3;5~", "Ctrl+Delete"),
        ("\x1b[Z", "Shift+Tab"),
        ("\x1bOP", "F1"),
        ("\x1b[15~", "F5"),
        ("\x1b[24~", "F12"),
        ("\x1b[[A", "F1"),
        ("\x1b[13;5u", "Ctrl+Enter"),
        ("\x1b[13;2u", "Shift+Enter"),
        ("\x1b[27;5;13~", "Ctrl+Enter"),
        ("\x1b[99;5u", "Ctrl+C"),
        ("\x1b[99;5:3u", ""),
        ("\x1b[27u", "Esc"),
        ("\x1b[57441;2u", ""),
        ("\x1b[I\x1b[O", "focus true | focus false"),
        ("\x1b[?1u\x1b[?62;22c", "keyboard | attributes"),
        ("\x1b]11;rgb:ffff/8080/0000\x07", "ground 1.00 0.50 0.00"),
        ("\x1b]11;rgb:1e/1e/1e\x1b\\x", "ground 0.12 0.12 0.12 | X"),
        ("\x1b]", "Alt+]"),
        ("\x1b]\x00\x07", "Alt+] | Ctrl+Space | Ctrl+G"),
        ("\x1b[99", ""),
        ("\u{1b}[12;\u{1b}[A", "Up"),
        ("\x1b[200~a\nb\x1b[31m\x1b[201~\r", "paste \"a\\nb\\u{1b}[31m\" | Enter"),
    ] {
        let tokens = all(&[bytes.as_bytes()]);
        // The names of letters are shown large, whatever was typed.
        assert_eq!(said(&tokens).to_uppercase(), expected.to_uppercase(), "{bytes:?}");
        let single: Vec<&[u8]> = bytes.as_bytes().chunks(1).collect();
        assert_eq!(all(&single), tokens, "{bytes:?} in single bytes");
    }
}

#[test]
fn the_mouse_says_where_and_what() {
    for (bytes, kind, at) in [
        ("\x1b[<0;5;3M", MouseEventKind::Down(MouseButton::Left), (4, 2)),
        ("\x1b[<0;5;3m", MouseEventKind::Up(MouseButton::Left), (4, 2)),
        ("\x1b[<32;1;1M", MouseEventKind::Drag(MouseButton::Left), (0, 0)),
        ("\x1b[<64;300;200M", MouseEventKind::ScrollUp, (299, 199)),
        ("\x1b[<65;1;1M", MouseEventKind::ScrollDown, (0, 0)),
        ("\x1b[M !!", MouseEventKind::Down(MouseButton::Left), (0, 0)),
    ] {
        let tokens = all(&[bytes.as_bytes()]);
        let [Token::Mouse(mouse)] = tokens.as_slice() else { panic!("{tokens:?}") };
        assert_eq!((mouse.kind, (mouse.column, mouse.row)), (kind, at), "{bytes:?}");
    }
    assert_eq!(all(&[b"\x1b[<0;0;0M"]), []);
}

#[test]
fn a_long_paste_is_one_token_however_it_comes() {
    let text = "line of a log\n".repeat(100_000);
    let mut bytes = b"\x1b[200~".to_vec();
    bytes.extend_from_slice(text.as_bytes());
    bytes.extend_from_slice(b"\x1b[201~");
    let pieces: Vec<&[u8]> = bytes.chunks(1000).collect();
    assert_eq!(all(&pieces), [Token::Paste(text)]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn any_bytes_mean_the_same_in_any_pieces(bytes in prop::collection::vec(prop_oneof![
        Just(0x1b_u8), Just(b'['), Just(b']'), Just(b'O'), Just(b'<'), Just(b';'), Just(b'2'), Just(b'0'), Just(b'~'), any::<u8>(),
    ], 0..80), cuts in prop::collection::vec(1_usize..9, 1..20)) {
        let whole = all(&[&bytes]);
        let (mut pieces, mut rest, mut cuts) = (Vec::new(), bytes.as_slice(), cuts.iter().cycle());
        while !rest.is_empty() {
            let at = (*cuts.next().unwrap()).min(rest.len());
            pieces.push(&rest[..at]);
            rest = &rest[at..];
        }
        prop_assert_eq!(all(&pieces), whole);
    }
}
