//! A session as a thing: looked at, named, set, deleted.

use std::path::PathBuf;
use std::sync::Arc;

use hames_protocol::api::{
    ApiErrorCode, BranchSession, ChangeSettings, CutSession, RenameSession, SessionActivity, SessionCutDone,
    SessionRow, SessionView,
};
use hames_protocol::{LogError, SessionRenamed, SessionState, Settings, SettingsChanged};

use hames_store::{Lease, Store};

use super::Actor;
use crate::refusal::{Answer, blocking, refuse, refused};
use crate::{names, rows, view};

impl Actor {
    /// Everything but the conversation.
    pub(crate) async fn view(&mut self) -> Answer<SessionView> {
        let state = self.state().await?;
        let (run, seq) = self.channel.open_run();
        let mut row = self.row(&state).await?;
        // The store may be ahead of what was told: whoever compares must not take an ended run for the newest there is.
        row.last_seq = row.last_seq.min(seq);
        let next_run = self.run.as_ref().map(|run| differing(&run.settings, &state.settings)).unwrap_or_default();
        Ok(view::of(self.hub.host.as_ref(), state, row, run, next_run))
    }

    async fn row(&mut self, state: &SessionState) -> Answer<SessionRow> {
        let (store, id) = (self.hub.store.clone(), self.id.clone());
        let info = blocking(move || store.session(&id)).await?.map_err(refused)?;
        let mut info = info.ok_or_else(|| refused(LogError::NoSession(self.id.clone())))?;
        info.undecided = self.asked(state).is_some();
        let activity = self.channel.glance(|glance| rows::activity(Some(glance), &info));
        Ok(rows::row(info, activity, self.held_by()))
    }

    /// Renames the session, beside a run too.
    pub(crate) async fn rename(&mut self, to: RenameSession) -> Answer<SessionRow> {
        let name = names::named(&to.name)
            .map(|_| to.name.trim().to_owned())
            .ok_or_else(|| refuse(ApiErrorCode::Invalid, "The name is empty. Give one that can be read."))?;
        let named = self.journal().await?.state().name.clone();
        if named != name {
            self.record(vec![SessionRenamed { name }.into()]).await.map_err(|why| match why.code {
                ApiErrorCode::Busy => refuse(ApiErrorCode::NameTaken, why.message),
                _ => why,
            })?;
        }
        let state = self.state().await?;
        self.row(&state).await
    }

    /// Gives the session a better name, unless somebody has named it meanwhile.
    pub(crate) async fn improve(&mut self, from: &str, better: &str) -> Answer<()> {
        let Some(better) = names::named(better) else { return Ok(()) };
        for name in names::numbered(&better) {
            if self.journal().await?.state().name != from {
                return Ok(());
            }
            match self.record(vec![SessionRenamed { name }.into()]).await {
                Err(why) if why.code == ApiErrorCode::Busy => {}
                other => return other.map(|_| ()),
            }
        }
        Ok(())
    }

    /// Changes settings; a run that goes on keeps its own.
    pub(crate) async fn change_settings(&mut self, change: ChangeSettings) -> Answer<SessionView> {
        names_of_settings(&change.unset)?;
        let before = self.journal().await?.state().settings.clone();
        let event = SettingsChanged { settings: change.settings, unset: change.unset };
        if before.without(&event.unset).patched(&event.settings) != before {
            self.record(vec![event.into()]).await?;
        }
        self.view().await
    }

    /// Deletes the session.
    pub(crate) async fn delete(&mut self) -> Answer<()> {
        self.session("deleting the session").await?;
        let Some(own) = self.own.take() else { return Ok(()) };
        let store = self.hub.store.clone();
        blocking(move || store.delete_held(own.lease)).await?.map_err(refused)?;
        self.gone = true;
        self.channel.close(Some(refuse(ApiErrorCode::NotFound, "The session was deleted.")));
        let _ = self.suggests_vacuum().await?;
        Ok(())
    }

    /// Removes a message of the user and everything behind it.
    pub(crate) async fn cut(&mut self, at: CutSession) -> Answer<SessionCutDone> {
        self.session("cutting").await?;
        let done = self.rewrite(move |store, lease, now| store.cut(lease, at.from_seq, now)).await?;
        let suggest_vacuum = self.suggests_vacuum().await?;
        Ok(SessionCutDone { seq: done.seq, removed: done.removed, suggest_vacuum })
    }

    /// Looks, and says in the log, whether a vacuum is worth its time by now.
    async fn suggests_vacuum(&self) -> Answer<bool> {
        let hub = Arc::clone(&self.hub);
        blocking(move || hub.suggests_vacuum()).await
    }

    /// Puts the session into another folder.
    pub(crate) async fn move_to(&mut self, folder: PathBuf) -> Answer<SessionRow> {
        self.session("moving the session").await?;
        self.rewrite(move |store, lease, now| store.move_to(lease, &folder, now)).await?;
        let state = self.state().await?;
        self.row(&state).await
    }

    /// Copies the session, up to an event, into a new one.
    pub(crate) async fn branch(&mut self, at: BranchSession) -> Answer<SessionRow> {
        self.session("branching").await?;
        let (store, id, holder) = (self.hub.store.clone(), self.id.clone(), self.hub.options.holder.clone());
        let now = self.hub.host.clock().now_ms();
        let branched = blocking(move || store.branch(&id, at.up_to_seq, at.name.as_deref(), now, &holder)).await?;
        let (info, lease) = branched.map_err(refused)?;
        // Whoever asks for the new session takes it again.
        drop(lease);
        Ok(rows::row(info, SessionActivity::Idle, None))
    }

    /// Lets the store work on the session's log itself, under the lease. The session is read anew then, and whoever
    /// watches sees what was written.
    async fn rewrite<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Store, &Lease, u64) -> Result<T, LogError> + Send + 'static,
    ) -> Answer<T> {
        let own = self.own.take().ok_or_else(|| refused(LogError::NoSession(self.id.clone())))?;
        let (store, now) = (self.hub.store.clone(), self.hub.host.clock().now_ms());
        let worked = blocking(move || {
            let done = work(&store, &own.lease, now);
            (own.lease, done)
        });
        let (lease, done) = worked.await?;
        self.resume(lease).await?;
        done.map_err(refused)
    }
}

/// Names of settings that differ.
fn differing(before: &Settings, now: &Settings) -> Vec<String> {
    let fields = |settings: &Settings| match serde_json::to_value(settings) {
        Ok(serde_json::Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let (before, now) = (fields(before), fields(now));
    let mut names: Vec<String> =
        now.iter().filter(|(name, value)| before.get(*name) != Some(value)).map(|(n, _)| n.clone()).collect();
    names.extend(before.keys().filter(|name| !now.contains_key(*name)).cloned());
    names
}

/// Refuses what is no name of a setting.
pub(super) fn names_of_settings(names: &[String]) -> Answer<()> {
    match names.iter().find(|name| !Settings::is_name(name)) {
        Some(unknown) => Err(refuse(ApiErrorCode::Invalid, format!("There is no setting \"{unknown}\"."))),
        None => Ok(()),
    }
}
