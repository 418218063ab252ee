//! A run in the session that the local server holds: the message goes there, the events come from there, and everything
//! a person sees is as if the run were here.
//!
//! Only what belongs to this message is shown: the run it starts, or what comes behind it in the run it joins. A server
//! that dies meanwhile is started again, and what it had answered for goes on; the message carries an id, so that sending
//! it twice is sending it once.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hames_agent::Watch;
use hames_client::{Client, ClientError, EventStream, Finder, News, Upload};
use hames_protocol::api::{
    Abort, AbortScope, AnswerApproval, AnswerQuestion, ApiErrorCode, ChangeSettings, RunAnswers, RunTerms, SendMessage,
    Sent,
};
use hames_protocol::{
    Approver, Delivery, Envelope, ErrorClass, Event, Mode, Part, RunId, RunResult, SessionId, Settings,
};

use super::question::{Given, Question, given_to};
use crate::attach::Attachment;
use crate::exit::Stop;
use crate::output::{clean, say};
use crate::signals::Signals;

/// How often a message is sent whose answer did not come.
const SEND_ATTEMPTS: u32 = 5;
/// Before it is sent again.
const SEND_AGAIN: Duration = Duration::from_millis(200);

/// What holds a message up that waits in a queue which was stopped.
const STANDS_STILL: &str = "its queue stands still, so the message waits until it is resumed; Ctrl-C withdraws it";

/// What is to be done in a session that the server holds.
pub(super) struct Guest<'a> {
    pub(super) client: Client,
    /// Finds the server again, and starts it where it is gone.
    pub(super) finder: Finder,
    pub(super) session: SessionId,
    pub(super) name: String,
    pub(super) prompt: String,
    pub(super) attachments: Vec<Attachment>,
    /// What the command line changes of the session's settings.
    pub(super) patch: Settings,
    pub(super) delivery: Delivery,
    pub(super) answers: Answers,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) watch: Arc<dyn Watch>,
    pub(super) signals: &'a Signals,
}

/// Who answers where a call needs a decision.
pub(super) enum Answers {
    /// Somebody at this terminal, unless another client is faster.
    Person(Arc<dyn Approver>),
    /// Whatever the terms say; nobody is asked.
    Terms(RunAnswers),
}

/// How the run of this message ended.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) exit_code: i32,
    /// Proposals that are open, of a run that could only propose.
    pub(super) proposals: usize,
    /// The class of the failure that ended it.
    pub(super) failure: Option<ErrorClass>,
}

/// Where the message is.
enum Place {
    /// Not in the transcript yet. `opening` holds the beginning of a run whose first message is still to come.
    Waiting { opening: Vec<Envelope> },
    /// In this run, which it began or joined.
    In { run: Option<RunId>, began: bool },
}

/// Something that is waited for beside the events.
type Waited<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// One thing that happens while the run is watched.
enum Step {
    News(Option<News>),
    Answered(Option<Given>),
    Interrupted,
    Back(Result<(), Stop>),
}

impl Guest<'_> {
    /// Sends the message and watches to the end of its run.
    pub(super) async fn run(self) -> Result<Left, Stop> {
        let view = self.client.session(&self.session).await?;
        let mut news = self.client.events(&self.session, view.row.last_seq);
        attached(&mut news).await?;
        if self.patch != Settings::default() {
            let change = ChangeSettings { settings: self.patch.clone(), unset: Vec::new() };
            self.client.change_settings(&self.session, &change).await?;
        }
        let message = self.message().await?;
        let sent = self.send(&message).await?;
        if !sent.starts_run {
            say(&self.busy(view.paused));
        }
        let mut watching = Watching {
            guest: &self,
            sent: &sent,
            id: message.idempotency_id.as_deref(),
            place: Place::Waiting { opening: Vec::new() },
            question: None,
            mode: None,
            left: Left::default(),
        };
        watching.watch_to_the_end(news).await?;
        let Watching { mut left, mode, .. } = watching;
        if mode == Some(Mode::Analyze) {
            // Only for a line about them; a server that has just gone has said the rest.
            left.proposals = self.client.session(&self.session).await.map_or(0, |view| view.proposals.len());
        }
        Ok(left)
    }

    /// What happens to a message that does not begin its run at once.
    fn busy(&self, paused: bool) -> String {
        let what = match self.delivery {
            Delivery::Queue if paused => STANDS_STILL,
            Delivery::Queue => "the message waits for the end of the run that goes on; Ctrl-C withdraws it",
            Delivery::Steer => "the message joins the run that goes on at its next step",
            Delivery::Interrupt => "the message joins the run that goes on, at once",
        };
        format!("hames: session \"{}\" is busy: {what}", clean::line(&self.name))
    }

    /// The message: the prompt, then what is attached, just as a run in this process has it.
    async fn message(&self) -> Result<SendMessage, Stop> {
        let mut parts = vec![Part::text(self.prompt.clone())];
        for attachment in &self.attachments {
            match attachment {
                Attachment::Text(text) => parts.push(Part::text(text.clone())),
                Attachment::Image { line, name, media_type, bytes } => {
                    let content = Upload::Bytes(bytes.clone().into());
                    let kept = self.client.attach(&self.session, name, Some(media_type), content).await?;
                    parts.push(Part::text(line.clone()));
                    parts.extend(kept.parts.into_iter().filter(|part| matches!(part, Part::Image { .. })));
                }
            }
        }
        let answers = match self.answers {
            Answers::Person(_) => None,
            Answers::Terms(answers) => Some(answers),
        };
        Ok(SendMessage {
            parts,
            delivery: self.delivery,
            idempotency_id: Some(RunId::generate().to_string()),
            terms: Some(RunTerms { answers, environment: Some(self.environment.clone()) }),
        })
    }

    /// Sends it until it is answered.
    async fn send(&self, message: &SendMessage) -> Result<Sent, Stop> {
        let mut attempt = 1;
        loop {
            match self.client.send(&self.session, message).await {
                Err(ClientError::Lost(_) | ClientError::Unreachable { .. }) if attempt < SEND_ATTEMPTS => {
                    attempt += 1;
                    tokio::time::sleep(SEND_AGAIN).await;
                    self.finder.connect_or_start().await?;
                }
                answered => return Ok(answered?),
            }
        }
    }
}

