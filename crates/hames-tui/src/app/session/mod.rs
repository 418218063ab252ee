//! Which session is shown, and what is known of it: opened, switched, read, kept true. Its messages are `sending`, its events
//! `hearing`.

mod hearing;
mod sending;

use std::collections::{HashMap, VecDeque};

use hames_protocol::api::{ApiError, ApiErrorCode, SessionActivity, SessionRow, SessionView};
use hames_protocol::{Delivery, Part, Pending, SessionId};

use super::{App, Start};
use crate::{Answer, Cx, Effect, Input, Link, Request, Ticket, layers};
use sending::Message;

/// Events of the first page, and of each older one.
const FIRST_PAGE: u32 = 200;
const OLDER_PAGE: u32 = 500;
/// Events of a page on the way to something that was found far back.
const SEEK_PAGE: u32 = 1_000;
/// What is said of a server that somebody stopped, until there is one again.
const STOPPED: &str = "The server was stopped. It is started again by the next thing you want of it.";

/// What an answer is for.
#[derive(Clone, Debug)]
enum For {
    /// Which sessions the folder has.
    Start,
    View(SessionId),
    FirstPage(SessionId),
    OlderPage(SessionId),
    /// The session that this message begins.
    Create(Option<Message>),
    Send(SessionId, Message),
    Waiting(SessionId),
    /// The same, asked by hand: that there is nothing is worth saying.
    Decide(SessionId),
    Abort(SessionId),
    /// Something else that only matters where it fails.
    Try(&'static str),
}

/// Who asked what, and what is still to be done.
#[derive(Debug)]
pub(super) struct Upkeep {
    start: Start,
    has_begun: bool,
    asked: HashMap<Ticket, For>,
    /// The view was outdated again after it was asked for.
    is_stale: bool,
    is_viewing: bool,
    is_paging: bool,
    /// Messages that wait for the session to be made.
    unsent: VecDeque<Message>,
    is_creating: bool,
    /// Whether it is known which session is meant; messages wait for that.
    is_settled: bool,
    messages: u64,
    /// The name of the session to be made.
    name: Option<String>,
}

impl Upkeep {
    pub(super) fn new(start: Start) -> Self {
        Self {
            start,
            has_begun: false,
            asked: HashMap::new(),
            is_stale: false,
            is_viewing: false,
            is_paging: false,
            unsent: VecDeque::new(),
            is_creating: false,
            is_settled: false,
            messages: 0,
            name: None,
        }
    }
}

impl App {
    fn ask(&mut self, what: For, request: Request, effects: &mut Vec<Effect>) {
        self.next_ticket += 1;
        let ticket = Ticket(self.next_ticket);
        self.upkeep.asked.insert(ticket, what);
        effects.push(Effect::Ask(ticket, Box::new(request)));
    }

    /// Asks for something that only matters where it fails.
    pub(super) fn try_to(&mut self, what: &'static str, request: Request, effects: &mut Vec<Effect>) {
        self.ask(For::Try(what), request, effects);
    }

    /// Stops the run.
    pub(super) fn abort(&mut self, abort: hames_protocol::api::Abort, effects: &mut Vec<Effect>) {
        if let Some(session) = self.face.session.clone() {
            self.ask(For::Abort(session.clone()), Request::Abort(session, abort), effects);
        }
    }

    pub(super) fn linked(&mut self, link: &Link, now: u64, effects: &mut Vec<Effect>) {
        self.face.link = link.clone();
        if *link == Link::Stopped {
            // Its runs have ended with it, whether that was heard or not.
            if let Some(view) = &mut self.face.view {
                view.run = None;
            }
            self.stop.stopped();
            self.face.notice = Some(STOPPED.into());
        }
        let Link::Up { notice } = link else { return };
        // It is there again.
        self.face.notice.take_if(|notice| notice == STOPPED);
        if let Some(notice) = notice {
            self.face.notice = Some(notice.clone());
        }
        if !self.upkeep.has_begun {
            self.upkeep.has_begun = true;
            let folder = self.face.folder.clone();
            self.ask(For::Start, Request::Sessions(Some(folder)), effects);
        } else if self.face.session.is_some() {
            // A server that has just begun knows what its events alone do not say.
            self.look(now, effects);
            self.look_for_questions(effects);
        }
    }

