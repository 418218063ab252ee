//! The same model under another name: the harmless ways of writing one, from the most to the least certain.
//!
//! The further a way of writing is from the name asked for, the fewer facts it may speak for; where several models are
//! found at once, only what all of them say counts.

use super::{Facts, line};

/// Words behind a colon that choose where a model runs, and not which one it is.
const ROUTES: [&str; 6] = [":free", ":nitro", ":floor", ":online", ":exacto", ":latest"];

/// What may be known of the model of that name.
pub(super) fn find<'t, L: Iterator<Item = &'t str>>(lines: impl Fn() -> L, wanted: &str) -> Option<Facts> {
    let plain = plain(wanted);
    let unrouted = unrouted(&plain);
    let (bare, undated) = (bare(unrouted), undated(bare(unrouted)));
    if undated.is_empty() {
        return None;
    }
    type Way<'a> = (&'a dyn Fn(&str) -> bool, bool);
    let ways: [Way<'_>; 4] = [
        (&|id| id == plain, true),
        (&|id| self::unrouted(id) == unrouted, false),
        (&|id| self::bare(self::unrouted(id)) == bare && !names_another_vendor(id, unrouted), plain == unrouted),
        (&|id| self::undated(self::bare(self::unrouted(id))) == undated && !names_another_vendor(id, unrouted), false),
    ];
    ways.iter().find_map(|(is_same, has_its_price)| {
        let found = lines().filter(|line| line::id(line).is_some_and(|id| is_same(&self::plain(id))));
        let facts = found.filter_map(line::read).map(|model| model.facts).reduce(|a, b| a.shared(&b))?;
        // A dated version, or another route, may cost something else and answer at another length.
        Some(if *has_its_price { facts } else { Facts { price: None, max_output: None, ..facts } })
    })
}

/// Small letters, without the folder Google puts before every model.
fn plain(id: &str) -> String {
    let id = id.trim().to_lowercase();
    id.strip_prefix("models/").map(str::to_owned).unwrap_or(id)
}

fn unrouted(id: &str) -> &str {
    ROUTES.iter().find_map(|route| id.strip_suffix(route)).unwrap_or(id)
}

/// Without the vendor before it.
fn bare(id: &str) -> &str {
    id.rsplit('/').next().unwrap_or(id)
}

/// Whether both say whose model it is, and not the same.
fn names_another_vendor(id: &str, wanted: &str) -> bool {
    let vendor = |id: &str| id.rsplit_once('/').map(|(vendor, _)| vendor.to_owned());
    matches!((vendor(id), vendor(wanted)), (Some(a), Some(b)) if a != b)
}

/// Without a date of eight digits behind it: `-20250929`, `@20250929`, `-2025-09-29`. Shorter ones are not dates for
/// sure, and a model that is called after a month is another model.
fn undated(id: &str) -> &str {
    let is_date = |text: &str| {
        let digits: String = text.chars().filter(char::is_ascii_digit).collect();
        let dashes = text.len() - digits.len();
        let in_place = dashes == 0 || (dashes == 2 && text.as_bytes()[4] == b'-' && text.as_bytes()[7] == b'-');
        digits.len() == 8
            && in_place
            && text.bytes().all(|b| b == b'-' || b.is_ascii_digit())
            && digits.starts_with("20")
    };
    for length in [8, 10] {
        let Some(at) = id.len().checked_sub(length).filter(|at| *at > 1 && id.is_char_boundary(*at)) else { continue };
        if is_date(&id[at..]) && matches!(id.as_bytes()[at - 1], b'-' | b'@') {
            return &id[..at - 1];
        }
    }
    id
}

#[cfg(test)]
mod tests {
    use super::super::{Catalog, ListedModel};
    use super::*;
    use hames_protocol::Price;

