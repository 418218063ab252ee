//! What waits for a person: a call that has to be decided about, a question, proposals of a run that ended.
//!
//! It comes up while somebody may be typing. So nothing decides until nobody has typed for a moment, and what is typed until
//! then goes to the prompt it was meant for; nothing pasted ever decides; and an answer is bound to what was shown. What
//! another client answers goes from here, and what is being written into an answer stays whatever else is asked.

mod show;
#[cfg(test)]
mod tests;

use hames_protocol::api::{
    AnswerApproval, AnswerQuestion, ApiError, ApiErrorCode, DecideProposals, ProposalsAsked, ProposalsDecision, Waiting,
};
use hames_protocol::{ApprovalAsked, Decision, QuestionAsked};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};
use ratatui::layout::{Position, Rect};

use super::changes::relative;
use super::parts::{Edited, Field, Look, Scroll, foot, frame_in, line};
use crate::prompt::paint::Line;
use crate::{Action, Answer, Cx, Input, Layer, Outcome, Request, Sight, Ticket};
use show::shown;

pub(super) const NAME: &str = "decide";
/// Milliseconds without a key after which keys are meant for this.
const UNMEANT: u64 = 600;
/// By whom, in the log.
const BY: &str = "terminal";
/// Bytes of an answer that is written.
const MAX_ANSWER: usize = 256 * 1024;

/// One of the things that wait.
#[derive(Debug)]
enum Asked {
    Approval(Box<ApprovalAsked>),
    /// A question, what is written as its answer, and which choice is marked.
    Question(Box<QuestionAsked>, Field, usize),
    Proposals(ProposalsAsked),
}

impl Asked {
    /// Everything that waits.
    fn all(waiting: &Waiting) -> impl Iterator<Item = Asked> {
        let approvals = waiting.approvals.iter().map(|asked| Asked::Approval(Box::new(asked.clone())));
        let questions = waiting
            .questions
            .iter()
            .map(|asked| Asked::Question(Box::new(asked.clone()), Field::new("").up_to(MAX_ANSWER), 0));
        approvals.chain(questions).chain(waiting.proposals.iter().cloned().map(Asked::Proposals))
    }

    /// What it is, and what was shown of it.
    fn id(&self) -> (&str, &str) {
        match self {
            Asked::Approval(asked) => (asked.call_id.as_str(), &asked.digest),
            Asked::Question(asked, ..) => (asked.call_id.as_str(), &asked.digest),
            Asked::Proposals(asked) => (asked.run.as_str(), ""),
        }
    }
}

/// Asks about one after the other.
#[derive(Debug)]
pub(super) struct Decide {
    asked: Vec<Asked>,
    /// When this came up, or somebody typed last.
    since: Option<u64>,
    text: Scroll,
    /// What is in it is of something else.
    is_stale: bool,
    /// The answer is on its way: who tells of it, and what it answers.
    sent: Option<(Ticket, String)>,
    /// Why the last answer was not taken.
    wrong: Option<String>,
}

impl Decide {
    /// Of what waits, if anything does.
    pub(super) fn of(waiting: &Waiting) -> Option<Self> {
        let asked: Vec<Asked> = Asked::all(waiting).collect();
        (!asked.is_empty()).then(|| Self {
            asked,
            since: None,
            text: Scroll::default(),
            is_stale: true,
            sent: None,
            wrong: None,
        })
    }

    /// The first of those that wait is another one.
    fn turn(&mut self, now: Option<u64>) {
        self.since = now;
        self.text = Scroll::default();
        self.is_stale = true;
        self.wrong = None;
    }

    /// What a key answers.
    fn request(&self, code: KeyCode, cx: &Cx<'_>) -> Option<Request> {
        let session = cx.face.session.clone()?;
        Some(match self.asked.first()? {
            Asked::Approval(asked) => {
                let decision = match code {
                    KeyCode::Char('y') => Decision::Once,
                    KeyCode::Char('s') if !asked.grants.is_empty() => Decision::Session,
                    KeyCode::Char('f') if !asked.grants.is_empty() => Decision::Folder,
                    KeyCode::Char('n') => Decision::Deny,
                    _ => return None,
                };
                let answer = AnswerApproval { digest: asked.digest.clone(), decision, by: Some(BY.into()) };
                Request::AnswerApproval(session, asked.call_id.clone(), answer)
            }
            Asked::Question(asked, field, chosen) => {
                let answer = match (code, asked.choices.as_slice()) {
                    (KeyCode::Enter, []) => Some(field.text()).filter(|text| !text.trim().is_empty())?,
                    (KeyCode::Enter, choices) => choices.get(*chosen)?,
                    (KeyCode::Char(c), choices) => choices.get((c.to_digit(10)? as usize).checked_sub(1)?)?,
                    _ => return None,
                };
                let (digest, by) = (Some(asked.digest.clone()), Some(BY.into()));
                let answer = AnswerQuestion { digest, answer: answer.to_owned(), by };
                Request::AnswerQuestion(session, asked.call_id.clone(), answer)
            }
            Asked::Proposals(asked) => {
                let decision = match code {
                    KeyCode::Char('a') => ProposalsDecision::Apply,
                    KeyCode::Char('b') => ProposalsDecision::Build,
                    KeyCode::Char('k') => ProposalsDecision::Keep,
                    KeyCode::Char('d') => ProposalsDecision::Discard,
                    _ => return None,
                };
                Request::DecideProposals(session, DecideProposals { run: asked.run.clone(), decision })
            }
        })
    }

