//! What was allowed for a folder stays allowed there, and nowhere else, until it is taken back.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use hames_protocol::*;
use hames_store::KeptGrant;

use crate::kit::*;

fn command(line: &str) -> Grant {
    Grant::Command { words: line.split(' ').map(str::to_owned).collect() }
}

fn all_kinds() -> Vec<Grant> {
    vec![
        Grant::Path { path: "/data/ünï \"x\"\n".into(), write: true },
        command("git push"),
        Grant::Host { host: "example.com".into() },
        Grant::Tool { name: "Delete".into() },
    ]
}

fn keep(home: &Home, folder: &str, grants: &[Grant], at: u64) -> Result<(), LogError> {
    wait(home.store().grant_keeper(Path::new(folder), move || at).keep(grants))
}

fn kept(home: &Home, folder: &str) -> Vec<Grant> {
    home.store().grants(Some(Path::new(folder))).unwrap().into_iter().map(|kept| kept.grant).collect()
}

#[test]
fn grants_are_kept_for_their_folder_over_a_restart() {
    let mut home = Home::new();
    for (at, grant) in all_kinds().into_iter().enumerate() {
        keep(&home, "/work", &[grant], at as u64).unwrap();
    }
    keep(&home, "/work/below", &[command("make")], 9).unwrap();
    home.reopen();
    assert_eq!(kept(&home, "/work"), all_kinds());
    assert_eq!(kept(&home, "/work/below"), [command("make")]);
    assert_eq!(kept(&home, "/"), []);
    assert_eq!(kept(&home, "/wor"), []);
    assert_eq!(home.store().grants(None).unwrap().len(), 5);
}

#[test]
fn the_same_grant_is_kept_once_with_its_first_time() {
    let home = Home::new();
    for at in [5, 6] {
        keep(&home, "/work", &[command("git push"), command("git push")], at).unwrap();
    }
    let expected = KeptGrant { folder: "/work".into(), grant: command("git push"), at: 5 };
    assert_eq!(home.store().grants(None).unwrap(), [expected]);
}

#[test]
fn a_grant_that_is_taken_back_is_gone_and_others_stay() {
    let home = Home::new();
    for folder in ["/work", "/other"] {
        keep(&home, folder, &all_kinds(), 1).unwrap();
    }
    for kept in home.store().grants(Some(Path::new("/work"))).unwrap() {
        assert_eq!(home.store().remove_grant(&kept), Ok(true));
        assert_eq!(home.store().remove_grant(&kept), Ok(false));
    }
    assert_eq!(kept(&home, "/work"), []);
    assert_eq!(kept(&home, "/other").len(), 4);
}

#[test]
fn what_a_newer_version_wrote_allows_nothing_and_stays() {
    let mut home = Home::new();
    keep(&home, "/work", &[command("ls")], 1).unwrap();
    home.close();
    let rows = [r#"{"type":"planet","name":"mars"}"#, "not JSON", ""];
    for row in rows {
        home.sql().execute("INSERT INTO grants (folder, grant, at) VALUES ('/work', ?1, 2)", [row]).unwrap();
    }
    home.reopen();
    assert_eq!(kept(&home, "/work"), [command("ls")]);
    let left: i64 = home.sql().query_row("SELECT count(*) FROM grants", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 4);
}

#[test]
fn a_folder_does_not_fill_up_without_end() {
    let home = Home::new();
    let many: Vec<Grant> = (0..1_000).map(|n| command(&format!("make {n}"))).collect();
    keep(&home, "/work", &many, 1).unwrap();
    let error = keep(&home, "/work", &[command("one more")], 2).unwrap_err().to_string();
    assert!(error.contains("hames grants remove"), "{error}");
    assert_eq!(kept(&home, "/work").len(), 1_000);
    keep(&home, "/work", &many[..1], 3).unwrap();
    keep(&home, "/other", &[command("one more")], 2).unwrap();
}

#[test]
fn grants_survive_a_damaged_database() {
    for length in [16, 100] {
        let mut home = Home::new();
        let id = home.session("s").id;
        home.append(&id, 2, vec![user("hello")]).unwrap();
        keep(&home, "/work", &all_kinds(), 7).unwrap();
        let before = home.store().grants(None).unwrap();
        home.close();
        let file = OpenOptions::new().write(true).open(home.database()).unwrap();
        file.write_all_at(&vec![0x5a; length], 0).unwrap();
        assert_eq!(home.reopen().len(), 1, "the damage is said");
        assert_eq!(home.store().grants(None).unwrap(), before, "{length} bytes of damage");
    }
}
