//! Plain mode: lines in, lines out, nothing that moves; for screen readers, pipes and terminals that can do no more.
//!
//! A line that is typed is a message. Lines that begin with a slash do what the face's commands do, as far as that makes
//! sense in lines. At the end of the input it waits until nothing runs any more.

mod say;

use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};

use hames_protocol::api::{
    Abort, AbortScope, AnswerApproval, AnswerQuestion, CreateSession, DecideProposals, ProposalsDecision, SendMessage,
    Waiting,
};
use hames_protocol::{Decision, Delivery, Envelope, Event, Mode, Part, PendingId, RunResult, SessionId, Settings};
use tokio::sync::mpsc;

use crate::io::Io;
use crate::{Answer, Input, Link, Options, Request, Ticket};
pub(crate) use say::Saying;

/// Bytes of one line of the input.
const MAX_LINE: usize = 16 * 1024 * 1024;
/// Events of the log that are said again when a session is gone on with.
const LOOK_BACK: u32 = 100;
const HELP: &str = "A line is a message. While the agent works: /steer TEXT joins its next step, /now TEXT is heard at once, any other line waits. \
/stop stops it. /mode analyze or /mode build. When you are asked: yes, no, session, folder, or an answer. /quit leaves.";

/// How plain mode ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainEnd {
    /// Lines that were typed.
    pub lines: u64,
    /// Whether everything that was asked for came to its end.
    pub is_well: bool,
}

/// Runs plain mode until its input ends and nothing runs any more, or somebody leaves.
pub async fn run(options: Options) -> io::Result<PlainEnd> {
    let (typed_by, mut typed) = mpsc::channel(16);
    // Nothing waits for this thread: it ends with the process, or with its input.
    std::thread::Builder::new().name("lines".into()).spawn(move || read_lines(&typed_by))?;
    let folder = options.folder.display().to_string();
    let (io, mut heard) = Io::start(options.finder, options.home, options.folder);
    let mut plain = Plain {
        io,
        folder,
        start: options.start,
        session: None,
        saying: Saying::default(),
        newest: 0,
        tickets: 0,
        messages: 0,
        chosen: Settings::default(),
        waiting: None,
        unsent: Vec::new(),
        is_ready: false,
        is_busy: false,
        pending: BTreeSet::new(),
        is_paused: false,
        on_way: 0,
        input_ended: false,
        is_over: false,
        is_well: true,
        lines: 0,
    };
    while !plain.is_over {
        tokio::select! {
            biased;
            input = heard.recv() => match input {
                Some(input) => plain.hear(input)?,
                None => break,
            },
            line = typed.recv(), if plain.is_ready && !plain.input_ended => match line {
                Some(line) => {
                    plain.lines += 1;
                    plain.line(&line)?;
                }
                None => plain.input_ended = true,
            },
        }
        let waits = !plain.pending.is_empty() && !plain.is_paused;
        plain.is_over |= plain.input_ended && plain.is_ready && !plain.is_busy && !waits && plain.on_way == 0;
    }
    Ok(PlainEnd { lines: plain.lines, is_well: plain.is_well && plain.pending.is_empty() })
}

/// What waits where nothing does.
fn nothing() -> Waiting {
    Waiting { approvals: Vec::new(), questions: Vec::new(), proposals: None }
}

fn read_lines(typed: &mpsc::Sender<String>) {
    let mut input = io::stdin().lock();
    loop {
        let mut line = Vec::new();
        match io::Read::take(&mut input, MAX_LINE as u64).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if typed.blocking_send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_err() {
            return;
        }
    }
}

struct Plain {
    io: Io,
    folder: String,
    start: crate::Start,
    session: Option<SessionId>,
    saying: Saying,
    newest: u64,
    tickets: u64,
    messages: u64,
    chosen: Settings,
    waiting: Option<Waiting>,
    /// Lines that were typed while their session was being made.
    unsent: Vec<SendMessage>,
    /// Whether it is known which session is meant.
    is_ready: bool,
    is_busy: bool,
    /// Messages that wait, and whether they stand still.
    pending: BTreeSet<PendingId>,
    is_paused: bool,
    /// Requests that are not answered.
    on_way: u32,
    input_ended: bool,
    is_over: bool,
    is_well: bool,
    lines: u64,
}

impl Plain {
    fn say(&self, lines: &[String]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        for line in lines {
            writeln!(out, "{line}")?;
        }
        out.flush()
    }

    fn tell(&self, line: impl Into<String>) -> io::Result<()> {
        self.say(&[format!("-- {}", line.into())])
    }

    fn ask(&mut self, request: Request) {
        self.tickets += 1;
        self.on_way += 1;
        self.io.ask(Ticket(self.tickets), request, true);
    }

