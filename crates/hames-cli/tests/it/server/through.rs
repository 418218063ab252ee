//! Commands that change a session which the server holds: they do what they do to one that nobody holds.

use hames_testkit::{Script, Turn};
use serde_json::{Value, json};

use super::{Server, hold};
use crate::kit::{Ended, User, tree};

/// A user whose session "s" has proposed an edit, a removal and two new files.
fn proposed() -> (User, hames_testkit::Provider) {
    let write = |path: &str| Turn::call("Write", json!({"path": path, "content": "new\n"}));
    let script = Script::new()
        .turn(write("a.txt"))
        .turn(Turn::call("Delete", json!({"path": "d/x.txt"})))
        .turn(write("d/new.txt"))
        .turn(write("n.txt"))
        .respond(|_| Turn::text("ok"));
    let (user, provider) = User::with(script);
    user.write("a.txt", "old\n");
    user.write("d/x.txt", "x\n");
    user.ok(&["run", "-s", "s", "--mode", "analyze", "propose"]);
    (user, provider)
}

/// One thing that is done to the session.
enum Do {
    /// A command, in a folder of the project.
    Command(&'static str, &'static [&'static str]),
    /// Somebody writes a file meanwhile.
    Write(&'static str),
    /// The second message and what follows is removed.
    Cut,
}

fn command(user: &User, folder: &str, args: &[&str]) -> Ended {
    let output = user.command(args).current_dir(user.project().join(folder)).output().unwrap();
    let ended = Ended::of(output);
    let own = |text: &str| text.replace(&user.project().display().to_string(), "PROJECT");
    Ended { code: ended.code, out: own(&ended.out), err: own(&ended.err) }
}

/// The last message of the person.
fn last_message(user: &User, name: &str) -> String {
    let log = super::log(user, name).json();
    let last = log.iter().rev().find(|line| line["event"]["type"] == "message.user").unwrap();
    last["seq"].to_string()
}

/// The types of the session's events, and how the run of each ended.
fn story(user: &User, name: &str) -> Vec<(String, Value)> {
    let log = super::log(user, name).json();
    log.iter().map(|line| (line["event"]["type"].as_str().unwrap().to_owned(), line["event"]["name"].clone())).collect()
}

#[test]
fn what_is_done_through_the_server_is_what_is_done_without_it() {
    let work = [
        ("s", Do::Command("", &["changes", "list", "-s", "s"])),
        ("s", Do::Command("d", &["changes", "apply", "-s", "s", "new.txt"])),
        ("s", Do::Command("", &["changes", "apply", "-s", "s", "nowhere.txt"])),
        ("s", Do::Write("d/x.txt")),
        ("s", Do::Command("", &["changes", "apply", "-s", "s"])),
        ("s", Do::Command("", &["changes", "apply", "-s", "s", "--json"])),
        ("s", Do::Command("", &["changes", "discard", "-s", "s", "d"])),
        ("s", Do::Command("", &["changes", "apply", "-s", "s", "--json"])),
        ("s", Do::Command("", &["run", "-s", "s", "--mode", "build", "and then"])),
        ("t", Do::Command("", &["sessions", "rename", "s", "t"])),
        ("t", Do::Cut),
        ("t", Do::Command("", &["sessions", "rename", "t", ""])),
        ("t", Do::Command("", &["sessions", "cut", "t", "--from", "1", "-y"])),
    ];
    let [here, there] = [false, true].map(|served| {
        let (user, _provider) = proposed();
        let server = served.then(|| {
            let server = Server::start(&user, &[]);
            hold(&user, "s");
            server
        });
        let mut told = Vec::new();
        for (name, what) in &work {
            match what {
                Do::Command(folder, args) => {
                    let ended = command(&user, folder, args);
                    told.push((args.join(" "), ended, tree(&user.project())));
                }
                Do::Write(path) => drop(user.write(path, "somebody else\n")),
                Do::Cut => {
                    let from = last_message(&user, name);
                    let ended = command(&user, "", &["sessions", "cut", name, "--from", &from, "-y"]);
                    told.push(("cut".into(), ended, tree(&user.project())));
                }
            }
            let rows = user.sessions();
            let row = rows.iter().find(|row| row["name"] == *name).unwrap();
            let held = row["held_by"].as_str().is_some_and(|by| by.starts_with("hames server"));
            assert_eq!(held, served, "{:?}: {row}", told.last());
        }
        let story = story(&user, "t");
        let deleted = command(&user, "", &["sessions", "delete", "t", "-y"]);
        told.push(("delete".into(), deleted, tree(&user.project())));
        assert_eq!(user.sessions(), [] as [Value; 0]);
        drop(server);
        let project = user.project();
        for (_, _, tree) in &mut told {
            tree.iter_mut().for_each(|(path, _)| *path = path.strip_prefix(&project).unwrap().to_owned());
        }
        (told, story)
    });
    for ((what, here, tree_here), (_, there, tree_there)) in here.0.iter().zip(&there.0) {
        assert_eq!((there.code, steady(&there.out)), (here.code, steady(&here.out)), "{what}\n{there:?}\n{here:?}");
        assert_eq!(there.err.is_empty(), here.err.is_empty(), "{what}\n{there:?}\n{here:?}");
        assert_eq!(tree_there, tree_here, "{what}");
    }
    let refused = here.0.iter().filter(|(_, ended, _)| ended.code != 0).count();
    assert!(refused >= 4, "{:?}", here.0);
    let lasting = |story: &[(String, Value)]| {
        // A message that goes through the server waits for a moment, which the log says.
        story.iter().filter(|(name, _)| !name.starts_with("pending.")).cloned().collect::<Vec<_>>()
    };
    assert_eq!(lasting(&there.1), lasting(&here.1));
}

/// Output without what no two sessions share: ids, and how many events there were.
fn steady(text: &str) -> String {
    let words = text.split_inclusive(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
    words.filter(|word| !(word.len() > 30 || word.starts_with(|c: char| c.is_ascii_digit()))).collect()
}

#[test]
fn settings_pins_and_a_compaction_of_a_session_that_the_server_holds_are_done_there() {
    let document = |request: &hames_testkit::ChatRequest| request.tools().is_empty();
    let script = Script::new().respond(move |request| match document(request) {
        true => Turn::text("## Facts\n- The port is 8080."),
        false => Turn::text("Noted."),
    });
    let (user, _provider) = User::with(script);
    let _server = Server::start(&user, &[]);
    for n in 0..6 {
        let words = format!("{n} {}", "word ".repeat(900));
        user.ok(&["run", "-s", "s", "--compaction", "off", "--context-window", "20000", &words]);
    }
    hold(&user, "s");
    let set = user.ok(&["sessions", "set", "s", "--json", "--compact-keep", "5"]).json().remove(0);
    assert_eq!(set["settings"]["compaction"]["landing"], 5, "{set}");
    hold(&user, "s");
    let pinned = user.ok(&["context", "s", "--pin", "the port is 8080", "--json"]).json().remove(0);
    let pin = pinned["pins"][0]["pin"].to_string();
    hold(&user, "s");
    let done = user.ok(&["compact", "s", "--json"]).json().remove(0);
    assert_eq!(done["compacted"], true, "{done}");
    hold(&user, "s");
    assert_eq!(user.ok(&["context", "s", "--unpin", &pin, "--json"]).json()[0]["pins"], json!([]));
    hold(&user, "s");
    assert_ne!(user.run(&["context", "s", "--unpin", &pin]).code, 0);
}
