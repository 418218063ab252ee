//! How much of a long text is shown before somebody opens it.

use super::*;

fn numbered(count: usize) -> String {
    (1..=count).map(|n| format!("line {n}")).collect::<Vec<_>>().join("\n")
}

/// The rows of one call: its output, its error or its diff has so many lines.
fn rows(what: &str, count: usize) -> Vec<String> {
    let mut log = Log::default();
    log.run("build", "go").step().call("c", "Shell", "it", json!({"command": "it"})).step_done().start("c");
    let diff: String = (1..count).map(|n| format!("+line {n}\n")).collect();
    match what {
        "output" => log.gives("c", &numbered(count), json!([])),
        "error" => log.json(json!({"type": "tool.error", "call_id": "c", "name": "t", "class": "failed",
            "error": numbered(count), "duration_ms": 1})),
        "exit" => log.json(json!({"type": "tool.done", "call_id": "c", "name": "t", "output": numbered(count),
            "exit_code": 2, "duration_ms": 1})),
        _ => log.gives(
            "c",
            "Done.",
            json!([{"path": "a.txt", "added": count - 1, "removed": 0,
            "text": format!("--- a/a.txt\n+++ b/a.txt\n@@ -0,0 +1 @@\n{diff}")}]),
        ),
    };
    let mut talk = talk_of(&log);
    text(&draw(&mut talk, 60, 80, theme()))
        .into_iter()
        .filter(|row| row.contains("line") || row.contains('@'))
        .collect()
}

#[test]
fn output_past_twelve_rows_is_four_and_four_and_errors_and_diffs_past_forty() {
    for (what, most) in [("output", 12), ("error", 40), ("exit", 40), ("diff", 40)] {
        let all = rows(what, most);
        assert_eq!(all.len(), most, "{what}: {all:#?}");
        assert!(!all.iter().any(|row| row.contains("more")), "{what}: {all:#?}");
        let past = rows(what, most + 1);
        assert_eq!(past.len(), 9, "{what}: {past:#?}");
        let hidden = format!("… {} lines more", most + 1 - 8);
        assert!(past[4].contains(&hidden), "{what}: {past:#?}");
        assert!(
            past[8].contains(&format!("line {}", if what == "diff" { most } else { most + 1 })),
            "{what}: {past:#?}"
        );
    }
}

#[test]
fn a_line_of_code_that_looks_like_the_head_of_a_diff_is_shown() {
    let diff = "--- a/q.sql\n+++ b/q.sql\n@@ -1,3 +1,3 @@\n--- select the old ones\n+++ select the new ones\n \n-index \n+diff \n";
    let mut log = Log::default();
    log.run("build", "go").step().call("c", "Edit", "q.sql", json!({"path": "q.sql"})).step_done().start("c");
    log.gives("c", "Done.", json!([{"path": "q.sql", "added": 2, "removed": 2, "text": diff}]));
    let mut talk = talk_of(&log);
    for _ in 0..2 {
        let rows = text(&draw(&mut talk, 60, 40, theme())).join("\n");
        for line in ["--- select the old ones", "+++ select the new ones", "-index", "+diff"] {
            assert_eq!(rows.matches(line).count(), 1, "{line}\n{rows}");
        }
        assert!(!rows.contains("a/q.sql"), "{rows}");
        act(&mut talk, &plain(KeyCode::F(5)));
    }
}