    /// Reads the view again; once, however often it is asked for meanwhile.
    pub(super) fn look(&mut self, _now: u64, effects: &mut Vec<Effect>) {
        let Some(session) = self.face.session.clone() else { return };
        if self.upkeep.is_viewing {
            self.upkeep.is_stale = true;
            return;
        }
        self.upkeep.is_viewing = true;
        self.ask(For::View(session.clone()), Request::View(session), effects);
    }

    fn look_for_questions(&mut self, effects: &mut Vec<Effect>) {
        if let Some(session) = self.face.session.clone() {
            self.ask(For::Waiting(session.clone()), Request::Waiting(session), effects);
        }
    }

    /// Brings up what waits for a person.
    pub(super) fn decide(&mut self, effects: &mut Vec<Effect>) {
        match self.face.session.clone() {
            Some(session) => self.ask(For::Decide(session.clone()), Request::Waiting(session), effects),
            None => self.face.notice = Some("There is no session yet that could ask you something.".into()),
        }
    }

    /// Shows another session, or the beginning of a new one.
    pub(super) fn show(&mut self, session: Option<SessionId>, now: u64, effects: &mut Vec<Effect>) {
        self.keep_folds();
        self.base.clear();
        if let Some(folds) = session.as_ref().and_then(|session| self.folds.get(session)) {
            self.base.talk().recall_folds(folds);
        }
        self.face.session.clone_from(&session);
        self.face.view = None;
        self.layers.clear();
        self.upkeep.name = None;
        self.upkeep.is_viewing = false;
        self.stop.forget();
        effects.push(Effect::Unwatch);
        self.begin_reading(now, effects);
    }

    /// Shows a session at an event; older pages come until it is there.
    pub(super) fn show_at(&mut self, session: SessionId, seq: u64, words: &str, now: u64, effects: &mut Vec<Effect>) {
        if self.face.session.as_ref() == Some(&session) {
            self.layers.clear();
        } else {
            self.show(Some(session), now, effects);
        }
        self.base.talk().seek(seq, words);
        self.want_older(now, effects);
    }

    /// Text comes back into the prompt of a session.
    pub(super) fn draft(&mut self, session: &SessionId, text: String) {
        let id = "back".into();
        let pending =
            Pending { id, parts: vec![Part::text(text)], delivery: Delivery::Interrupt, idempotency_id: None };
        self.base.prompt().take_back(session, vec![pending]);
    }

    /// What is shown may be wrong: everything is read once more.
    pub(super) fn read_again(&mut self, now: u64, effects: &mut Vec<Effect>) {
        effects.push(Effect::Unwatch);
        self.base.talk().forget();
        self.begin_reading(now, effects);
    }

    fn begin_reading(&mut self, now: u64, effects: &mut Vec<Effect>) {
        self.upkeep.is_paging = false;
        let Some(session) = self.face.session.clone() else { return };
        self.look(now, effects);
        let page = Request::Page { session: session.clone(), before: None, limit: FIRST_PAGE };
        self.ask(For::FirstPage(session), page, effects);
        self.look_for_questions(effects);
    }

    pub(super) fn lost_session(&mut self, why: &str, effects: &mut Vec<Effect>) {
        self.face.notice = Some(format!("This session cannot be watched any more: {why}"));
        effects.push(Effect::Unwatch);
    }

    /// Older events, where the conversation is scrolled to its beginning.
    pub(super) fn want_older(&mut self, _now: u64, effects: &mut Vec<Effect>) {
        if self.upkeep.is_paging || !self.base.talk().wants_older() {
            return;
        }
        let (Some(session), Some(before)) = (self.face.session.clone(), self.base.talk().oldest_seq()) else { return };
        self.upkeep.is_paging = true;
        let limit = if self.base.talk().is_seeking() { SEEK_PAGE } else { OLDER_PAGE };
        let page = Request::Page { session: session.clone(), before: Some(before), limit };
        self.ask(For::OlderPage(session), page, effects);
    }

