use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, MouseEventKind};
use ratatui::layout::Rect;

use super::super::kit::{Stand, click, ctrl, key, mouse};
use super::super::{Item, List, Look, Said};
use crate::Input;
use crate::snapshot::{compare, rows};

fn item(group: &str, text: &str) -> Item {
    Item {
        id: text.into(),
        group: group.into(),
        text: text.into(),
        about: format!("about {text}"),
        columns: vec![(format!("{} turns", text.len()), Look::Dim), ("2 h ago".into(), Look::Dim)],
        ..Item::default()
    }
}

fn list() -> List {
    let mut list = List::new();
    let mut items: Vec<Item> = ["alpha", "beta", "漢字かなと emoji 👍🏽 in a name that is rather long", "gam\u{1b}[2Jma"]
        .into_iter()
        .map(|text| item("first", text))
        .collect();
    items[1].mark = ("●", Look::Warn);
    items.extend((1..=12).map(|n| item("second", &format!("number {n}"))));
    list.set(items);
    list
}

fn give(list: &mut List, input: &Input) -> Said {
    let stand = Stand::default();
    let action = match input {
        Input::Key(key) => stand.keys.action(key),
        _ => None,
    };
    list.handle(input, action)
}

fn chosen(list: &List) -> &str {
    list.chosen().map_or("", |item| item.id.as_str())
}

fn draw(list: &mut List, width: u16, height: u16, styles: bool) -> String {
    let stand = Stand::default();
    let area = Rect::new(0, 0, width, height);
    let mut buf = Buffer::empty(area);
    list.draw(area, &mut buf, "There is nothing yet.", stand.sight());
    rows(&buf, area, styles)
}

#[test]
fn keys_move_the_choice() {
    let mut list = list();
    draw(&mut list, 60, 8, false);
    for (input, now) in [
        (key(KeyCode::Down), "beta"),
        (ctrl('n'), "漢字かなと emoji 👍🏽 in a name that is rather long"),
        (ctrl('p'), "beta"),
        (key(KeyCode::Up), "alpha"),
        (key(KeyCode::Up), "number 12"),
        (key(KeyCode::Down), "alpha"),
        (key(KeyCode::PageDown), "number 3"),
        (key(KeyCode::End), "number 12"),
        (key(KeyCode::PageDown), "number 12"),
        (key(KeyCode::PageUp), "number 6"),
        (key(KeyCode::Home), "alpha"),
        (mouse(MouseEventKind::ScrollDown, 3, 3), "gam\u{1b}[2Jma"),
        (mouse(MouseEventKind::ScrollUp, 3, 3), "alpha"),
    ] {
        assert_eq!(give(&mut list, &input), Said::Taken);
        assert_eq!(chosen(&list), now, "{input:?}");
    }
    assert_eq!(give(&mut list, &key(KeyCode::Enter)), Said::Picked("alpha".into()));
    for input in [key(KeyCode::Esc), key(KeyCode::F(2)), ctrl('o'), Input::Wake] {
        assert_eq!(give(&mut list, &input), Said::Passed, "{input:?}");
    }
}

#[test]
fn a_click_chooses_and_the_next_one_means_it() {
    let mut list = list();
    draw(&mut list, 60, 8, false);
    assert_eq!(give(&mut list, &click(3, 3)), Said::Taken);
    assert_eq!(chosen(&list), "beta");
    assert_eq!(give(&mut list, &click(3, 3)), Said::Picked("beta".into()));
    assert_eq!(give(&mut list, &click(3, 1)), Said::Taken, "a heading is no row");
    assert_eq!(chosen(&list), "beta");
}

#[test]
fn typing_filters_and_the_best_is_chosen() {
    for (typed, found) in [
        ("alp", vec!["alpha"]),
        ("first", vec!["alpha", "beta", "漢字かなと emoji 👍🏽 in a name that is rather long", "gam\u{1b}[2Jma"]),
        ("12 num", vec!["number 12"]),
        ("かな", vec!["漢字かなと emoji 👍🏽 in a name that is rather long"]),
        ("NUMBER 3", vec!["number 3"]),
        ("xyzzy", vec![]),
    ] {
        let mut list = list();
        give(&mut list, &key(KeyCode::End));
        assert_eq!(give(&mut list, &Input::Paste(typed.into())), Said::Query);
        let mut all = Vec::new();
        for _ in &found {
            all.push(chosen(&list).to_owned());
            give(&mut list, &key(KeyCode::Down));
        }
        assert_eq!(all, found, "{typed}");
        assert_eq!(chosen(&list), found.first().copied().unwrap_or_default(), "{typed}: and no further one");
    }
}

#[test]
fn other_rows_leave_the_choice_where_it_is() {
    let mut list = list();
    for _ in 0..6 {
        give(&mut list, &key(KeyCode::Down));
    }
    assert_eq!(chosen(&list), "number 3");
    let items = |gone: &[usize]| {
        let left = (1..=12).rev().filter(|n| !gone.contains(n));
        left.map(|n| item("second", &format!("number {n}"))).collect::<Vec<_>>()
    };
    list.set(items(&[]));
    assert_eq!(chosen(&list), "number 3");
    list.set(items(&[3]));
    assert_eq!(chosen(&list), "number 2", "its place, where it is gone");
    list.set(items(&[1, 2, 3]));
    assert_eq!(chosen(&list), "number 4");
    list.set(Vec::new());
    assert_eq!(chosen(&list), "");
    assert_eq!(give(&mut list, &key(KeyCode::Enter)), Said::Taken);
}

#[test]
fn rows_that_the_server_finds_are_not_filtered_and_show_what_was_found() {
    let mut list = List::remote("lathe");
    let text = format!("{} and then the lathe \u{1b}stopped", "a long story ".repeat(20));
    let at = text.find("lathe").unwrap();
    let found = std::iter::once(at..at + 5).collect();
    list.set(vec![Item { id: "1".into(), found, text, ..Item::default() }]);
    assert_eq!(give(&mut list, &key(KeyCode::Char('s'))), Said::Query);
    assert_eq!((list.query(), chosen(&list)), ("lathes", "1"));
    let shown = draw(&mut list, 40, 3, false);
    assert!(shown.contains("the lathe \\x1bsto"), "{shown}");
}

#[test]
fn screens() {
    let mut shown = String::new();
    let mut list = list();
    give(&mut list, &key(KeyCode::Down));
    for (width, height) in [(80, 20), (40, 10), (20, 5)] {
        shown.push_str(&format!("{width}x{height}\n{}\n", draw(&mut list, width, height, width == 80)));
    }
    give(&mut list, &Input::Paste("num 1".into()));
    shown.push_str(&format!("filtered\n{}\n", draw(&mut list, 60, 8, true)));
    give(&mut list, &Input::Paste("xyz".into()));
    shown.push_str(&format!("nothing matches\n{}\n", draw(&mut list, 60, 4, false)));
    shown.push_str(&format!("nothing at all\n{}", draw(&mut List::new(), 60, 4, false)));
    compare("part-list", &shown);
    for width in 0..50 {
        for height in 0..12 {
            draw(&mut list, width, height, false);
            draw(&mut self::list(), width, height, false);
        }
    }
}
