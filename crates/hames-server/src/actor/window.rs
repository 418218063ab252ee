//! The window of a session: looked at, and made smaller by hand.

use std::sync::Arc;

use hames_agent::{Agent, RunControl, Session};
use hames_protocol::PinnedBy;
use hames_protocol::api::{
    AddPin, ApiErrorCode, ChangeSettings, PinPlaced, RunTerms, SessionCompacted, SessionContext,
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::manage::names_of_settings;
use super::{Actor, Ended, Running};
use crate::inbox::RunInbox;
use crate::refusal::{Answer, failed, refuse};

/// A look at a window.
pub(crate) enum Look {
    /// What there is to see.
    Seen(Box<SessionContext>),
    /// Something has the session. The log is to be read for it, with the agent its next run would have.
    FromTheLog(Box<Agent>),
}

impl Actor {
    /// The window of the next request, and what a compaction would do now, if the settings were changed so. Changes
    /// nothing, and is possible whoever has the session.
    pub(crate) async fn context(&mut self, draft: ChangeSettings) -> Answer<Look> {
        names_of_settings(&draft.unset)?;
        let mut state = self.state().await?;
        state.settings = state.settings.without(&draft.unset).patched(&draft.settings);
        let mut agent = self.prepare_as(state, RunTerms::default()).await?.agent;
        let rests = self.own.as_ref().and_then(|own| own.session.as_ref());
        Ok(match rests {
            Some(session) => Look::Seen(Box::new(seen(session, &mut agent).await)),
            None => Look::FromTheLog(Box::new(agent)),
        })
    }

    /// Keeps something in the window whatever leaves it.
    pub(crate) async fn add_pin(&mut self, pin: AddPin) -> Answer<PinPlaced> {
        self.session("pinning").await?;
        let mut agent = self.prepare_under(RunTerms::default()).await?.agent;
        let watch = self.watch();
        let session = self.session("pinning").await?;
        session.take_up(&mut agent).await;
        let pin = session.pin(&mut agent, pin.target, PinnedBy::User, watch).await.map_err(failed)?;
        Ok(PinPlaced { pin })
    }

    /// Takes a pin away.
    pub(crate) async fn remove_pin(&mut self, pin: u64) -> Answer<()> {
        let watch = self.watch();
        match self.session("taking a pin away").await?.unpin(pin, watch).await.map_err(failed)? {
            true => Ok(()),
            false => Err(refuse(ApiErrorCode::NotFound, format!("There is no pin {pin}."))),
        }
    }

    /// Begins to make the window smaller; a model may be asked, so it takes its time. What is given back says what came of
    /// it. Messages wait meanwhile, and a stop ends it.
    pub(crate) async fn compact(&mut self) -> Answer<oneshot::Receiver<Answer<SessionCompacted>>> {
        self.session("compacting").await?;
        self.not_stopping()?;
        let prepared = self.prepare_under(RunTerms::default()).await?;
        let (tell, told) = oneshot::channel();
        let watch = self.watch();
        let own = self.own.as_mut().and_then(|own| Some((own.session.take()?, own.journal.state().settings.clone())));
        let Some((mut session, settings)) = own else { return Ok(told) };
        let control = RunControl { abort: CancellationToken::new(), ..RunControl::default() };
        let (abort, aborted_code) = (control.abort.clone(), Arc::clone(&control.aborted_code));
        let (mut agent, shell) = (prepared.agent, prepared.shell);
        let task = tokio::spawn(async move {
            let done = Box::pin(session.compact(&mut agent, &control, watch)).await;
            if let Some(shell) = shell {
                shell.sweep().await;
            }
            (session, Ended::Compacted(done.map(SessionCompacted::from).map_err(failed)))
        });
        self.hub.counts.send_modify(|counts| counts.runs += 1);
        self.run = Some(Running {
            task,
            inbox: Arc::new(RunInbox::new(None, [])),
            abort,
            aborted_code,
            stopped: None,
            aborting: Vec::new(),
            settings,
            compacting: Some(tell),
        });
        Ok(told)
    }
}

/// What a session's window is with this agent.
pub(crate) async fn seen(session: &Session, agent: &mut Agent) -> SessionContext {
    session.take_up(agent).await;
    SessionContext { report: session.report(agent), next: session.preview_compaction(agent) }
}
