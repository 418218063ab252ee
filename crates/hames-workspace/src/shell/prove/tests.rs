//! The table, row by row, and the language as a whole.

use super::prove;
use super::readers::{GIT, ROWS};

#[test]
fn every_row_runs_what_it_says_and_refuses_what_it_says() {
    let mut wrong = Vec::new();
    for (names, run, refuse) in ROWS
        .iter()
        .map(|row| (row.names.to_vec(), row.runs, row.refuses))
        .chain(GIT.iter().map(|row| (vec![row.name], row.runs, row.refuses)))
    {
        assert!(!refuse.is_empty(), "{names:?} shows nothing that is refused");
        for line in run {
            let proof = prove(line);
            if let Some(refusal) = proof.refusal {
                wrong.push(format!("REFUSED {line}\n     {refusal}"));
            }
        }
        for line in refuse {
            if prove(line).reads {
                wrong.push(format!("PASSED  {line}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
