//! Which rows of a list are shown, and which letters of them match.

use std::ops::Range;

use super::super::line;
use super::{Hit, Item, List};
use crate::prompt::fuzzy;
use crate::prompt::text::cells;

impl List {
    /// Finds the rows for what is written, and how wide their columns are.
    pub(super) fn filter(&mut self) {
        let words: Vec<String> = self.field.text().split_whitespace().map(str::to_lowercase).collect();
        if self.is_remote || words.is_empty() {
            self.hits = (0..self.items.len()).map(|item| Hit { item, lit: Vec::new() }).collect();
        } else {
            let mut scored: Vec<(i32, Hit)> = Vec::new();
            for (item, row) in self.items.iter().enumerate() {
                if let Some((score, lit)) = matched(&words, row) {
                    scored.push((score, Hit { item, lit }));
                }
            }
            // The best first, but what stands under one heading stays together where its best one stands.
            scored.sort_by_key(|(score, hit)| (-score, hit.item));
            let mut groups: Vec<&str> = Vec::new();
            for (_, hit) in &scored {
                let group = self.items[hit.item].group.as_str();
                if !groups.contains(&group) {
                    groups.push(group);
                }
            }
            scored.sort_by_key(|(_, hit)| groups.iter().position(|group| *group == self.items[hit.item].group));
            self.hits = scored.into_iter().map(|(_, hit)| hit).collect();
        }
        let columns = self.items.first().map_or(0, |item| item.columns.len());
        let width = |column: usize| {
            let of = |hit: &Hit| self.items[hit.item].columns.get(column).map_or(0, |(text, _)| cells(text));
            self.hits.iter().map(of).max().unwrap_or(0)
        };
        self.widths = (0..columns).map(width).collect();
    }
}

/// Makes the text one clean line, and keeps the places that were found in it.
pub(super) fn clean_found(item: &mut Item) {
    let mut clean = String::with_capacity(item.text.len());
    let mut places = Vec::with_capacity(item.found.len());
    let mut last = 0;
    let mut ranges: Vec<Range<usize>> = std::mem::take(&mut item.found);
    ranges.sort_by_key(|range| range.start);
    for range in ranges {
        let (Some(before), Some(found)) = (item.text.get(last..range.start), item.text.get(range.clone())) else {
            continue;
        };
        clean.push_str(&line(before));
        let from = clean.len();
        clean.push_str(&line(found));
        places.push(from..clean.len());
        last = range.end;
    }
    clean.push_str(&line(item.text.get(last..).unwrap_or_default()));
    item.text = clean;
    item.found = places;
}

/// How well a row matches all words, and the bytes of its text that do.
fn matched(words: &[String], item: &Item) -> Option<(i32, Vec<usize>)> {
    let mut score = 0;
    let mut lit = Vec::new();
    for word in words {
        if let Some(found) = fuzzy::find(word, &item.text) {
            score += found.score;
            lit.extend(found.at);
        } else {
            let behind = [&item.about, &item.also, &item.group];
            if !behind.into_iter().any(|text| text.to_lowercase().contains(word.as_str())) {
                return None;
            }
        }
    }
    Some((score, lit))
}