    /// Whether a session will be shown as soon as the server says which.
    pub(super) fn is_session_to_come(&self) -> bool {
        let start = &self.upkeep.start;
        !self.upkeep.is_settled && (start.last || start.session.is_some())
    }

    /// Names the session that the next message makes.
    pub(super) fn new_session(&mut self, name: Option<String>, now: u64, effects: &mut Vec<Effect>) {
        self.show(None, now, effects);
        // Whoever asks for a new one does not go on with another.
        self.face.last = None;
        if let Some(name) = &name {
            self.face.notice = Some(format!("Your first message makes the session \"{name}\"."));
        }
        self.upkeep.name = name;
    }

    pub(super) fn answered(
        &mut self,
        ticket: Ticket,
        answer: &Result<Answer, ApiError>,
        now: u64,
        effects: &mut Vec<Effect>,
    ) {
        let Some(what) = self.upkeep.asked.remove(&ticket) else { return };
        match answer {
            Ok(answer) => self.got(what, answer, now, effects),
            Err(error) => self.failed(what, error, now, effects),
        }
    }

    fn got(&mut self, what: For, answer: &Answer, now: u64, effects: &mut Vec<Effect>) {
        let shown = self.face.session.clone();
        let is_shown = |session: &SessionId| shown.as_ref() == Some(session);
        match (what, answer) {
            (For::Start, Answer::Sessions(sessions)) => {
                self.begin(&sessions.sessions, now, effects);
                self.send_what_waits(effects);
            }
            (For::View(session), Answer::View(view)) if is_shown(&session) => self.viewed(view, now, effects),
            (For::FirstPage(session), Answer::Page(page)) if is_shown(&session) => {
                let after = page.events.iter().filter_map(|envelope| envelope.seq).next_back().unwrap_or(0);
                self.base.begin();
                self.base.talk().prepend(page);
                effects.push(Effect::Watch { session, after });
            }
            (For::OlderPage(session), Answer::Page(page)) if is_shown(&session) => {
                self.upkeep.is_paging = false;
                self.base.begin();
                self.base.talk().prepend(page);
            }
            (For::Create(message), Answer::View(view)) => {
                self.upkeep.is_creating = false;
                let session = view.row.id.clone();
                self.show(Some(session.clone()), now, effects);
                self.face.view = Some((**view).clone());
                let unsent = std::mem::take(&mut self.upkeep.unsent);
                for message in message.into_iter().chain(unsent) {
                    self.base.sending(&message.id, &message.parts);
                    self.send_to(session.clone(), message, effects);
                }
            }
            (For::Send(_, message), _) => self.base.sent(&message.id),
            (For::Waiting(session), Answer::Waiting(waiting)) if is_shown(&session) => {
                layers::ask(&mut self.layers, waiting);
            }
            (For::Decide(session), Answer::Waiting(waiting)) if is_shown(&session) => {
                layers::ask(&mut self.layers, waiting);
                if !layers::asks(&self.layers) {
                    self.face.notice = Some("Nothing waits for your decision.".into());
                }
            }
            (For::Abort(session), Answer::Aborted(aborted)) => {
                if !aborted.returned.is_empty() {
                    self.base.prompt().take_back(&session, aborted.returned.clone());
                    self.face.notice = Some("What the model had not heard yet is back in the prompt.".into());
                }
                self.stop.stopped();
            }
            (For::Try(_), Answer::View(view)) if is_shown(&view.row.id) => self.viewed(view, now, effects),
            _ => {}
        }
    }

