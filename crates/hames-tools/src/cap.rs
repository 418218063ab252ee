//! How much of a result the window gets, and cutting what is longer.

/// Bytes no result exceeds, whatever the window: past this a model reads pages, not results.
const CEILING: usize = 50 << 10;
/// Bytes every result may have: less than this says nothing.
const FLOOR: usize = 1 << 10;
/// The share of the window that one result may take.
const WINDOW_SHARE: u64 = 10;
/// Bytes per token, as a rule of thumb for text and code.
const BYTES_PER_TOKEN: u64 = 4;

/// Bytes one result may have: the tool's own limit, a tenth of the window, and never more than the ceiling.
pub(crate) fn result_cap(window_tokens: u64, declared: Option<u64>) -> usize {
    let share = window_tokens.saturating_mul(BYTES_PER_TOKEN) / WINDOW_SHARE;
    let cap = declared.unwrap_or(u64::MAX).min(share);
    usize::try_from(cap).unwrap_or(usize::MAX).clamp(FLOOR, CEILING)
}

/// The head and the tail of `text` with `line(bytes left out)` on a line between them, at most `cap` bytes in all.
/// Text that fits comes back as it is.
pub(crate) fn cut(text: String, cap: usize, line: impl Fn(usize) -> String) -> String {
    if text.len() <= cap {
        return text;
    }
    // The longest the line can get, so that the whole stays within the cap.
    let room = cap.saturating_sub(line(text.len()).len() + 2);
    let head = (0..=room.div_ceil(2)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let tail = (text.len() - room / 2..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    format!("{}\n{}\n{}", &text[..head], line(tail - head), &text[tail..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_cap_follows_declaration_window_and_ceiling() {
        for (window, declared, wanted) in [
            (200_000, None, CEILING),
            (2_000_000, Some(30 << 10), 30 << 10),
            (2_000_000, Some(10 << 20), CEILING),
            (32_000, None, 12_800),
            (32_000, Some(30 << 10), 12_800),
            (8_000, None, 3_200),
            (2_000, None, FLOOR),
            (0, Some(0), FLOOR),
            (u64::MAX, None, CEILING),
            (200_000, Some(200), FLOOR),
        ] {
            assert_eq!(result_cap(window, declared), wanted, "{window} {declared:?}");
        }
    }

    #[test]
    fn text_that_fits_is_untouched() {
        assert_eq!(cut("abc".into(), 3, |_| unreachable!()), "abc");
    }

    proptest! {
        #![proptest_config(crate::testing::cases())]
        #[test]
        fn a_cut_text_keeps_head_and_tail_and_counts_the_rest(text in "[aé漢🦀\n]{0,400}", cap in 80usize..300) {
            let line = |n: usize| format!("[{n} bytes left out; the whole is kept as out-12]");
            let out = cut(text.clone(), cap, line);
            if text.len() <= cap {
                prop_assert_eq!(out, text);
            } else {
                prop_assert!(out.len() <= cap);
                let (head, rest) = out.split_once("\n[").unwrap();
                let (said, rest) = rest.split_once(' ').unwrap();
                let (_, tail) = rest.split_once("out-12]\n").unwrap();
                prop_assert!(text.starts_with(head) && text.ends_with(tail));
                prop_assert_eq!(said.parse::<usize>().unwrap(), text.len() - head.len() - tail.len());
            }
        }
    }
}