    fn hear(&mut self, input: Input) -> io::Result<()> {
        match input {
            Input::Link(Link::Up { notice }) => {
                if let Some(notice) = notice {
                    self.tell(notice)?;
                }
                if !self.is_ready {
                    self.ask(Request::Sessions(Some(self.folder.clone())));
                }
                Ok(())
            }
            Input::Link(Link::Stopped) => self.tell("the server was stopped; your next line starts it again"),
            Input::Link(Link::Lost(why)) => self.tell(format!("the server is gone ({why}); connecting again")),
            Input::News(news) => {
                let mut lines = Vec::new();
                for envelope in &news {
                    self.newest = envelope.seq.unwrap_or(0).max(self.newest);
                    self.saying.see(envelope, &mut lines);
                    self.note(envelope);
                    match envelope.event {
                        Event::RunDone(ref done) if envelope.agent.is_empty() => {
                            self.is_well &= done.result != RunResult::Error;
                            self.look_for_questions();
                        }
                        // The next line may be the answer already.
                        Event::ApprovalAsked(ref asked) => {
                            self.waiting.get_or_insert_with(nothing).approvals.push(asked.clone());
                            self.look_for_questions();
                        }
                        Event::QuestionAsked(ref asked) => {
                            self.waiting.get_or_insert_with(nothing).questions.push(asked.clone());
                            self.look_for_questions();
                        }
                        Event::ApprovalAnswered(_) | Event::QuestionAnswered(_) => self.waiting = None,
                        _ => {}
                    }
                }
                self.say(&lines)
            }
            Input::Resync => {
                // The log has everything behind what was said; the open block is said again, whole.
                self.saying = Saying::default();
                if let Some(session) = self.session.clone() {
                    self.io.watch(session, self.newest);
                }
                Ok(())
            }
            Input::Gone(why) => {
                self.is_over = true;
                self.is_well = false;
                self.tell(format!("the session cannot be watched any more: {why}"))
            }
            Input::Reply(_, answer) => {
                self.on_way = self.on_way.saturating_sub(1);
                match answer {
                    Ok(answer) => self.answered(answer),
                    Err(error) => {
                        self.is_well = false;
                        self.is_ready = true;
                        self.say(&[format!("! {error}")])
                    }
                }
            }
            _ => Ok(()),
        }
    }

    /// Whether anything runs or waits.
    fn note(&mut self, envelope: &Envelope) {
        if !envelope.agent.is_empty() {
            return;
        }
        match &envelope.event {
            Event::RunStart(_) => self.is_busy = true,
            Event::RunDone(_) => self.is_busy = false,
            Event::PendingAdded(pending) => {
                self.pending.insert(pending.id.clone());
            }
            Event::PendingCancelled(cancelled) => {
                self.pending.remove(&cancelled.id);
            }
            Event::MessageUser(message) => {
                if let Some(id) = &message.pending_id {
                    self.pending.remove(id);
                }
            }
            Event::PendingPaused(paused) => self.is_paused = paused.paused,
            _ => {}
        }
    }

    fn look_for_questions(&mut self) {
        if let Some(session) = self.session.clone() {
            self.ask(Request::Waiting(session));
        }
    }

