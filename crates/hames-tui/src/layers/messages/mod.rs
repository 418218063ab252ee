//! A message is chosen, to cut a session from there on or to copy it up to there.
//!
//! It reads the log itself, backwards as far as somebody looks, so that every message can be reached and what goes is
//! counted and not guessed.

mod span;

use hames_protocol::api::{ApiError, SessionRow};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::branch::{Branch, UpTo};
use super::parts::{Confirm, Decided, Item, List, Look, Said, ago, asking, cut_to, frame, plural, some_paths};
use crate::{Action, Answer, Cx, Effect, Input, Layer, Outcome, Request, Sight, Ticket};
use span::{Message, Span};

/// Events of a page.
const PAGE: u32 = 1_000;
/// With fewer rows than this above the chosen one, older messages are wanted.
const NEAR: usize = 20;
/// Cells of a message where it is named in a sentence.
const NAMED: usize = 40;
/// The row that stands for the whole session.
const ALL: &str = "all";

/// What the message is chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum For {
    /// It goes, with everything behind it.
    Cut,
    /// A copy is made up to there.
    Branch,
}

/// The messages of a session.
pub(super) struct Messages {
    what: For,
    row: SessionRow,
    span: Span,
    list: List,
    asked: Option<Ticket>,
    failure: Option<String>,
    /// The message that was marked in the conversation: it is meant as soon as it is known.
    marked: Option<u64>,
    cutting: Option<(Message, Confirm)>,
    /// The name of the copy, where it was given before.
    name: String,
    unix: u64,
}

impl Messages {
    pub(super) fn of(row: SessionRow, what: For, marked: Option<u64>, cx: &mut Cx<'_>) -> Self {
        let mut messages = Self {
            what,
            row,
            span: Span::default(),
            list: List::new(),
            asked: None,
            failure: None,
            marked,
            cutting: None,
            name: String::new(),
            unix: cx.face.epoch + cx.now,
        };
        messages.read(cx);
        messages
    }