    fn failed(&mut self, what: For, error: &ApiError, _now: u64, effects: &mut Vec<Effect>) {
        let said = match what {
            For::Start => {
                self.send_what_waits(effects);
                format!("The sessions of this folder cannot be read: {error}")
            }
            For::View(_) => {
                self.upkeep.is_viewing = false;
                format!("The session cannot be read: {error}")
            }
            For::FirstPage(_) => format!("The conversation cannot be read: {error}"),
            For::OlderPage(_) => {
                self.upkeep.is_paging = false;
                format!("What was said before cannot be read: {error}")
            }
            For::Create(message) => {
                self.upkeep.is_creating = false;
                let unsent = std::mem::take(&mut self.upkeep.unsent);
                for message in message.into_iter().chain(unsent) {
                    self.give_back(None, message);
                }
                format!("No session could be made{}: {error}", set_up(error))
            }
            For::Send(session, message) => {
                self.give_back(Some(session), message);
                format!("Not sent, it is back in the prompt{}: {error}", set_up(error))
            }
            For::Waiting(_) => return,
            For::Decide(_) => format!("What waits cannot be read: {error}"),
            For::Abort(_) => {
                self.stop.stopped();
                // There was nothing to stop any more.
                self.look(0, effects);
                return;
            }
            For::Try(what) => format!("{what}: {error}"),
        };
        self.face.notice = Some(said);
    }

    fn viewed(&mut self, view: &SessionView, now: u64, effects: &mut Vec<Effect>) {
        self.upkeep.is_viewing = false;
        let known = self.face.view.as_ref().map_or(0, |view| view.row.last_seq);
        // Events that came meanwhile know better.
        if view.row.last_seq >= known {
            self.face.view = Some(view.clone());
            if view.run.is_none() {
                self.stop.stopped();
            }
        } else {
            self.upkeep.is_stale = true;
        }
        if std::mem::take(&mut self.upkeep.is_stale) {
            self.look(now, effects);
        }
    }

    /// The folder's sessions are known: one is shown, or offered.
    fn begin(&mut self, sessions: &[SessionRow], now: u64, effects: &mut Vec<Effect>) {
        // A message may have been sent while the server was still coming.
        if self.face.session.is_some() || self.upkeep.is_creating {
            return;
        }
        let start = self.upkeep.start.clone();
        match start.session {
            Some(wanted) => {
                let is_it =
                    |row: &&SessionRow| row.name.to_lowercase() == wanted.to_lowercase() || row.id.as_str() == wanted;
                match sessions.iter().find(is_it) {
                    Some(row) => self.show(Some(row.id.clone()), now, effects),
                    None => {
                        self.face.notice = Some(format!("Your first message makes the session \"{wanted}\"."));
                        self.upkeep.name = Some(wanted);
                    }
                }
            }
            None if start.last => match sessions.first() {
                Some(row) => self.show(Some(row.id.clone()), now, effects),
                None => self.face.notice = Some("This folder has no session yet; your first message makes one.".into()),
            },
            None => {
                // One that waits for a person, or works, is more than an offer.
                let busy = |row: &&SessionRow| row.state != SessionActivity::Idle;
                self.face.last = sessions.iter().find(busy).or(sessions.first()).cloned();
            }
        }
    }

    /// To the base, which may send something.
    pub(super) fn give_to_base(
        &mut self,
        input: &Input,
        action: Option<crate::Action>,
        now: u64,
        effects: &mut Vec<Effect>,
    ) -> bool {
        use crate::base::Said;
        let Self { face, keys, base, next_ticket, .. } = self;
        let mut cx = Cx { face, keys, now, effects, next_ticket };
        match base.handle(input, action, &mut cx) {
            Said::Taken => true,
            Said::Passed => false,
            Said::Submit { parts, delivery, draft } => {
                self.send(parts, delivery, Some(draft), effects);
                true
            }
            Said::Command(command) => {
                self.command(command, now, effects);
                true
            }
            Said::Act(action) => {
                self.act(action, now, effects);
                true
            }
            Said::Open(layer) => {
                self.layers.push(layer);
                true
            }
        }
    }
}

/// What helps somebody who has no model.
fn set_up(error: &ApiError) -> &'static str {
    if error.code == ApiErrorCode::Configuration { " (/providers sets up a model)" } else { "" }
}
