//! Asking a person at the terminal: a line, a choice, a key that nobody sees. For the commands that set something up; what
//! a run asks is `approve`'s business.

use std::io::{BufRead, IsTerminal, Write};

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

use crate::exit::Stop;

/// Bytes of an answer; a longer one is no answer.
const MAX_ANSWER_BYTES: u64 = 16 * 1024;
/// What Ctrl-C sends.
const CTRL_C: u8 = 3;

/// Somebody at the terminal. Questions go to standard error, so that output stays what it is.
pub(crate) struct Dialog(());

impl Dialog {
    /// `None` where there is nobody to ask.
    pub(crate) fn open() -> Option<Dialog> {
        (std::io::stdin().is_terminal() && std::io::stderr().is_terminal()).then_some(Dialog(()))
    }

    /// Says something before a question.
    pub(crate) fn say(&self, text: &str) {
        super::say(text);
    }

    /// Asks for a line; Enter alone is `default`.
    pub(crate) fn line(&self, question: &str, default: &str) -> Result<String, Stop> {
        let hint = if default.is_empty() { String::new() } else { format!(" [{default}]") };
        prompt(&format!("{question}{hint}: "));
        let answer = read()?;
        Ok(if answer.is_empty() { default.to_owned() } else { answer })
    }

    /// Asks until `accept` takes the answer; what it says against one is shown.
    pub(crate) fn until<T>(
        &self,
        question: &str,
        default: &str,
        mut accept: impl FnMut(&str) -> Result<T, String>,
    ) -> Result<T, Stop> {
        loop {
            match accept(&self.line(question, default)?) {
                Ok(value) => return Ok(value),
                Err(why) => self.say(&format!("  {why}")),
            }
        }
    }

    /// Asks for something that is not shown while it is typed.
    pub(crate) fn secret(&self, question: &str) -> Result<String, Stop> {
        // Hidden before it asks: what is typed at once, a Ctrl-C too, is as hidden as the rest.
        let hidden = Hidden::begin();
        prompt(&format!("{question}: "));
        let answer = read();
        drop(hidden);
        // The Enter was not shown either.
        prompt("\n");
        answer
    }
}

fn prompt(text: &str) {
    // Nobody is told where even that is closed.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// One line. The end of input, or Ctrl-C where it is no signal, is the end of the command.
fn read() -> Result<String, Stop> {
    let mut bytes = Vec::new();
    let mut stdin = std::io::Read::take(std::io::stdin().lock(), MAX_ANSWER_BYTES);
    let ended = |what: &str| Stop::usage(format!("{what}; nothing was changed"));
    // Not past a Ctrl-C: it ends the line while a key is typed.
    loop {
        let chunk = stdin.fill_buf().map_err(|e| ended(&format!("the terminal cannot be read: {e}")))?;
        if chunk.is_empty() {
            return Err(ended("the input ended"));
        }
        let line_end = chunk.iter().position(|b| matches!(b, b'\n' | &CTRL_C));
        let taken = line_end.map_or(chunk.len(), |at| at + 1);
        bytes.extend_from_slice(&chunk[..taken]);
        stdin.consume(taken);
        match bytes.last() {
            Some(b'\n') => break,
            Some(&CTRL_C) => return Err(ended("stopped")),
            _ => {}
        }
    }
    let text = String::from_utf8(bytes).map_err(|_| ended("the answer is not UTF-8"))?;
    Ok(text.trim().to_owned())
}

/// While it lives the terminal does not show what is typed. Ctrl-C is taken as input meanwhile, and ends the line: as a
/// signal it would leave the terminal like this.
struct Hidden(Option<Termios>);

impl Hidden {
    fn begin() -> Hidden {
        let stdin = std::io::stdin();
        let Ok(before) = tcgetattr(&stdin) else { return Hidden(None) };
        let mut hidden = before.clone();
        hidden.local_modes -= LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ISIG;
        hidden.special_codes[SpecialCodeIndex::VEOL] = CTRL_C;
        let set = tcsetattr(&stdin, OptionalActions::Now, &hidden);
        Hidden(set.is_ok().then_some(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // A terminal that went away needs nothing back.
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}
