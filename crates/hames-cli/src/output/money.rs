//! What steps cost, added up and told honestly: stated by the provider, computed from its prices, or not known.

use hames_protocol::Cost;
use serde::Serialize;

/// The cost of several steps, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Spent {
    /// Millionths of the currency's unit; absent where no step's cost is known.
    micros: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency: Option<String>,
    /// Whether any of it was computed from a price list.
    computed: bool,
    /// Whether some step cost nobody knows what.
    incomplete: bool,
}

impl Spent {
    /// Adds a step.
    pub(crate) fn add(&mut self, cost: Option<&Cost>) {
        // Money of two currencies is not added up: what was first stays, and is not all.
        let Some(cost) = cost.filter(|cost| self.currency.as_ref().is_none_or(|known| *known == cost.currency)) else {
            self.incomplete = true;
            return;
        };
        self.currency = Some(cost.currency.clone());
        self.computed |= cost.computed;
        self.micros = Some(self.micros.unwrap_or(0).saturating_add(cost.micros));
    }

    /// `$0.0123`, `≈ $1.25` where it is computed, `at least $1.25` where some of it is not known; nothing where all is not.
    pub(crate) fn text(&self) -> Option<String> {
        let amount = amount(self.micros?);
        let amount = match self.currency.as_deref() {
            Some("USD") | None => format!("${amount}"),
            Some(other) => format!("{amount} {other}"),
        };
        Some(match (self.incomplete, self.computed) {
            (true, _) => format!("at least {amount}"),
            (false, true) => format!("≈ {amount}"),
            (false, false) => amount,
        })
    }
}

/// As many digits as say something.
fn amount(micros: u64) -> String {
    let (whole, part) = (micros / 1_000_000, micros % 1_000_000);
    match micros {
        0 => "0.00".into(),
        1..1_000 => format!("0.{part:06}"),
        1_000..1_000_000 => format!("0.{:04}", part / 100),
        _ => format!("{whole}.{:02}", part / 10_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(micros: u64, computed: bool) -> Option<Cost> {
        Some(Cost { micros, currency: "USD".into(), computed })
    }

    #[test]
    fn what_was_spent_is_told_with_what_is_not_known() {
        let euro = Some(Cost { micros: 5, currency: "EUR".into(), computed: false });
        for (costs, text) in [
            (vec![], None),
            (vec![None], None),
            (vec![cost(12_345, false)], Some("$0.0123")),
            (vec![cost(12_345, false), cost(1_000_000, true)], Some("≈ $1.01")),
            (vec![cost(0, false)], Some("$0.00")),
            (vec![cost(7, true)], Some("≈ $0.000007")),
            (vec![cost(2_500_000, true), None], Some("at least $2.50")),
            (vec![euro.clone()], Some("0.000005 EUR")),
            (vec![cost(1_000_000, false), euro], Some("at least $1.00")),
            (vec![cost(u64::MAX, false), cost(1, false)], Some("$18446744073709.55")),
        ] {
            let mut spent = Spent::default();
            costs.iter().for_each(|cost| spent.add(cost.as_ref()));
            assert_eq!(spent.text().as_deref(), text, "{costs:?}");
        }
    }
}