    /// The field of an answer that is written.
    fn field(&mut self) -> Option<&mut Field> {
        match self.asked.first_mut()? {
            Asked::Question(asked, field, _) if asked.choices.is_empty() => Some(field),
            _ => None,
        }
    }

    /// Moves among the choices of a question.
    fn choose(&mut self, forward: bool) -> bool {
        let Some(Asked::Question(asked, _, chosen)) = self.asked.first_mut() else { return false };
        let count = asked.choices.len();
        if count > 0 {
            *chosen = (*chosen + if forward { 1 } else { count - 1 }) % count;
        }
        self.is_stale |= count > 0;
        count > 0
    }

    /// The line of the choice that is marked.
    fn marked(&self) -> Option<usize> {
        match self.asked.first()? {
            Asked::Question(asked, _, chosen) if !asked.choices.is_empty() => Some(asked.text.lines().count() + chosen),
            _ => None,
        }
    }

    fn key(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Outcome {
        let Input::Key(key) = input else { return Outcome::Passed };
        if action == Some(Action::Abort) {
            cx.say(format!(
                "It still waits: {} brings it back, and another client can answer too.",
                cx.keys.hint(Action::Decide)
            ));
            return Outcome::Closed;
        }
        let is_bare = (key.modifiers - KeyModifiers::SHIFT).is_empty();
        let types = is_bare && matches!(key.code, KeyCode::Char(_) | KeyCode::Backspace | KeyCode::Enter);
        let since = *self.since.get_or_insert(cx.now);
        if types && cx.now.saturating_sub(since) < UNMEANT {
            self.since = Some(cx.now);
            return Outcome::Passed;
        }
        if self.sent.is_some() {
            return Outcome::Taken;
        }
        match action {
            Some(Action::Previous) if self.choose(false) => return Outcome::Taken,
            Some(Action::Next) if self.choose(true) => return Outcome::Taken,
            None | Some(Action::Submit) if is_bare => {
                if let Some(request) = self.request(key.code, cx) {
                    let id = self.asked.first().map(|asked| asked.id().0.to_owned()).unwrap_or_default();
                    self.wrong = None;
                    self.sent = Some((cx.ask(request), id));
                    return Outcome::Taken;
                }
            }
            _ => {}
        }
        if let Some(field) = self.field()
            && field.handle(input, action) != Edited::Passed
        {
            return Outcome::Taken;
        }
        if self.text.handle(input, action) || action.is_none() || action == Some(Action::Submit) {
            return Outcome::Taken;
        }
        Outcome::Passed
    }

    fn title(&self) -> String {
        match self.asked.first() {
            Some(Asked::Approval(asked)) => {
                format!("May this run? {} {}", shown(&asked.label.tool), shown(&asked.label.target))
            }
            Some(Asked::Question(..)) => "The agent asks".into(),
            Some(Asked::Proposals(_)) => "The run has ended and proposes changes to".into(),
            None => String::new(),
        }
    }

    fn lines(&self, folder: &str) -> Vec<show::Line> {
        match self.asked.first() {
            Some(Asked::Approval(asked)) => show::approval(asked),
            Some(Asked::Question(asked, _, chosen)) => show::question(asked, *chosen),
            Some(Asked::Proposals(asked)) => {
                asked.paths.iter().map(|path| vec![(relative(path, folder), Look::Text)]).collect()
            }
            None => Vec::new(),
        }
    }
}

/// What is asked about a call, for those who read it in lines.
pub(crate) fn approval_lines(asked: &ApprovalAsked) -> Vec<String> {
    let text = |line: show::Line| line.into_iter().map(|(text, _)| text).collect::<String>();
    show::approval(asked).into_iter().map(text).collect()
}

impl Layer for Decide {
    fn handle(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Outcome {
        match input {
            Input::Key(_) => self.key(input, action, cx),
            Input::Paste(_) => {
                let is_meant = self.since.is_some_and(|since| cx.now.saturating_sub(since) >= UNMEANT);
                let is_taken = self
                    .field()
                    .filter(|_| is_meant)
                    .is_some_and(|field| field.handle(input, action) != Edited::Passed);
                if is_taken { Outcome::Taken } else { Outcome::Passed }
            }
            Input::Mouse(_) if self.text.handle(input, action) => Outcome::Taken,
            _ => Outcome::Passed,
        }
    }

    fn answer(&mut self, ticket: Ticket, answer: Result<Answer, ApiError>, cx: &mut Cx<'_>) -> Outcome {
        let Some((_, id)) = self.sent.take_if(|(sent, _)| *sent == ticket) else { return Outcome::Passed };
        if let Err(error) = &answer {
            if !matches!(error.code, ApiErrorCode::Answered | ApiErrorCode::NotFound) {
                self.wrong = Some(format!("Not answered: {}", line(&error.message)));
                return Outcome::Taken;
            }
            cx.say(line(&error.message));
        }
        let is_first = self.asked.first().is_some_and(|asked| asked.id().0 == id);
        self.asked.retain(|asked| asked.id().0 != id);
        if is_first {
            self.turn(Some(cx.now));
        }
        if self.asked.is_empty() { Outcome::Closed } else { Outcome::Taken }
    }

    fn takes_text(&self) -> bool {
        matches!(self.asked.first(), Some(Asked::Question(asked, ..)) if asked.choices.is_empty())
    }

    fn waits(&mut self, waiting: &Waiting) -> bool {
        let first = self.asked.first().map(|asked| (asked.id().0.to_owned(), asked.id().1.to_owned()));
        // What is on the screen stays there, and those that came later come behind it.
        let mut new: Vec<Asked> = Asked::all(waiting).collect();
        self.asked.retain(|old| match new.iter().position(|asked| asked.id() == old.id()) {
            Some(at) => {
                new.remove(at);
                true
            }
            None => false,
        });
        self.asked.append(&mut new);
        let now_first = self.asked.first().map(|asked| (asked.id().0.to_owned(), asked.id().1.to_owned()));
        if now_first != first {
            self.turn(None);
        }
        !self.asked.is_empty()
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) -> Option<Position> {
        if area.is_empty() {
            return None;
        }
        self.since.get_or_insert(sight.now);
        if std::mem::take(&mut self.is_stale) {
            let folder = sight.face.view.as_ref().map_or("", |view| &view.row.folder);
            self.text.set(self.lines(folder));
        }
        let has_field = self.field().is_some();
        let extra = usize::from(has_field) + usize::from(self.wrong.is_some());
        let rows = self.text.rows(area.width.saturating_sub(4), area.height.into()) + extra + 2;
        let height = (rows.max(5) as u16).min(area.height);
        let place = Rect { y: area.bottom() - height, height, ..area };
        let inner = frame_in(place, buf, sight.theme.warn(), &self.title());
        let extra = (extra as u16).min(inner.height.saturating_sub(1));
        let text = Rect { height: inner.height - extra, ..inner };
        self.text.draw(text, buf, sight.theme);
        if let Some(line) = self.marked() {
            self.text.show(line);
            self.text.draw(text, buf, sight.theme);
        }
        if let Some(at) = self.text.place() {
            let more = if self.text.has_more() {
                format!("{at} · {} shows more", sight.keys.hint(Action::PageDown))
            } else {
                at
            };
            foot(place, buf, sight, &more);
        }
        let mut below = Rect { y: text.bottom(), height: extra, ..inner }.rows();
        if let (Some(wrong), Some(row)) = (&self.wrong, below.next()) {
            Line::new(row, 0).put(buf, wrong, sight.theme.bad());
        }
        let row = Rect { y: inner.bottom().saturating_sub(1), height: inner.height.min(1), ..inner };
        let waits = self.sent.is_some();
        let field = self.field()?;
        field.draw(row, buf, "› ", sight).filter(|_| !waits)
    }

    fn hint(&self, sight: Sight<'_>) -> String {
        let later = format!("{} later", sight.keys.hint(Action::Abort));
        let more = match self.asked.len() {
            0 | 1 => String::new(),
            n => format!(" · {} more", n - 1),
        };
        if self.sent.is_some() {
            return format!("answering · {later}{more}");
        }
        let enter = sight.keys.hint(Action::Submit);
        let key = |name: &str| sight.keys.inner(&format!("{NAME}.{name}"));
        match self.asked.first() {
            Some(Asked::Approval(asked)) if asked.grants.is_empty() => {
                format!("{} yes, this once · {} no · {later}{more}", key("once"), key("no"))
            }
            Some(Asked::Approval(_)) => {
                let (once, session, folder, no) = (key("once"), key("session"), key("folder"), key("no"));
                format!("{once} this once · {session} this session · {folder} this folder · {no} no · {later}{more}")
            }
            Some(Asked::Question(asked, ..)) if asked.choices.is_empty() => format!("{enter} answers · {later}{more}"),
            Some(Asked::Question(..)) => {
                format!("{enter} answers with what is marked, a number with that one · {later}{more}")
            }
            Some(Asked::Proposals(_)) => {
                let (apply, build, keep, discard) = (key("apply"), key("build"), key("keep"), key("discard"));
                format!("{apply} apply · {build} go on in Build · {keep} keep · {discard} discard · {later}{more}")
            }
            None => String::new(),
        }
    }

    fn name(&self) -> &'static str {
        NAME
    }
}
