//! `hames demo`.

use std::time::{Duration, Instant};

use crate::kit::User;

#[test]
fn the_demo_makes_a_failing_test_pass_and_leaves_a_session() {
    let user = User::new();
    let began = Instant::now();
    let ended = user.ok(&["demo"]);
    // It takes under a second; a busy machine and a build for tests add to that.
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    for part in ["Read test.sh", "StrReplace add.sh", "+1/−1", "Shell sh test.sh", "exit 0", "hames sessions show"] {
        assert!(ended.err.contains(part), "lacks {part}\n{}", ended.err);
    }
    assert!(ended.out.contains("The test passes"), "{}", ended.out);
    let all = user.ok(&["sessions", "list", "--all", "--json"]).json();
    assert_eq!(all.len(), 1);
    let folder = all[0]["folder"].as_str().unwrap();
    let shown = user.ok(&["sessions", "show", all[0]["id"].as_str().unwrap()]).out;
    for part in ["StrReplace add.sh", "+echo $(($1 + $2))", "Shell sh test.sh", "The test passes"] {
        assert!(shown.contains(part), "lacks {part}\n{shown}");
    }
    assert!(std::path::Path::new(folder).join("test.sh").exists());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn the_demo_needs_no_model_and_ignores_the_ones_there_are() {
    let (user, provider) = User::saying("never asked");
    user.write_config("{\"model\": 5}");
    let ended = user.ok(&["demo", "--json"]);
    assert_eq!(ended.types().last().map(String::as_str), Some("run.done"));
    assert_eq!(provider.requests().len(), 0);
    let folder = ended.event("session.created")["folder"].as_str().unwrap().to_owned();
    std::fs::remove_dir_all(folder).unwrap();
}
