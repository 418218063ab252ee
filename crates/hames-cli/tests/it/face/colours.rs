//! Colours: as many as the terminal has, for the ground it says it has, and none where somebody wants none.

use super::Ends;
use super::screen::Screen;
use crate::kit::User;

/// Opens the face in a terminal that answers what its ground is, and gives what was written until it was left.
fn written(user: &User, vars: &[(&str, &str)], ground: Option<&str>) -> String {
    let mut screen = Screen::start(user, &[], &["--ctty"], vars);
    screen.until_raw(0, "\x1b]11;?");
    if let Some(ground) = ground {
        screen.types(&format!("\x1b]11;rgb:{ground}\x1b\\"));
    }
    screen.types("\x1b[?62;22c");
    screen.until_shows("new session");
    screen.types("\x04");
    let (code, left, raw) = screen.end();
    assert_eq!((code, left.trim()), (0, ""));
    raw
}

/// Whether a colour was asked for, of the palette or by its parts.
fn has_colours(raw: &str) -> bool {
    raw.split("\x1b[").skip(1).any(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(rest.len());
        let is_colour =
            |n: &str| n.parse().is_ok_and(|n: u32| (30..=38).contains(&n) || (40..=48).contains(&n) || n > 89);
        rest[end..].starts_with('m') && rest[..end].split(';').any(is_colour)
    })
}

#[test]
fn a_light_ground_and_a_dark_one_have_colours_of_their_own_and_words_are_never_typed_of_the_answer() {
    let user = User::new();
    let _ends = Ends(&user);
    let full = [("COLORTERM", "truecolor")];
    let (light_grey, dark_grey) = ("38;2;112;116;126", "38;2;128;134;146");
    for (ground, has, has_not) in [
        (Some("ffff/ffff/ffff"), light_grey, dark_grey),
        (Some("1e1e/1e1e/2e2e"), dark_grey, light_grey),
        (None, dark_grey, light_grey),
    ] {
        let raw = written(&user, &full, ground);
        assert!(raw.contains(has) && !raw.contains(has_not), "{ground:?}: {raw:?}");
        assert!(!raw.contains("rgb:"), "{raw:?}");
    }
    // One that cannot be asked is known by its variable.
    let raw = written(&user, &[full[0], ("COLORFGBG", "0;15")], None);
    assert!(raw.contains(light_grey), "{raw:?}");
}

#[test]
fn sixteen_colours_or_none_where_the_terminal_or_somebody_wants_no_more() {
    let user = User::new();
    let _ends = Ends(&user);
    let raw = written(&user, &[], None);
    assert!(has_colours(&raw) && !raw.contains("38;2;"), "{raw:?}");
    for vars in [vec![("NO_COLOR", "1"), ("COLORTERM", "truecolor")], vec![("TERM", "vt100")]] {
        let raw = written(&user, &vars, None);
        assert!(!has_colours(&raw), "{vars:?}: {raw:?}");
    }
}
