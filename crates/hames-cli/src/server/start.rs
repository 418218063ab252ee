//! Finding the server of a home, and starting one.

use std::process::{Command, Stdio};
use std::sync::Arc;

use hames_client::{Finder, Place, Starter};

use crate::engine::myself;
use crate::home::Home;

/// Looks for the server of this home; starts none.
pub(crate) fn finder(home: &Home) -> Finder {
    Finder::new(Place::of(home.data()))
}

/// Starts a server as `hames serve` does: the command ends when the server answers, and says what is wrong where it does
/// not. It inherits this process's environment and nothing else.
pub(crate) fn starter(args: &[String]) -> Starter {
    let args = args.to_vec();
    Arc::new(move || {
        let program = myself().ok_or_else(|| std::io::Error::other("this program cannot be found"))?;
        Command::new(program)
            .arg("serve")
            .args(&args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
    })
}
