//! Searches what was said in all sessions, and opens a session where something was found.
//!
//! One question is on its way at a time; when its answer comes and something else is written by then, that is asked next.

use std::collections::HashMap;

use hames_protocol::api::{ApiError, SearchResult, SearchResults, SessionRow};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Position, Rect};

use super::parts::{Item, List, Look, Said, ago, asking, cut_to, frame};
use crate::{Action, Answer, Cx, Effect, Input, Layer, Outcome, Request, Sight, Ticket};

/// The search.
pub(super) struct Search {
    list: List,
    results: Vec<SearchResult>,
    is_here: bool,
    /// What the results are of.
    found: Option<(String, bool)>,
    asked: Option<(Ticket, String, bool)>,
    failure: Option<String>,
    /// What is to be known about the results besides.
    note: Option<String>,
}

impl Search {
    pub(super) fn open(words: &str, cx: &mut Cx<'_>) -> Self {
        let mut search = Self {
            list: List::remote(words),
            results: Vec::new(),
            is_here: false,
            found: None,
            asked: None,
            failure: None,
            note: None,
        };
        search.look(cx);
        search
    }

    fn words(&self) -> String {
        self.list.query().trim().to_owned()
    }

    /// Asks for what is written, unless that is known or asked already.
    fn look(&mut self, cx: &mut Cx<'_>) {
        let words = self.words();
        if words.is_empty() {
            self.results.clear();
            (self.found, self.failure, self.note) = (None, None, None);
            self.list.set(Vec::new());
        } else if self.asked.is_none() && self.found.as_ref() != Some(&(words.clone(), self.is_here)) {
            let folder = self.is_here.then(|| cx.face.folder.clone());
            let ticket = cx.ask(Request::Search(words.clone(), folder));
            self.asked = Some((ticket, words, self.is_here));
        }
    }

    fn show(&mut self, results: SearchResults, unix: u64) {
        self.note = match (results.since, results.behind) {
            (Some(since), _) => Some(format!(
                "Only what was said since {} was looked at; write more words to find what is older.",
                ago(since, unix)
            )),
            (None, true) => Some("What was said last cannot be found yet; it can in a moment.".into()),
            (None, false) => None,
        };
        // Hits of one session stand together, where its newest one stands.
        let mut order: HashMap<String, usize> = HashMap::new();
        for hit in &results.results {
            let next = order.len();
            order.entry(hit.session.id.as_str().to_owned()).or_insert(next);
        }
        self.results = results.results;
        self.results.sort_by_key(|hit| order.get(hit.session.id.as_str()).copied());
        let items = self.results.iter().map(|hit| item(hit, unix)).collect();
        self.list.set(items);
    }
}

/// A row: what was found, under the name of its session.
fn item(hit: &SearchResult, unix: u64) -> Item {
    let who = match hit.kind.as_str() {
        "user" => "you",
        "assistant" => "answer",
        other => other,
    };
    Item {
        id: format!("{} {}", hit.session.id.as_str(), hit.seq),
        group: heading(&hit.session),
        text: hit.text.clone(),
        found: hit.highlights.iter().map(|(from, to)| *from as usize..*to as usize).collect(),
        columns: vec![(ago(hit.at, unix), Look::Dim), (cut_to(who, 10), Look::Dim)],
        ..Item::default()
    }
}

fn heading(row: &SessionRow) -> String {
    let gone = if row.folder_missing { " (gone)" } else { "" };
    format!("{} · {}{gone}", row.name, row.folder)
}

impl Layer for Search {
    fn handle(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Outcome {
        match (input, action) {
            (_, Some(Action::Abort)) => return Outcome::Closed,
            (Input::Key(key), _) if key.code == KeyCode::Tab && key.modifiers.is_empty() => {
                self.is_here = !self.is_here;
                self.look(cx);
                return Outcome::Taken;
            }
            _ => {}
        }
        match self.list.handle(input, action) {
            Said::Passed => return Outcome::Passed,
            Said::Taken => {}
            Said::Query => self.look(cx),
            Said::Picked(id) => {
                let hit = self.results.iter().find(|hit| format!("{} {}", hit.session.id.as_str(), hit.seq) == id);
                if let Some(hit) = hit {
                    let first = hit.highlights.first();
                    let words = first.and_then(|(from, to)| hit.text.get(*from as usize..*to as usize));
                    let words = words.unwrap_or_default().to_owned();
                    cx.push(Effect::ShowAt { session: hit.session.id.clone(), seq: hit.seq, words });
                    return Outcome::Closed;
                }
            }
        }
        Outcome::Taken
    }

    fn answer(&mut self, ticket: Ticket, answer: Result<Answer, ApiError>, cx: &mut Cx<'_>) -> Outcome {
        let Some((_, words, is_here)) = self.asked.take_if(|(asked, ..)| *asked == ticket) else {
            return Outcome::Passed;
        };
        match answer {
            _ if self.words().is_empty() => {}
            Ok(Answer::Search(results)) => {
                self.failure = None;
                self.found = Some((words, is_here));
                self.show(results, cx.face.epoch + cx.now);
            }
            Ok(_) => {}
            Err(error) => {
                self.results.clear();
                self.list.set(Vec::new());
                self.found = Some((words, is_here));
                self.failure = Some(format!("It cannot be searched: {error}"));
            }
        }
        self.look(cx);
        Outcome::Taken
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) -> Option<Position> {
        let title = if self.is_here { "Search the sessions of this folder" } else { "Search all sessions" };
        let inner = frame(area, buf, sight, title);
        let note = self.note.as_ref().filter(|_| inner.height > 3);
        let rows = Rect { height: inner.height - u16::from(note.is_some()), ..inner };
        if let (Some(note), Some(last)) = (note, inner.rows().next_back()) {
            buf.set_stringn(last.x, last.y, cut_to(note, last.width.into()), last.width.into(), sight.theme.warn());
        }
        let empty = match (&self.failure, &self.found) {
            (Some(failure), _) => failure.clone(),
            _ if self.words().is_empty() => {
                "Write words; what was said by you, in answers and of calls is found where all of them occur.".into()
            }
            (None, Some((words, here))) if *words == self.words() && *here == self.is_here => match self.is_here {
                true => "Nothing like this was said in this folder. Tab searches all of them.".into(),
                false => "Nothing like this was said. Fewer or shorter words find more.".into(),
            },
            _ => asking(sight).into(),
        };
        self.list.draw(rows, buf, &empty, sight)
    }

    fn hint(&self, sight: Sight<'_>) -> String {
        let key = |action| sight.keys.hint(action);
        let other = if self.is_here { "all folders" } else { "this folder" };
        let here = sight.keys.inner("search.here");
        format!("{} opens it there · {here} {other} · {} goes back", key(Action::Submit), key(Action::Abort))
    }

    fn name(&self) -> &'static str {
        "search"
    }
}
