//! What was asked and is not answered yet: anything that takes over half a second is shown.

use crate::{Effect, Request, Ticket};

/// From here on a person wonders whether anything happens.
const NOTICED: u64 = 500;

/// Requests on their way, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Progress {
    open: Vec<(Ticket, &'static str, u64)>,
}

impl Progress {
    /// What an effect asks for goes on until its ticket is answered.
    pub(super) fn begun(&mut self, effect: &Effect, now: u64) {
        let (ticket, doing) = match effect {
            Effect::Ask(ticket, request) => (ticket, doing(request)),
            Effect::ReadFile(ticket, _) => (ticket, "reading the file"),
            Effect::PasteImage(ticket) => (ticket, "asking for the clipboard"),
            Effect::SaveExport(ticket, ..) => (ticket, "writing the export"),
            _ => return,
        };
        self.open.push((*ticket, doing, now));
    }

    pub(super) fn answered(&mut self, ticket: Ticket) {
        self.open.retain(|(open, ..)| *open != ticket);
    }

    /// What has been going on for so long that it is shown, and since when.
    pub(super) fn slow(&self, now: u64) -> Option<(&'static str, u64)> {
        let (_, what, since) = self.open.first()?;
        (now.saturating_sub(*since) >= NOTICED).then_some((*what, *since))
    }

    /// When something changes about it: at half a second, then each second.
    pub(super) fn due(&self, now: u64) -> Option<u64> {
        let (.., since) = self.open.first()?;
        let noticed = since + NOTICED;
        Some(if now < noticed { noticed } else { now + 1_000 - (now - since) % 1_000 })
    }
}

fn doing(request: &Request) -> &'static str {
    match request {
        Request::Create(_) => "making a session",
        Request::View(_) | Request::Page { .. } | Request::Waiting(_) => "reading the session",
        Request::Send(..) => "sending",
        Request::Abort(..) => "stopping",
        Request::Delete(_) => "deleting",
        Request::Branch(..) => "copying",
        Request::Cut(..) => "cutting",
        Request::Move(..) => "moving",
        Request::Changes(_) => "reading the changes",
        Request::ApplyChanges(..) | Request::DecideProposals(..) => "applying",
        Request::Attach { .. } => "uploading",
        Request::Search(..) => "searching",
        Request::Compact(..) => "compacting",
        Request::KnownProviders => "looking for model servers",
        Request::TestProvider(_) => "testing the provider",
        Request::Vacuum => "making the database smaller",
        _ => "asking the server",
    }
}