    /// The same, with a name for the copy.
    pub(super) fn named(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    fn read(&mut self, cx: &mut Cx<'_>) {
        if self.asked.is_none() {
            let (session, before) = (self.row.id.clone(), self.span.first());
            self.asked = Some(cx.ask(Request::Page { session, before, limit: PAGE }));
        }
    }

    /// Reads on where somebody comes near the beginning of what is known, or looks for what is not in it.
    fn read_on(&mut self, cx: &mut Cx<'_>) {
        let is_near = self.list.above().is_none_or(|above| above < NEAR);
        if self.span.is_read() && self.span.is_older && self.failure.is_none() && (is_near || self.marked.is_some()) {
            self.read(cx);
        }
    }

    fn choices(&self) -> impl Iterator<Item = &Message> {
        self.span.messages().iter().filter(|message| message.is_user || self.what == For::Branch)
    }

    fn show(&mut self) {
        let is_first = self.list.is_empty();
        let mut items: Vec<Item> = self
            .choices()
            .map(|message| Item {
                id: message.seq.to_string(),
                mark: if message.is_user { ("▌", Look::Name) } else { ("", Look::Text) },
                text: message.text.clone(),
                columns: vec![
                    (ago(message.at, self.unix), Look::Dim),
                    (if message.is_user { "you" } else { "answer" }.to_owned(), Look::Dim),
                ],
                ..Item::default()
            })
            .collect();
        if self.what == For::Branch && !items.is_empty() {
            let columns = vec![(String::new(), Look::Text), (String::new(), Look::Text)];
            items.push(Item { id: ALL.into(), text: "All of it".into(), columns, ..Item::default() });
        }
        let last = items.last().map(|item| item.id.clone());
        self.list.set(items);
        if let (true, Some(last)) = (is_first, last) {
            self.list.choose(&last);
        }
    }

    /// Goes on with the message that was marked before this was opened.
    fn take_marked(&mut self) -> Option<Message> {
        let marked = self.marked?;
        if self.span.is_older && self.span.first().is_none_or(|first| first > marked) {
            return None;
        }
        self.marked = None;
        let message = self.choices().filter(|message| message.seq <= marked).last()?.clone();
        self.list.choose(&message.seq.to_string());
        Some(message)
    }

    fn mean(&mut self, message: Message) -> Outcome {
        match self.what {
            For::Branch => Outcome::Opened(Box::new(Branch::form(&self.row, &self.name, self.up_to(&message)))),
            For::Cut => {
                let confirm = Confirm::new(format!("Cut \"{}\"?", self.row.name), Vec::new(), "Cut");
                self.cutting = Some((message, confirm));
                Outcome::Taken
            }
        }
    }

    fn up_to(&self, message: &Message) -> UpTo {
        let count = self.span.messages().iter().filter(|other| other.seq < message.seq).count() as u64;
        let said = |n: u64| {
            let more = if self.span.is_older { "more than " } else { "" };
            format!("{more}{}", plural(n, "message"))
        };
        let text = named(&message.text);
        let says = match (message.is_user, count) {
            (true, 0) if !self.span.is_older => {
                format!("It is your first message, \"{text}\": nothing stands before it. It comes into the prompt.")
            }
            (true, n) => format!(
                "Copied is what stands before your message \"{text}\": {}. The message comes into the prompt.",
                said(n)
            ),
            (false, n) => format!("Copied is everything up to and with the answer \"{text}\": {}.", said(n + 1)),
        };
        UpTo { seq: self.span.copy_to(message), says, draft: message.whole.clone().filter(|text| !text.is_empty()) }
    }

    /// What a cut would remove, by what is known now.
    fn what_goes(&self, message: &Message, sight: Sight<'_>) -> Vec<(String, Look)> {
        let tail = self.span.tail(message);
        let mut body = vec![
            (format!("Your message \"{}\" and everything behind it goes:", named(&message.text)), Look::Text),
            (
                format!(
                    "{} of yours, {}, {}; {} in all.",
                    plural(tail.users, "message"),
                    plural(tail.answers, "answer"),
                    plural(tail.calls, "call"),
                    plural(tail.events, "event")
                ),
                Look::Warn,
            ),
        ];
        let view = sight.face.view.as_ref().filter(|view| view.row.id == self.row.id);
        let open: Vec<&str> = view
            .iter()
            .flat_map(|view| &view.proposals)
            .filter(|path| tail.proposed.contains(*path))
            .map(String::as_str)
            .collect();
        if !open.is_empty() {
            let paths = some_paths(open.into_iter(), &self.row.folder);
            body.push((format!("What was proposed there goes too: {paths}."), Look::Warn));
        }
        if view.is_some_and(|view| view.run.is_some()) {
            body.push(("A run goes on; it has to be stopped first.".into(), Look::Bad));
        }
        body.push((
            "Files stay as they are. It cannot be brought back; /branch first keeps a copy.".into(),
            Look::Text,
        ));
        body
    }

    fn cut_done(&mut self, answer: Result<Answer, ApiError>, cx: &mut Cx<'_>) -> Outcome {
        let Some((message, confirm)) = &mut self.cutting else { return Outcome::Taken };
        match answer {
            Ok(answer) => {
                let removed = if let Answer::Cut(done) = &answer { done.removed } else { 0 };
                let vacuum = matches!(&answer, Answer::Cut(done) if done.suggest_vacuum);
                let hint = if vacuum { " /vacuum would make the database smaller." } else { "" };
                cx.say(format!("{} gone; the message is in the prompt.{hint}", are(removed)));
                if let Some(text) = message.whole.take().filter(|text| !text.is_empty()) {
                    cx.push(Effect::Draft(self.row.id.clone(), text));
                }
                Outcome::Closed
            }
            Err(error) => {
                confirm.refuse(format!("It could not be cut: {error}"));
                Outcome::Taken
            }
        }
    }
}

fn are(events: u64) -> String {
    format!("{} {}", plural(events, "event"), if events == 1 { "is" } else { "are" })
}

/// A message as a sentence names it.
fn named(text: &str) -> String {
    cut_to(&super::parts::line(text.lines().next().unwrap_or_default()), NAMED)
}

impl Layer for Messages {
    fn handle(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Outcome {
        if let Input::News(news) = input {
            news.iter().filter(|event| event.session.as_ref() == Some(&self.row.id)).for_each(|e| self.span.hear(e));
            self.show();
            return Outcome::Passed;
        }
        if let Some((message, confirm)) = &mut self.cutting {
            match confirm.handle(input, action) {
                Decided::Passed => return Outcome::Passed,
                Decided::Taken => {}
                Decided::No => self.cutting = None,
                Decided::Yes => {
                    let ticket = cx.ask(Request::Cut(self.row.id.clone(), message.seq));
                    confirm.wait(ticket, "cutting");
                }
            }
            return Outcome::Taken;
        }
        if action == Some(Action::Abort) {
            return Outcome::Closed;
        }
        let outcome = match self.list.handle(input, action) {
            Said::Passed => return Outcome::Passed,
            Said::Taken | Said::Query => Outcome::Taken,
            Said::Picked(id) if id == ALL => {
                Outcome::Opened(Box::new(Branch::form(&self.row, &self.name, UpTo::default())))
            }
            Said::Picked(id) => {
                let picked = self.choices().find(|message| message.seq.to_string() == id).cloned();
                picked.map_or(Outcome::Taken, |message| self.mean(message))
            }
        };
        self.marked = None;
        self.read_on(cx);
        outcome
    }

    fn answer(&mut self, ticket: Ticket, answer: Result<Answer, ApiError>, cx: &mut Cx<'_>) -> Outcome {
        if self.cutting.as_mut().is_some_and(|(_, confirm)| confirm.is_for(ticket)) {
            return self.cut_done(answer, cx);
        }
        if self.asked.take_if(|asked| *asked == ticket).is_none() {
            return Outcome::Passed;
        }
        match answer {
            Ok(Answer::Page(page)) => {
                self.span.prepend(&page);
                self.show();
                if let Some(message) = self.take_marked() {
                    return self.mean(message);
                }
                self.read_on(cx);
            }
            Ok(_) => {}
            Err(error) => self.failure = Some(format!("The messages cannot be read: {error}")),
        }
        Outcome::Taken
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) -> Option<Position> {
        let title = match self.what {
            For::Cut => format!("Cut \"{}\" from which message on?", self.row.name),
            For::Branch => format!("Copy \"{}\" up to which message?", self.row.name),
        };
        let inner = frame(area, buf, sight, &title);
        let empty = match (&self.failure, self.span.is_read()) {
            (Some(failure), _) => failure.clone(),
            (None, true) if self.asked.is_none() => "Nothing was said in this session yet.".into(),
            _ => asking(sight).into(),
        };
        let cursor = self.list.draw(inner, buf, &empty, sight);
        let body = self.cutting.as_ref().map(|(message, _)| self.what_goes(message, sight));
        let (Some(body), Some((_, confirm))) = (body, &mut self.cutting) else { return cursor };
        confirm.set_body(body);
        confirm.draw(area, buf, sight);
        None
    }

    fn takes_text(&self) -> bool {
        self.cutting.is_none()
    }

    fn hint(&self, sight: Sight<'_>) -> String {
        if let Some((_, confirm)) = &self.cutting {
            return confirm.hint(sight);
        }
        let key = |action| sight.keys.hint(action);
        let does = if self.what == For::Cut { "says what goes" } else { "names the copy" };
        format!("{} {does} · type to filter · {} leaves it", key(Action::Submit), key(Action::Abort))
    }

    fn name(&self) -> &'static str {
        match self.what {
            For::Cut => "cut",
            For::Branch => "branch",
        }
    }
}