    fn section(ids: &[(&str, u64)]) -> Catalog<'static> {
        let models: Vec<ListedModel> = ids
            .iter()
            .map(|(id, window)| ListedModel {
                id: (*id).into(),
                facts: Facts {
                    context_window: Some(*window),
                    max_output: Some(7),
                    price: Some(Price::default()),
                    ..Facts::default()
                },
            })
            .collect();
        Catalog::write("", [("p", &models[..])])
    }

    #[test]
    fn a_model_is_found_however_it_is_written_and_no_other_is_taken_for_it() {
        let catalog = section(&[
            ("gpt-5.4", 1),
            ("gpt-5.4-mini", 2),
            ("gpt-4o-2024-05-13", 3),
            ("gpt-4o", 4),
            ("claude-sonnet-4-5-20250929", 5),
            ("anthropic/claude-opus-4", 6),
            ("models/gemini-3-flash", 7),
            ("openai/gpt-oss-120b", 8),
            ("other/gpt-oss-120b", 9),
            ("qwen3-coder:latest", 10),
            ("deepseek/deepseek-v4:free", 11),
            ("mistral-large-2411", 12),
            ("claude-haiku-4@20251001", 13),
            ("Llama-3-70B", 14),
            ("vendor/llama-9", 15),
        ]);
        for (wanted, window) in [
            ("gpt-5.4", Some(1)),
            ("GPT-5.4", Some(1)),
            (" gpt-5.4 ", Some(1)),
            ("gpt-5.4:free", Some(1)),
            ("openai/gpt-5.4", Some(1)),
            ("gpt-5.4-2026-03-05", Some(1)),
            ("gpt-5.4-20260305", Some(1)),
            ("openai/gpt-5.4-2026-03-05:nitro", Some(1)),
            ("gpt-4o-2024-05-13", Some(3)),
            ("gpt-4o-2025-01-01", None), // two of them, which do not agree
            ("claude-sonnet-4-5", Some(5)),
            ("claude-opus-4", Some(6)),
            ("gemini-3-flash", Some(7)),
            ("models/gpt-5.4", Some(1)),
            ("gpt-oss-120b", None), // two vendors
            ("openai/gpt-oss-120b", Some(8)),
            ("third/gpt-oss-120b", None),
            ("qwen3-coder", Some(10)),
            ("deepseek/deepseek-v4", Some(11)),
            ("claude-haiku-4", Some(13)),
            ("llama-3-70b", Some(14)),
            ("mistral-large", None),
            ("mistral-large-2407", None),
            ("gpt-5", None),
            ("gpt-5.4-pro", None),
            ("gpt-5.4-mini-high", None),
            ("gpt-5.4-2026", None),
            ("5.4", None),
            ("", None),
            ("/", None),
            (":free", None),
            ("20250929", None),
        ] {
            let found = catalog.section("p").unwrap().find(wanted);
            assert_eq!(found.and_then(|facts| facts.window()), window, "{wanted}");
        }
    }

    #[test]
    fn another_way_of_writing_does_not_lend_its_price() {
        let catalog = section(&[("gpt-5.4", 1), ("x/two:free", 2)]);
        for (wanted, has_price) in [
            ("gpt-5.4", true),
            ("GPT-5.4", true),
            ("openai/gpt-5.4", true),
            ("gpt-5.4-2026-03-05", false),
            ("gpt-5.4:free", false),
            ("x/two", false),
            ("x/two:free", true),
        ] {
            let facts = catalog.section("p").unwrap().find(wanted).unwrap();
            assert_eq!((facts.price.is_some(), facts.max_output.is_some()), (has_price, has_price), "{wanted}");
        }
    }

    #[test]
    fn no_name_is_a_crash() {
        let catalog = section(&[("ü-2025-01-01", 1), ("日本語-20250101", 2)]);
        let section = catalog.section("p").unwrap();
        for wanted in ["ü", "日本語", "ü-20250101", "日20250101", "é2025-01-01", "İ", "-20250101", "a--20250101"]
        {
            let _ = section.find(wanted);
        }
        assert!(section.has("ü") && section.has("日本語"));
    }
}
