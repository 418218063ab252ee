//! How often each kind of loop may be nudged before it ends the run.

use hames_protocol::LoopKind;

/// Steps without a kind of loop after which its nudges are forgotten.
const CLEAN_STEPS: u32 = 5;

/// Nudges given, by kind.
#[derive(Default)]
pub(super) struct Escalation {
    nudges: [u32; 7],
    clean: [u32; 7],
}

impl Escalation {
    /// A loop was found: the number of its nudge, or, where all are spent, how many there were.
    pub(super) fn found(&mut self, kind: LoopKind, max: u32) -> Result<u32, u32> {
        let at = kind as usize;
        self.clean[at] = 0;
        if self.nudges[at] >= max {
            return Err(self.nudges[at]);
        }
        self.nudges[at] += 1;
        Ok(self.nudges[at])
    }

    /// A step has ended in which these kinds were found.
    pub(super) fn step(&mut self, found: &[LoopKind]) {
        for kind in LoopKind::ALL.into_iter().filter(|kind| !found.contains(kind)) {
            let at = kind as usize;
            self.clean[at] += 1;
            if self.clean[at] >= CLEAN_STEPS {
                self.nudges[at] = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_nudges_of_its_own_and_they_are_forgotten_after_five_clean_steps() {
        let mut escalation = Escalation::default();
        let kind = LoopKind::ToolRepeat;
        assert_eq!(
            [escalation.found(kind, 2), escalation.found(kind, 2), escalation.found(kind, 2)],
            [Ok(1), Ok(2), Err(2)]
        );
        assert_eq!(escalation.found(LoopKind::EmptyTurn, 1), Ok(1));
        (0..4).for_each(|_| escalation.step(&[]));
        assert_eq!(escalation.found(kind, 2), Err(2));
        (0..5).for_each(|_| escalation.step(&[LoopKind::EmptyTurn]));
        assert_eq!(escalation.found(kind, 2), Ok(1));
        assert_eq!(escalation.found(LoopKind::EmptyTurn, 1), Err(1));
    }
}
