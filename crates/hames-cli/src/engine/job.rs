//! A run in this process, from a session's log to its end.

use std::path::PathBuf;
use std::sync::Arc;

use hames_agent::{Clock, Ports, RunControl, RunEnd, RunInput, Session, SystemClock, Watch, run_note};
use hames_protocol::{Approver, BlobSource, Failure, Mode, Part, SessionId, Settings};
use hames_tools::{LockTable, Rule};
use hames_workspace::files::remove_staged_beside;

use super::{Ground, Setup, in_force, unfinished};
use crate::attach::Attachment;
use crate::clock::local_date;
use crate::config::Chosen;

/// How a run ended.
pub(crate) struct Ended {
    pub(crate) end: RunEnd,
    /// Proposals that are open, of a run that could only propose.
    pub(crate) proposals: usize,
}

/// What a run is given.
pub(crate) struct Job<'a> {
    pub(crate) ground: Ground<'a>,
    pub(crate) folder: PathBuf,
    pub(crate) session: SessionId,
    pub(crate) chosen: Chosen,
    /// What the command line changes of the session's settings.
    pub(crate) patch: Settings,
    pub(crate) prompt: String,
    pub(crate) attachments: Vec<Attachment>,
    pub(crate) watch: Arc<dyn Watch>,
    pub(crate) control: RunControl,
    pub(crate) rules: Vec<Rule>,
    pub(crate) approver: Arc<dyn Approver>,
}

impl Job<'_> {
    /// Runs to the end. `Err` only where it came to no run.
    pub(crate) async fn run(self) -> Result<Ended, Failure> {
        let ports = Ports { log: self.ground.store.log(), clock: Arc::new(SystemClock) };
        let mut session = Session::resume(ports, self.session.clone()).await?;
        session.cut_changes().iter().for_each(|file| remove_staged_beside(file));
        session.change_settings(self.patch.clone().into(), Arc::clone(&self.watch)).await?;
        let setup = Setup {
            ground: self.ground,
            folder: &self.folder,
            session: &self.session,
            chosen: &self.chosen,
            rules: self.rules.clone(),
            approver: Arc::clone(&self.approver),
            commands: self.ground.env,
            locks: Arc::new(LockTable::default()),
        };
        let settings = in_force(&self.chosen, &session.state().settings);
        let mut outfit = setup.make(&settings)?;
        unfinished(&session.finish_changes(&mut outfit.agent, &self.watch).await?);
        let mode = settings.mode.unwrap_or_default();
        let input = RunInput {
            parts: self.parts().await?,
            note: Some(run_note(mode, &local_date(SystemClock.now_ms()), &session.state())),
            mode,
            settings,
            instructions: outfit.instructions,
            ..RunInput::default()
        };
        let end = session.run(&mut outfit.agent, input, &self.control, Arc::clone(&self.watch)).await;
        outfit.shell.sweep().await;
        let proposals = if mode == Mode::Analyze { session.state().open_changes().count() } else { 0 };
        Ok(Ended { end, proposals })
    }

    /// The message: the prompt, then what is attached. Images are kept as blobs of the session.
    async fn parts(&self) -> Result<Vec<Part>, Failure> {
        let mut parts = vec![Part::text(self.prompt.clone())];
        for attachment in &self.attachments {
            match attachment {
                Attachment::Text(text) => parts.push(Part::text(text.clone())),
                Attachment::Image { line, name, media_type, bytes } => {
                    let source = BlobSource::Bytes(bytes.clone());
                    let blob = self.ground.store.blobs().put(&self.session, "", source).await?;
                    parts.push(Part::text(line.clone()));
                    parts.push(Part::Image { blob, media_type: (*media_type).into(), name: Some(name.clone()) });
                }
            }
        }
        Ok(parts)
    }
}
