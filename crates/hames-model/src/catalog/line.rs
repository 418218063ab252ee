//! One model in a line: ` ID⇥WINDOW⇥TRAINED⇥OUTPUT⇥ABILITIES⇥PRICE`, each field empty where it is not known.
//!
//! Abilities are letters, small for yes and capital for no: `t` tools, `i` images, `r` reasoning. A price is dollars for
//! a million tokens, `INPUT,OUTPUT,CACHE_READ,CACHE_WRITE`; further ones follow after `;` with the tokens above which
//! they hold: `2.5,15,0.25,;200000:5,22.5,0.5,`.

use std::fmt::Write as _;

use hames_protocol::{Price, Rates};

use super::{Facts, ListedModel};

/// Bytes of the longest id that is kept; real ones have fewer than 100.
const MAX_ID_BYTES: usize = 256;
/// Digits behind the point of a price: a millionth of a dollar is the smallest unit there is.
const DECIMALS: usize = 6;

pub(super) fn write(model: &ListedModel, out: &mut String) {
    let id = &model.id;
    if id.trim().is_empty() || id.len() > MAX_ID_BYTES || id.chars().any(char::is_control) {
        return;
    }
    let Facts { context_window, trained_window, max_output, price, tools, images, reasoning } = &model.facts;
    let number = |n: &Option<u64>| n.map(|n| n.to_string()).unwrap_or_default();
    let mut fields = vec![number(context_window), number(trained_window), number(max_output)];
    let abilities = [(tools, 't'), (images, 'i'), (reasoning, 'r')];
    fields.push(
        abilities
            .iter()
            .filter_map(|(known, letter)| known.map(|yes| if yes { *letter } else { letter.to_ascii_uppercase() }))
            .collect(),
    );
    fields.push(price.as_ref().map(written_price).unwrap_or_default());
    // A newline cannot fail to be written to memory.
    let _ = writeln!(out, " {id}\t{}", fields.join("\t").trim_end_matches('\t'));
}

pub(super) fn id(line: &str) -> Option<&str> {
    line.strip_prefix(' ')?.split('\t').next().filter(|id| !id.is_empty())
}

/// A line that is no model's is `None`; a field that cannot be read is not known.
pub(super) fn read(line: &str) -> Option<ListedModel> {
    let id = id(line)?.to_owned();
    let mut fields = line.split('\t').skip(1);
    let mut next = || fields.next().unwrap_or("");
    let number = |text: &str| text.parse::<u64>().ok();
    let (context_window, trained_window, max_output) = (number(next()), number(next()), number(next()));
    let abilities = next();
    let can = |letter: char| {
        let no = letter.to_ascii_uppercase();
        abilities.chars().find_map(|c| (c == letter || c == no).then_some(c == letter))
    };
    let (tools, images, reasoning) = (can('t'), can('i'), can('r'));
    let price = read_price(next());
    Some(ListedModel {
        id,
        facts: Facts { context_window, trained_window, max_output, price, tools, images, reasoning },
    })
}

fn written_price(price: &Price) -> String {
    let rates = |rates: &Rates| {
        let optional = |rate: Option<u64>| rate.map(decimal).unwrap_or_default();
        let all =
            [decimal(rates.input), decimal(rates.output), optional(rates.cache_read), optional(rates.cache_write)];
        all.join(",").trim_end_matches(',').to_owned()
    };
    let mut out = rates(&price.rates);
    for (above, tier) in &price.tiers {
        let _ = write!(out, ";{above}:{}", rates(tier));
    }
    out
}

fn read_price(text: &str) -> Option<Price> {
    let rates = |text: &str| {
        let mut fields = text.split(',');
        let input = micros_of(fields.next()?)?;
        let output = micros_of(fields.next()?)?;
        let mut optional = || fields.next().and_then(micros_of);
        Some(Rates { input, output, cache_read: optional(), cache_write: optional() })
    };
    let mut parts = text.split(';');
    let base = rates(parts.next()?)?;
    let tiers = parts.filter_map(|tier| {
        let (above, text) = tier.split_once(':')?;
        Some((above.parse().ok()?, rates(text)?))
    });
    Some(Price { rates: base, tiers: tiers.collect() })
}

/// Millionths as a decimal number, as short as it can be.
fn decimal(micros: u64) -> String {
    let (whole, part) = (micros / 1_000_000, micros % 1_000_000);
    if part == 0 {
        return whole.to_string();
    }
    let part = format!("{part:0DECIMALS$}");
    format!("{whole}.{}", part.trim_end_matches('0'))
}

/// A decimal number in millionths, without a detour over binary fractions. Digits beyond the sixth are cut.
pub fn micros_of(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) {
        return None;
    }
    let part: String = part.chars().chain("000000".chars()).take(DECIMALS).collect();
    whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(part.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn prices_are_decimals_of_dollars() {
        for (micros, text) in [(0, "0"), (2_500_000, "2.5"), (15_000_000, "15"), (1, "0.000001"), (250_000, "0.25")] {
            assert_eq!(decimal(micros), text);
            assert_eq!(micros_of(text), Some(micros));
        }
        for text in ["", ".", ".5", "-1", "1e3", "1,5", "99999999999999999999", "18446744073709.6"] {
            assert_eq!(micros_of(text), None, "{text}");
        }
        assert_eq!(micros_of("0.0000019"), Some(1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::proptest_cases()))]

        #[test]
        fn whatever_is_written_is_read_the_same(
            id in "[a-zA-Z0-9@#:/._ -]{1,40}",
            numbers in proptest::collection::vec(proptest::option::of(any::<u64>()), 3),
            abilities in proptest::collection::vec(proptest::option::of(any::<bool>()), 3),
            rates in proptest::option::of(proptest::collection::vec((any::<u64>(), any::<u64>(), proptest::option::of(any::<u64>()), proptest::option::of(any::<u64>())), 1..3)),
        ) {
            prop_assume!(!id.trim().is_empty());
            let rate = |(input, output, cache_read, cache_write): &(u64, u64, Option<u64>, Option<u64>)| Rates { input: *input, output: *output, cache_read: *cache_read, cache_write: *cache_write };
            let price = rates.map(|all| Price { rates: rate(&all[0]), tiers: all[1..].iter().map(|r| (7, rate(r))).collect() });
            let model = ListedModel { id, facts: Facts {
                context_window: numbers[0], trained_window: numbers[1], max_output: numbers[2], price,
                tools: abilities[0], images: abilities[1], reasoning: abilities[2],
            } };
            let mut line = String::new();
            write(&model, &mut line);
            prop_assert_eq!(line.matches('\n').count(), 1);
            prop_assert_eq!(read(line.trim_end_matches('\n')), Some(model));
        }

        #[test]
        fn no_line_is_a_crash(line in "\\PC*") {
            let _ = read(&line);
            let _ = read(&format!(" {line}"));
        }
    }
}
