use super::super::help::Help;
use super::*;

#[test]
fn it_lists_every_key_and_every_command() {
    let mut stand = Stand::default();
    let mut help = Help::default();
    let mut all = String::new();
    for _ in 0..30 {
        all.push_str(&stand.screen(&mut help, 170, 30));
        assert_eq!(went(&stand.give(&mut help, &key(KeyCode::PageDown))), "taken");
    }
    for (action, keys) in stand.keys.list() {
        assert!(all.contains(action.does()), "{action:?}");
        assert!(keys.iter().all(|key| all.contains(&key.to_string())), "{action:?}");
    }
    for inner in crate::keys::INNER {
        let key = stand.keys.inner(inner.name);
        assert!(all.contains(inner.does) && all.contains(inner.name) && all.contains(&key), "{inner:?}");
    }
    for command in crate::prompt::COMMANDS {
        assert!(all.contains(&format!("/{}", command.name)) && all.contains(command.does), "{}", command.name);
    }
    assert_eq!(went(&stand.give(&mut help, &key(KeyCode::Char('q')))), "closed");
    stand.at_every_size(&mut help);
    compare("layer-help", &stand.screens(&mut Help::default()));
}