/// Waits until the events come: from then on nothing is missed, live pieces included.
async fn attached(news: &mut EventStream) -> Result<(), Stop> {
    loop {
        match news.next().await {
            Some(News::Connected) => return Ok(()),
            Some(News::Ended(error)) => return Err(error.into()),
            Some(News::Lost { why, .. }) => return Err(Stop::from(ClientError::Lost(why))),
            Some(News::Event(_) | News::Resync { .. }) => {}
            None => return Err(Stop::from(ClientError::Lost("the events ended".into()))),
        }
    }
}

/// A message on its way, watched.
struct Watching<'g, 'a> {
    guest: &'g Guest<'a>,
    sent: &'g Sent,
    id: Option<&'g str>,
    place: Place,
    question: Option<Question>,
    mode: Option<Mode>,
    left: Left,
}

impl Watching<'_, '_> {
    async fn watch_to_the_end(&mut self, mut news: EventStream) -> Result<(), Stop> {
        let mut interrupted = false;
        let mut coming_back: Option<Waited<Result<(), Stop>>> = None;
        loop {
            let step = tokio::select! {
                biased;
                () = self.guest.signals.abort.cancelled(), if !interrupted => Step::Interrupted,
                given = given_to(&mut self.question) => Step::Answered(given),
                back = back_of(&mut coming_back) => Step::Back(back),
                news = news.next() => Step::News(news),
            };
            match step {
                Step::Interrupted => {
                    interrupted = true;
                    self.question = None;
                    if self.interrupt().await? {
                        return Ok(());
                    }
                }
                Step::Answered(given) => self.answer(given).await?,
                Step::Back(back) => {
                    coming_back = None;
                    back?;
                }
                Step::News(Some(News::Event(envelope))) => {
                    if self.see(*envelope).await {
                        return Ok(());
                    }
                }
                Step::News(Some(News::Lost { why, .. })) => {
                    say(&format!(
                        "hames: the connection to the server is lost ({}); connecting again",
                        clean::line(&why)
                    ));
                    let finder = self.guest.finder.clone();
                    coming_back = Some(Box::pin(async move { Ok(finder.connect_or_start().await.map(drop)?) }));
                }
                Step::News(Some(News::Connected | News::Resync { .. })) => {}
                Step::News(Some(News::Ended(error))) => return Err(error.into()),
                Step::News(None) => return Err(Stop::from(ClientError::Lost("the events ended".into()))),
            }
        }
    }

