//! What lies over the conversation, each in a file of its own, and which action opens it.

mod decide;
mod help;
#[allow(dead_code, unused_imports, reason = "parts for layers that are being written")]
mod parts;

use hames_protocol::api::Waiting;

use crate::prompt::Command;
use crate::{Cx, Layer};

/// The layer of a command, where there is one.
pub(crate) fn open(command: &Command, cx: &mut Cx<'_>) -> Option<Box<dyn Layer>> {
    match command {
        Command::Help | Command::Keys => Some(Box::new(help::Help::default())),
        _ => {
            cx.say("There is nothing to show for this here; the commands of `hames` have it.");
            None
        }
    }
}

/// Puts what waits for a person on top, and takes away what no longer waits.
pub(crate) fn ask(layers: &mut Vec<Box<dyn Layer>>, waiting: &Waiting, _cx: &mut Cx<'_>) {
    layers.retain(|layer| layer.name() != decide::NAME);
    if let Some(layer) = decide::Decide::of(waiting) {
        layers.push(Box::new(layer));
    }
}
