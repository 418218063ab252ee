//! What lies over the conversation, each in a file of its own, and which action opens it.

mod changes;
mod context;
mod decide;
mod help;
mod output;
mod pager;
#[allow(dead_code, unused_imports, reason = "parts for layers that are being written")]
mod parts;
mod settings;
mod todos;

use hames_protocol::api::Waiting;

use crate::prompt::Command;
use crate::talk::Output;
use crate::{Action, Cx, Layer};

/// The layer of a command, where there is one.
pub(crate) fn open(command: &Command, cx: &mut Cx<'_>) -> Option<Box<dyn Layer>> {
    match command {
        Command::Changes => Some(Box::new(changes::Proposed::new(cx))),
        Command::Compact { .. } => Some(Box::new(context::Report::new(true, cx))),
        Command::Context => Some(Box::new(context::Report::new(false, cx))),
        Command::Help | Command::Keys => Some(Box::new(help::Help::default())),
        Command::Settings | Command::Thinking(None) => Some(Box::new(settings::Dials::new(cx))),
        Command::Todos => Some(Box::new(todos::Todos::default())),
        _ => {
            cx.say("There is nothing to show for this here; the commands of `hames` have it.");
            None
        }
    }
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

/// Puts what waits for a person on top, and takes away what no longer waits.
pub(crate) fn ask(layers: &mut Vec<Box<dyn Layer>>, waiting: &Waiting, _cx: &mut Cx<'_>) {
    layers.retain(|layer| layer.name() != decide::NAME);
    if let Some(layer) = decide::Decide::of(waiting) {
        layers.push(Box::new(layer));
    }
}
