//! What lies over the conversation, each in a file of its own, and which action opens it.

mod branch;
mod changes;
mod context;
mod database;
mod decide;
mod delete;
mod export;
mod form;
mod help;
mod messages;
mod models;
mod new;
mod output;
mod pager;
mod parts;
mod providers;
mod relocate;
mod rename;
mod search;
mod session_menu;
mod sessions;
mod settings;
#[cfg(test)]
mod tests;
mod todos;

use hames_protocol::api::{SessionRow, Waiting};

use crate::prompt::Command;
use crate::talk::Output;
use crate::{Action, Cx, Layer};
pub(crate) use decide::approval_lines;
use messages::{For, Messages};
pub(crate) use parts::plural;

/// The layer of a command, where there is one. `marked` is the event of the message that is marked in the conversation.
pub(crate) fn open(command: &Command, marked: Option<u64>, cx: &mut Cx<'_>) -> Option<Box<dyn Layer>> {
    Some(match command {
        Command::Branch(Some(name)) if marked.is_none() => {
            boxed(branch::Branch::form(&shown(cx)?, "", branch::UpTo::default()).given(name, cx))?
        }
        Command::Branch(name) => {
            Box::new(Messages::of(shown(cx)?, For::Branch, marked, cx).named(name.as_deref().unwrap_or_default()))
        }
        Command::Changes => Box::new(changes::Proposed::new(cx)),
        Command::Compact { .. } => Box::new(context::Report::new(true, cx)),
        Command::Context => Box::new(context::Report::new(false, cx)),
        Command::Cut => Box::new(Messages::of(shown(cx)?, For::Cut, marked, cx)),
        Command::Database => Box::new(database::Database::open(cx)),
        Command::Delete => Box::new(delete::Delete::of(shown(cx)?, cx)),
        Command::Export(Some(file)) => boxed(export::Export::form(&shown(cx)?).given(file, cx))?,
        Command::Export(None) => Box::new(export::Export::form(&shown(cx)?)),
        Command::Help | Command::Keys => Box::new(help::Help::default()),
        Command::Model(None) => Box::new(models::Models::open(cx)),
        Command::Move(Some(folder)) => boxed(relocate::Relocate::form(&shown(cx)?).given(folder, cx))?,
        Command::Move(None) => Box::new(relocate::Relocate::form(&shown(cx)?)),
        Command::Providers => Box::new(providers::Setup::new(cx)),
        Command::Rename(Some(name)) => boxed(rename::Rename::form(&shown(cx)?).given(name, cx))?,
        Command::Rename(None) => Box::new(rename::Rename::form(&shown(cx)?)),
        Command::Search(words) => Box::new(search::Search::open(words.as_deref().unwrap_or_default(), cx)),
        Command::Sessions => Box::new(sessions::Sessions::open(cx)),
        Command::Settings | Command::Thinking(None) => Box::new(settings::Dials::new(cx)),
        Command::Todos => Box::new(todos::Todos::default()),
        Command::Vacuum => Box::new(database::Database::vacuum(cx)),
        _ => {
            cx.say("There is nothing to show for this here; the commands of `hames` have it.");
            return None;
        }
    })
}

fn boxed(layer: Option<impl Layer + 'static>) -> Option<Box<dyn Layer>> {
    layer.map(|layer| Box::new(layer) as Box<dyn Layer>)
}

/// The session that is shown; says what to do where there is none.
fn shown(cx: &mut Cx<'_>) -> Option<SessionRow> {
    let row = cx.face.view.as_ref().map(|view| view.row.clone());
    if row.is_none() {
        let sessions = cx.keys.hint(Action::Sessions);
        cx.say(match cx.face.session {
            Some(_) => "The session is still being read; try again in a moment.".to_owned(),
            None => format!("There is no session yet: your first message makes one, or {sessions} chooses one."),
        });
    }
    row
}

/// The whole output of that name, else that one of `all`.
pub(crate) fn output(
    name: Option<String>,
    mut all: Vec<Output>,
    mut at: usize,
    cx: &mut Cx<'_>,
) -> Option<Box<dyn Layer>> {
    let Some(session) = cx.face.session.clone() else {
        cx.say("There is no session yet that could have an output.");
        return None;
    };
    if let Some(name) = name {
        at = all.iter().position(|output| output.name == name).unwrap_or_else(|| {
            all.push(Output { label: String::new(), name, bytes: None });
            all.len() - 1
        });
    }
    if all.is_empty() {
        cx.say(format!("No output is longer than what is shown here; {} opens it.", cx.keys.hint(Action::Fold)));
        return None;
    }
    Some(Box::new(output::Whole::new(session, all, at, cx)))
}

/// Puts what waits for a person on top, and takes away what waits no more.
pub(crate) fn ask(layers: &mut Vec<Box<dyn Layer>>, waiting: &Waiting) {
    match layers.iter().position(|layer| layer.name() == decide::NAME) {
        Some(at) => {
            if !layers[at].waits(waiting) {
                layers.remove(at);
            }
        }
        None => layers.extend(decide::Decide::of(waiting).map(|layer| Box::new(layer) as Box<dyn Layer>)),
    }
}

/// Whether something that waits for a person is on the screen.
pub(crate) fn asks(layers: &[Box<dyn Layer>]) -> bool {
    layers.iter().any(|layer| layer.name() == decide::NAME)
}