    /// Takes in an event; `true` where it was the last one that concerns us.
    async fn see(&mut self, envelope: Envelope) -> bool {
        let ours = match &mut self.place {
            Place::In { run, .. } => envelope.run == *run,
            Place::Waiting { opening } => {
                match &envelope.event {
                    Event::MessageUser(message)
                        if message.pending_id.as_ref() == Some(&self.sent.pending_id)
                            || (self.id.is_some() && message.idempotency_id.as_deref() == self.id) =>
                    {
                        let opening = std::mem::take(opening);
                        let began = !opening.is_empty();
                        self.place = Place::In { run: envelope.run.clone(), began };
                        for before in opening {
                            self.show(before).await;
                        }
                        true
                    }
                    Event::RunStart(_) => {
                        *opening = vec![envelope];
                        return false;
                    }
                    Event::PendingCancelled(cancelled) if cancelled.id == self.sent.pending_id => {
                        say("hames: the message was withdrawn before it reached the model");
                        self.left.exit_code = i32::from(crate::exit::STOPPED);
                        return true;
                    }
                    Event::SettingsChanged(changed) => changed.settings == self.guest.patch,
                    // The run before it failed, was stopped, or died with its server.
                    Event::PendingPaused(pause) if pause.paused => {
                        say(&format!("hames: session \"{}\": {STANDS_STILL}", clean::line(&self.guest.name)));
                        false
                    }
                    // Of no run: why the one that was to begin did not.
                    Event::Error(failure) if envelope.run.is_none() => {
                        self.left.failure = Some(failure.class);
                        self.left.exit_code = i32::from(crate::exit::code_of(failure.class));
                        self.show(envelope).await;
                        return true;
                    }
                    _ => {
                        opening.clear();
                        false
                    }
                }
            }
        };
        if !ours {
            return false;
        }
        let ended = envelope.agent.is_empty() && matches!(envelope.event, Event::RunDone(_));
        self.show(envelope).await;
        ended
    }

    async fn show(&mut self, envelope: Envelope) {
        match &envelope.event {
            Event::RunStart(start) => self.mode = Some(start.mode),
            Event::Error(failure) if envelope.agent.is_empty() => self.left.failure = Some(failure.class),
            // A signal of ours has its own code, which the server cannot know.
            Event::RunDone(done)
                if envelope.agent.is_empty()
                    && !(done.result == RunResult::Interrupted && self.guest.signals.came()) =>
            {
                self.left.exit_code = done.exit_code;
            }
            _ => {}
        }
        self.question.take_if(|question| question.is_settled_by(&envelope.event));
        self.guest.watch.see(std::slice::from_ref(&envelope)).await;
        if let Answers::Person(person) = &self.guest.answers
            && let Some(question) = Question::of(&envelope.event, person)
        {
            self.question = Some(question);
        }
    }

    async fn answer(&mut self, given: Option<Given>) -> Result<(), Stop> {
        let Some(Question { call, digest, .. }) = self.question.take() else { return Ok(()) };
        let (client, session) = (&self.guest.client, &self.guest.session);
        let answered = match given {
            Some(Given::Decision(decision, by)) => {
                client.answer_approval(session, &call, &AnswerApproval { digest, decision, by: Some(by) }).await
            }
            Some(Given::Text(answer, by)) => {
                let answer = AnswerQuestion { digest: Some(digest), answer, by: Some(by) };
                client.answer_question(session, &call, &answer).await
            }
            None => {
                say("hames: nobody answers here, so the question waits for another client; Ctrl-C ends the run");
                return Ok(());
            }
        };
        match answered {
            Ok(()) => Ok(()),
            Err(error) => match error.code() {
                // Its event says who did, or that the run is over.
                Some(ApiErrorCode::Answered | ApiErrorCode::Stale | ApiErrorCode::NotFound) => Ok(()),
                // After a restart the call is asked about anew, or closed.
                None if matches!(error, ClientError::Lost(_) | ClientError::Unreachable { .. }) => Ok(()),
                _ => Err(error.into()),
            },
        }
    }

    /// Ends what this message began; `true` where nothing more comes of it.
    async fn interrupt(&mut self) -> Result<bool, Stop> {
        self.left.exit_code = self.guest.signals.code.load(Ordering::SeqCst);
        let (client, session) = (&self.guest.client, &self.guest.session);
        if let Place::Waiting { .. } = self.place {
            match client.cancel_pending(session, &self.sent.pending_id).await {
                Ok(_) => {
                    say("hames: the message is withdrawn");
                    return Ok(true);
                }
                // It is being delivered in this very moment.
                Err(error) if error.code() == Some(ApiErrorCode::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if let Place::In { began: false, .. } = self.place {
            say("hames: the run goes on; it was not begun by this message");
            return Ok(true);
        }
        let abort = Abort { scope: AbortScope::Foreground, exit_code: Some(self.left.exit_code) };
        match client.abort(session, &abort).await {
            Ok(_) => Ok(false),
            // Without a run there is nothing to end, and its last event has come or is coming.
            Err(error) if matches!(error.code(), Some(ApiErrorCode::NotFound | ApiErrorCode::Stale)) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

async fn back_of(coming: &mut Option<Waited<Result<(), Stop>>>) -> Result<(), Stop> {
    match coming {
        Some(coming) => coming.as_mut().await,
        None => std::future::pending().await,
    }
}
