//! Steps in a row in which every call failed.

/// Failures of a streak that are told again.
const TOLD: usize = 6;
/// Characters of each.
const TOLD_CHARS: usize = 160;

/// The streak so far.
#[derive(Default)]
pub(super) struct Streak {
    steps: usize,
    /// What failed and how, the newest last.
    failures: Vec<String>,
}

impl Streak {
    /// It is broken.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Takes in a step, and gives its length and its failures once it is this long; then it begins anew.
    pub(super) fn take(&mut self, errors: &[String], successes: usize, most: usize) -> Option<(usize, Vec<String>)> {
        if successes > 0 {
            self.forget();
            return None;
        }
        if errors.is_empty() {
            return None;
        }
        self.steps += 1;
        for error in errors {
            if !self.failures.contains(error) {
                self.failures.push(error.clone());
            }
        }
        let old = self.failures.len().saturating_sub(TOLD);
        self.failures.drain(..old);
        (self.steps >= most).then(|| {
            let Self { steps, failures } = std::mem::take(self);
            (steps, failures)
        })
    }
}

/// One line of a failure: what was called, and the first line of what it said.
pub(super) fn line(label: &str, error: &str) -> String {
    let first = error.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let line = format!("{label}: {first}");
    match line.char_indices().nth(TOLD_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}
