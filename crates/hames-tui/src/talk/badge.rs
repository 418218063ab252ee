//! What a turn came to, in one line. Everything is grey but the word Build: it tells which turns wrote.

use hames_protocol::Mode;

use super::block::Badge;
use super::numbers::{money, seconds, tokens};
use super::text::Run;
use crate::Theme;

/// The line of a turn.
pub(super) fn runs<'t>(badge: &Badge, theme: Theme) -> Vec<Run<'t>> {
    let mut runs = Vec::new();
    match badge.mode {
        Some(Mode::Build) => runs.push(Run::new(" Build ", theme.build())),
        Some(Mode::Analyze) => runs.push(Run::new("Analyze", theme.analyze())),
        None => {}
    }
    let mut facts = Vec::new();
    if !badge.model.is_empty() {
        facts.push(badge.model.clone());
    }
    let usage = &badge.usage;
    facts.extend(usage.input.map(|n| format!("{} in", tokens(n))));
    facts.extend(usage.output.map(|n| format!("{} out", tokens(n))));
    facts.extend(usage.cache_read.filter(|n| *n > 0).map(|n| format!("{} cached", tokens(n))));
    facts.extend(badge.costs.iter().map(money));
    facts.push(format!("elapsed {}", seconds(badge.duration_ms)));
    facts.extend(badge.first_token_ms.map(|ms| format!("first token {}", seconds(ms))));
    let before = if runs.is_empty() { "" } else { " · " };
    runs.push(Run::new(format!("{before}{}", facts.join(" · ")), theme.dim()));
    runs
}
