//! How far estimates of tokens are from what a provider counts, as its own answers say.

use crate::{Event, ModelRef};

/// The ratio nobody has measured.
const EVEN: u64 = 1_000;
/// Bounds of a ratio, in thousandths: what is further off is not a tokenizer but an error, or another unit. What is above
/// them counts as the upper one; what is below may be only what was not cached, and says nothing.
const LEAST: u64 = 500;
const MOST: u64 = 2_000;
/// Models whose ratio is remembered; a session rarely sees more than two.
const MODELS: usize = 8;

/// Ratios of the models of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measure {
    /// The model of the run that is read.
    model: Option<ModelRef>,
    /// What its last request was estimated at.
    estimated: Option<u64>,
    /// Thousandths, the newest last.
    known: Vec<(ModelRef, u64)>,
}

impl Measure {
    pub(super) fn apply(&mut self, event: &Event) {
        match event {
            Event::RunStart(start) => self.model = Some(start.model.clone()),
            Event::StepStart(start) => self.estimated = start.input_estimate,
            Event::StepDone(done) => {
                let counted = done.usage.as_ref().and_then(|usage| usage.input).filter(|input| *input > 0);
                let estimated = self.estimated.take().filter(|estimated| *estimated > 0);
                if let (Some(counted), Some(estimated), Some(model)) = (counted, estimated, self.model.clone()) {
                    let ratio = (counted.saturating_mul(EVEN) / estimated).min(MOST);
                    if ratio < LEAST {
                        return;
                    }
                    self.known.retain(|(known, _)| *known != model);
                    self.known.push((model, ratio));
                    let surplus = self.known.len().saturating_sub(MODELS);
                    self.known.drain(..surplus);
                }
            }
            _ => {}
        }
    }

    /// Thousandths of a counted token to an estimated one, for this model: 500 to 2,000, 1,000 where nobody knows.
    pub fn ratio(&self, model: &ModelRef) -> u64 {
        self.known.iter().find(|(known, _)| known == model).map_or(EVEN, |(_, ratio)| *ratio)
    }
}