    fn answered(&mut self, answer: Answer) -> io::Result<()> {
        match answer {
            Answer::Sessions(sessions) => {
                let wanted = self.start.session.clone();
                let is_it = |name: &str, id: &SessionId| match &wanted {
                    Some(wanted) => name.to_lowercase() == wanted.to_lowercase() || id.as_str() == wanted,
                    None => self.start.last,
                };
                let found = sessions.sessions.iter().find(|row| is_it(&row.name, &row.id));
                match found {
                    Some(row) => {
                        let (id, name) = (row.id.clone(), row.name.clone());
                        self.tell(format!("session {name}"))?;
                        self.session = Some(id.clone());
                        self.ask(Request::Page { session: id, before: None, limit: LOOK_BACK });
                    }
                    None => {
                        self.is_ready = true;
                        self.tell("a new session; /help says what can be typed")?;
                    }
                }
                Ok(())
            }
            Answer::Page(page) => {
                let mut lines = Vec::new();
                if page.older {
                    lines.push("-- what was said before is left out".into());
                }
                for envelope in &page.events {
                    self.newest = envelope.seq.unwrap_or(0).max(self.newest);
                    self.saying.see(envelope, &mut lines);
                    self.note(envelope);
                }
                self.is_ready = true;
                if let Some(session) = self.session.clone() {
                    self.io.watch(session, self.newest);
                    self.look_for_questions();
                }
                self.say(&lines)
            }
            Answer::View(view) if self.session.is_none() => {
                let id = view.row.id.clone();
                self.session = Some(id.clone());
                self.io.watch(id.clone(), 0);
                for message in std::mem::take(&mut self.unsent) {
                    self.ask(Request::Send(id.clone(), message));
                }
                Ok(())
            }
            Answer::Sent(sent) => {
                // What was heard already knows better.
                if sent.seq > self.newest {
                    self.pending.insert(sent.pending_id);
                }
                Ok(())
            }
            Answer::Aborted(aborted) => {
                let text = |part: &Part| match part {
                    Part::Text { text } => text.clone(),
                    Part::Image { .. } => "[image]".into(),
                };
                let returned = aborted.returned.iter().flat_map(|pending| pending.parts.iter().map(text));
                let lines: Vec<String> = returned.map(|text| format!("-- not heard by the model: {text}")).collect();
                self.say(&lines)
            }
            Answer::Waiting(waiting) => {
                if let Some(proposals) = &waiting.proposals {
                    self.tell(format!("proposed: {}; apply, build, keep or discard?", proposals.paths.join(", ")))?;
                }
                let is_any =
                    !waiting.approvals.is_empty() || !waiting.questions.is_empty() || waiting.proposals.is_some();
                self.waiting = is_any.then_some(waiting);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match (word, rest.trim()) {
            ("", _) => Ok(()),
            ("/help", _) => self.tell(HELP),
            ("/quit", _) => {
                self.is_over = true;
                Ok(())
            }
            ("/stop", how) => {
                let scope = if how == "--all" { AbortScope::All } else { AbortScope::Foreground };
                match self.session.clone() {
                    Some(session) => self.ask(Request::Abort(session, Abort { scope, exit_code: None })),
                    None => return self.tell("there is nothing to stop"),
                }
                Ok(())
            }
            ("/mode", mode) => match mode.parse::<Mode>() {
                Ok(mode) => {
                    let change = Settings { mode: Some(mode), ..Settings::default() };
                    match self.session.clone() {
                        Some(session) => self.ask(Request::ChangeSettings(session, Box::new(change), Vec::new())),
                        None => self.chosen = self.chosen.patched(&change),
                    }
                    self.tell(format!("{} from the next run on", crate::app::name_of(mode)))
                }
                Err(_) => self.tell("the modes are analyze and build"),
            },
            ("/steer", text) if !text.is_empty() => self.send(text, Delivery::Steer),
            ("/now", text) if !text.is_empty() => self.send(text, Delivery::Interrupt),
            _ if self.waiting.is_some() => self.answer(line),
            (word, _) if word.starts_with('/') && word[1..].chars().all(char::is_alphabetic) && word.len() > 1 => self
                .tell(format!(
                    "there is no {word}; /help lists what there is, and a blank before it makes it a message"
                )),
            _ => self.send(line, Delivery::Queue),
        }
    }

    fn send(&mut self, text: &str, delivery: Delivery) -> io::Result<()> {
        self.messages += 1;
        let message = SendMessage {
            parts: vec![Part::text(text)],
            delivery,
            idempotency_id: Some(format!("{}-{}", self.start.seed, self.messages)),
            terms: self.start.terms.clone(),
        };
        match self.session.clone() {
            Some(session) => self.ask(Request::Send(session, message)),
            None => {
                self.unsent.push(message);
                if self.unsent.len() == 1 {
                    self.ask(Request::Create(CreateSession {
                        folder: self.folder.clone(),
                        name: self.start.session.clone(),
                        settings: self.chosen.clone(),
                    }));
                }
            }
        }
        Ok(())
    }

    /// An answer to what was asked last.
    fn answer(&mut self, line: &str) -> io::Result<()> {
        let (Some(waiting), Some(session)) = (self.waiting.take(), self.session.clone()) else { return Ok(()) };
        let word = line.trim().to_lowercase();
        let by = Some("terminal".to_owned());
        if let Some(asked) = waiting.approvals.first() {
            let decision = match word.as_str() {
                "yes" | "y" => Decision::Once,
                "no" | "n" => Decision::Deny,
                "session" if !asked.grants.is_empty() => Decision::Session,
                "folder" if !asked.grants.is_empty() => Decision::Folder,
                _ => {
                    let more = if asked.grants.is_empty() { "" } else { ", session or folder" };
                    self.waiting = Some(waiting);
                    return self.tell(format!("a call waits: answer yes, no{more}"));
                }
            };
            let answer = AnswerApproval { digest: asked.digest.clone(), decision, by };
            self.ask(Request::AnswerApproval(session, asked.call_id.clone(), answer));
        } else if let Some(asked) = waiting.questions.first() {
            let chosen = word.parse::<usize>().ok().and_then(|n| asked.choices.get(n.checked_sub(1)?));
            let answer = chosen.cloned().unwrap_or_else(|| line.trim().to_owned());
            let answer = AnswerQuestion { digest: Some(asked.digest.clone()), answer, by };
            self.ask(Request::AnswerQuestion(session, asked.call_id.clone(), answer));
        } else if let Some(asked) = &waiting.proposals {
            let decision = match word.as_str() {
                "apply" => ProposalsDecision::Apply,
                "build" => ProposalsDecision::Build,
                "keep" => ProposalsDecision::Keep,
                "discard" => ProposalsDecision::Discard,
                // A new message leaves them as they are.
                _ => return self.send(line, Delivery::Queue),
            };
            self.ask(Request::DecideProposals(session, DecideProposals { run: asked.run.clone(), decision }));
        }
        Ok(())
    }
}
