//! What waits for a person: a call that has to be decided about, a question, proposals of a run that ended.
//!
//! It comes up while somebody may be typing. So nothing that is typed in its first moment decides, nothing pasted ever does,
//! and an answer is bound to what was shown.

use hames_protocol::api::{
    AnswerApproval, AnswerQuestion, DecideProposals, ProposalsAsked, ProposalsDecision, Waiting,
};
use hames_protocol::{ApprovalAsked, Decision, Grant, QuestionAsked};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Clear, Paragraph, Widget, Wrap};

use crate::{Action, Cx, Input, Layer, Outcome, Request, Sight};

pub(super) const NAME: &str = "decide";
/// Milliseconds in which what was typed was meant for the prompt.
const UNMEANT: u64 = 600;
/// By whom, in the log.
const BY: &str = "terminal";

/// One of the things that wait.
#[derive(Debug)]
enum Asked {
    Approval(Box<ApprovalAsked>),
    Question(Box<QuestionAsked>, String),
    Proposals(ProposalsAsked),
}

/// Asks about one after the other.
#[derive(Debug)]
pub(super) struct Decide {
    asked: Vec<Asked>,
    since: Option<u64>,
    scroll: u16,
}

impl Decide {
    /// Of what waits, if anything does.
    pub(super) fn of(waiting: &Waiting) -> Option<Self> {
        let approvals = waiting.approvals.iter().map(|asked| Asked::Approval(Box::new(asked.clone())));
        let questions = waiting.questions.iter().map(|asked| Asked::Question(Box::new(asked.clone()), String::new()));
        let proposals = waiting.proposals.iter().cloned().map(Asked::Proposals);
        let asked: Vec<Asked> = approvals.chain(questions).chain(proposals).collect();
        (!asked.is_empty()).then_some(Self { asked, since: None, scroll: 0 })
    }

    /// What a key answers.
    fn answer(&mut self, code: KeyCode, cx: &mut Cx<'_>) -> bool {
        let Some(session) = cx.face.session.clone() else { return false };
        let request = match self.asked.first_mut() {
            Some(Asked::Approval(asked)) => {
                let decision = match code {
                    KeyCode::Char('y') => Decision::Once,
                    KeyCode::Char('s') if !asked.grants.is_empty() => Decision::Session,
                    KeyCode::Char('f') if !asked.grants.is_empty() => Decision::Folder,
                    KeyCode::Char('n') => Decision::Deny,
                    _ => return false,
                };
                let answer = AnswerApproval { digest: asked.digest.clone(), decision, by: Some(BY.into()) };
                Request::AnswerApproval(session, asked.call_id.clone(), answer)
            }
            Some(Asked::Question(asked, text)) => {
                let answer = match code {
                    KeyCode::Char(c) if !asked.choices.is_empty() => {
                        let at = c.to_digit(10).and_then(|n| n.checked_sub(1));
                        let Some(choice) = at.and_then(|at| asked.choices.get(at as usize)) else { return false };
                        choice.clone()
                    }
                    KeyCode::Char(c) => {
                        text.push(c);
                        return false;
                    }
                    KeyCode::Backspace => {
                        text.pop();
                        return false;
                    }
                    KeyCode::Enter if !text.trim().is_empty() => std::mem::take(text),
                    _ => return false,
                };
                let answer = AnswerQuestion { digest: Some(asked.digest.clone()), answer, by: Some(BY.into()) };
                Request::AnswerQuestion(session, asked.call_id.clone(), answer)
            }
            Some(Asked::Proposals(asked)) => {
                let decision = match code {
                    KeyCode::Char('a') => ProposalsDecision::Apply,
                    KeyCode::Char('b') => ProposalsDecision::Build,
                    KeyCode::Char('k') => ProposalsDecision::Keep,
                    KeyCode::Char('d') => ProposalsDecision::Discard,
                    _ => return false,
                };
                Request::DecideProposals(session, DecideProposals { run: asked.run.clone(), decision })
            }
            None => return false,
        };
        cx.ask(request);
        true
    }

    fn text(&self, sight: Sight<'_>) -> (String, Text<'static>) {
        let mut lines: Vec<Line<'static>> = Vec::new();
        let title = match self.asked.first() {
            Some(Asked::Approval(asked)) => {
                lines.push(Line::styled(shown(&asked.reason), sight.theme.warn()));
                lines.extend(input_lines(&asked.input));
                if let Some(diff) = &asked.diff {
                    lines.push(Line::default());
                    lines.extend(diff.text.lines().map(|line| match line.as_bytes().first() {
                        Some(b'+') => Line::styled(shown(line), sight.theme.good()),
                        Some(b'-') => Line::styled(shown(line), sight.theme.bad()),
                        _ => Line::raw(shown(line)),
                    }));
                }
                for grant in &asked.grants {
                    lines.push(Line::styled(
                        format!("could be allowed from now on: {}", shown(&words(grant))),
                        sight.theme.dim(),
                    ));
                }
                format!(" May this run? {} {} ", asked.label.tool, shown(&asked.label.target))
            }
            Some(Asked::Question(asked, text)) => {
                lines.extend(asked.text.lines().map(|line| Line::raw(shown(line))));
                for (at, choice) in asked.choices.iter().enumerate() {
                    lines.push(Line::raw(format!("{}  {}", at + 1, shown(choice))));
                }
                if asked.choices.is_empty() {
                    lines.push(Line::styled(format!("> {}", shown(text)), sight.theme.user()));
                }
                " The agent asks ".into()
            }
            Some(Asked::Proposals(asked)) => {
                lines.extend(asked.paths.iter().map(|path| Line::raw(shown(path))));
                " The run has ended and proposes changes to ".into()
            }
            None => String::new(),
        };
        (title, Text::from(lines))
    }
}

