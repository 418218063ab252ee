//! Matches of what was typed in names, so that a list can be ordered and the matching letters shown.

/// How well a query matches, and the bytes of the text that do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Match {
    /// Higher is better.
    pub(crate) score: i32,
    /// First bytes of the characters that match, in order.
    pub(crate) at: Vec<usize>,
}

/// Matches the letters of a query in a text, in order, without regard to case. A run of them counts more than single
/// letters, the beginning of a word more than its middle, the last part of a path more than its folders.
pub(crate) fn find(query: &str, text: &str) -> Option<Match> {
    let wanted: Vec<char> = query.chars().flat_map(char::to_lowercase).collect();
    let letters: Vec<(usize, char)> =
        text.char_indices().map(|(at, c)| (at, c.to_lowercase().next().unwrap_or(c))).collect();
    let name = text.trim_end_matches('/').rfind('/').map_or(0, |slash| slash + 1);
    let whole = letters
        .windows(wanted.len().max(1))
        .enumerate()
        .filter(|(_, window)| !wanted.is_empty() && window.iter().map(|(_, c)| c).eq(&wanted))
        .map(|(first, _)| first)
        .max_by_key(|first| (letters[*first].0 >= name, begins_word(&letters, *first), std::cmp::Reverse(*first)));
    let chosen = match whole {
        Some(first) => (first..first + wanted.len()).collect(),
        None => scattered(&wanted, &letters)?,
    };
    let mut score = -(letters.len() as i32) / 8;
    for (index, at) in chosen.iter().enumerate() {
        score += 8;
        score += if index > 0 && chosen[index - 1] + 1 == *at { 12 } else { 0 };
        score += if begins_word(&letters, *at) { 10 } else { 0 };
        score += if letters[*at].0 >= name { 5 } else { 0 };
    }
    score += if chosen.first() == Some(&0) { 16 } else { 0 };
    Some(Match { score, at: chosen.into_iter().map(|index| letters[index].0).collect() })
}

fn begins_word(letters: &[(usize, char)], at: usize) -> bool {
    at == 0 || !letters[at - 1].1.is_alphanumeric()
}

/// The letters one by one, sought from the end so that they fall into the last part of a path where they can.
fn scattered(wanted: &[char], letters: &[(usize, char)]) -> Option<Vec<usize>> {
    let mut chosen = Vec::with_capacity(wanted.len());
    let mut end = letters.len();
    for wanted in wanted.iter().rev() {
        end = letters[..end].iter().rposition(|(_, c)| c == wanted)?;
        chosen.push(end);
    }
    chosen.reverse();
    Some(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matched(query: &str, text: &str) -> Option<String> {
        let found = find(query, text)?;
        Some(found.at.iter().map(|at| text[*at..].chars().next().unwrap()).collect())
    }

    #[test]
    fn letters_match_in_order_without_regard_to_case() {
        for (query, text, expected) in [
            ("mn", "src/main.rs", Some("mn")),
            ("MAIN", "src/main.rs", Some("main")),
            ("", "anything", Some("")),
            ("nm", "main", None),
            ("äb", "ÄB.txt", Some("ÄB")),
            ("x", "", None),
        ] {
            assert_eq!(matched(query, text).as_deref(), expected, "{query} in {text}");
        }
    }

    #[test]
    fn names_and_beginnings_count_more_than_folders_and_middles() {
        for (query, better, worse) in [
            ("main", "src/main.rs", "main/other.rs"),
            ("mod", "mode", "compact-model"),
            ("s", "settings", "todos"),
            ("abc", "abc", "a-b-c"),
        ] {
            let score = |text| find(query, text).unwrap().score;
            assert!(score(better) > score(worse), "{query}: {better} before {worse}");
        }
        // The last part of a path is where the letters are shown.
        assert_eq!(find("test", "tests/a_test.rs").unwrap().at, [8, 9, 10, 11]);
    }
}
