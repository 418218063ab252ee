//! The proofs of the lines that were looked at last.
//!
//! A call's line is looked at several times on its way: when the call is declared, when what it names is checked, when
//! the shell makes it ready. The proof is a function of the text alone, so the first one serves them all.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Proof, prove};

/// Lines whose proofs are kept: as many as one answer has calls, hardly ever more.
const LINES: usize = 8;

/// Bytes of a line that is kept; longer ones are scripts, and rare.
const LONGEST: usize = 4096;

/// The proofs used last, the latest first.
#[derive(Default)]
struct Kept(VecDeque<(String, Arc<Proof>)>);

static KEPT: Mutex<Kept> = Mutex::new(Kept(VecDeque::new()));

/// What [`prove`] says of a line, without looking at it again where that was done a moment ago.
pub(crate) fn proof_of(line: &str) -> Arc<Proof> {
    let kept = || KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(proof) = kept().find(line) {
        return proof;
    }
    let proof = Arc::new(prove(line));
    kept().keep(line, &proof);
    proof
}

impl Kept {
    fn find(&mut self, line: &str) -> Option<Arc<Proof>> {
        let at = self.0.iter().position(|(known, _)| known == line)?;
        let found = self.0.remove(at)?;
        let proof = found.1.clone();
        self.0.push_front(found);
        Some(proof)
    }

    fn keep(&mut self, line: &str, proof: &Arc<Proof>) {
        if line.len() > LONGEST || self.find(line).is_some() {
            return;
        }
        self.0.push_front((line.to_owned(), proof.clone()));
        self.0.truncate(LINES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_serves_until_others_were_used_since_and_only_the_very_line() {
        let mut kept = Kept::default();
        let proof = Arc::new(prove("ls -l"));
        kept.keep("ls -l", &proof);
        for n in 0..LINES * 3 {
            assert!(Arc::ptr_eq(&kept.find("ls -l").unwrap(), &proof), "used all the time");
            kept.keep(&format!("cat {n}"), &Arc::new(prove("cat n")));
            assert!(kept.0.len() <= LINES);
        }
        assert!(kept.find("cat 0").is_none() && kept.find(&format!("cat {}", LINES * 3 - 1)).is_some());
        for other in ["ls  -l", "ls -l ", "LS -l", "ls -l; rm x", ""] {
            assert!(kept.find(other).is_none(), "{other:?}");
        }
        let long = format!("echo {}", "x".repeat(LONGEST));
        kept.keep(&long, &Arc::new(prove(&long)));
        assert!(kept.find(&long).is_none());
    }

    #[test]
    fn a_line_is_proven_once_on_its_way() {
        let line = "grep -rn 'kept for this test' .";
        let first = proof_of(line);
        assert!(first.reads && Arc::ptr_eq(&first, &proof_of(line)));
        assert!(!proof_of("rm -rf 'kept for this test'").reads);
    }
}