/// What will run, member by member, with control characters visible.
fn input_lines(input: &serde_json::Value) -> Vec<Line<'static>> {
    let serde_json::Value::Object(members) = input else { return vec![Line::raw(shown(&input.to_string()))] };
    let mut out = Vec::new();
    for (name, value) in members {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let mut rest = text.split('\n');
        out.push(Line::raw(format!("{name}: {}", shown(rest.next().unwrap_or_default()))));
        out.extend(rest.map(|line| Line::raw(format!("  {}", shown(line)))));
    }
    out
}

/// What a grant would allow.
fn words(grant: &Grant) -> String {
    match grant {
        Grant::Path { path, write: true } => format!("reading and changing {path}"),
        Grant::Path { path, write: false } => format!("reading {path}"),
        Grant::Command { words } => format!("the command {}", words.join(" ")),
        Grant::Host { host } => format!("the host {host}"),
        Grant::Tool { name } => format!("every {name}"),
    }
}

/// Text in which nothing hides: control characters and those that turn the direction are written out.
pub(crate) fn shown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let hides = matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
        match c {
            '\t' => out.push_str("\\t"),
            '\u{1b}' => out.push_str("\\e"),
            c if c.is_control() || hides => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

impl Layer for Decide {
    fn handle(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Outcome {
        let since = *self.since.get_or_insert(cx.now);
        match (action, input) {
            (Some(Action::PageUp), _) => self.scroll = self.scroll.saturating_sub(5),
            (Some(Action::PageDown), _) => self.scroll = self.scroll.saturating_add(5),
            (Some(Action::Abort), _) => {
                cx.say("It still waits; it comes up again with the session, and another client can answer too.");
                return Outcome::Closed;
            }
            (None | Some(Action::Submit), Input::Key(key)) => {
                let is_bare = (key.modifiers - KeyModifiers::SHIFT).is_empty();
                if cx.now.saturating_sub(since) >= UNMEANT && is_bare && self.answer(key.code, cx) {
                    self.asked.remove(0);
                    self.scroll = 0;
                    self.since = Some(cx.now);
                    if self.asked.is_empty() {
                        return Outcome::Closed;
                    }
                }
            }
            (None, Input::Paste(pasted)) => {
                if let Some(Asked::Question(asked, text)) = self.asked.first_mut()
                    && asked.choices.is_empty()
                {
                    text.push_str(pasted);
                }
            }
            _ => return Outcome::Passed,
        }
        Outcome::Taken
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) -> Option<Position> {
        if area.is_empty() {
            return None;
        }
        self.since.get_or_insert(sight.now);
        let (title, text) = self.text(sight);
        let wanted = (text.height() as u16).saturating_add(4).max(area.height / 2);
        let height = wanted.min(area.height);
        let place = Rect { y: area.bottom() - height, height, ..area };
        Clear.render(place, buf);
        let block = Block::bordered().border_style(sight.theme.warn()).title(title);
        let inner = block.inner(place);
        block.render(place, buf);
        Paragraph::new(text).wrap(Wrap { trim: false }).scroll((self.scroll, 0)).render(inner, buf);
        None
    }

    fn hint(&self, sight: Sight<'_>) -> String {
        let more = match self.asked.len() {
            0 | 1 => String::new(),
            n => format!(" · {} more", n - 1),
        };
        let later = sight.keys.hint(Action::Abort);
        match self.asked.first() {
            Some(Asked::Approval(asked)) if asked.grants.is_empty() => {
                format!("y yes, this once · n no · {later} later{more}")
            }
            Some(Asked::Approval(_)) => {
                format!("y this once · s this session · f this folder · n no · {later} later{more}")
            }
            Some(Asked::Question(asked, _)) if asked.choices.is_empty() => {
                format!("Enter answers · {later} later{more}")
            }
            Some(Asked::Question(..)) => format!("a number answers · {later} later{more}"),
            Some(Asked::Proposals(_)) => {
                format!("a apply · b go on in Build · k keep · d discard · {later} later{more}")
            }
            None => String::new(),
        }
    }

    fn name(&self) -> &'static str {
        NAME
    }
}
