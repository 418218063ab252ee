//! Everything that reaches the terminal: the only module that prints.
//!
//! A run's events are rendered by [`text`] or [`json`] and written by [`printer`], which never waits for a reader. The
//! other commands write through [`Out`].

pub(crate) mod clean;
mod descriptor;
pub(crate) mod dialog;
pub(crate) mod json;
pub(crate) mod money;
pub(crate) mod printer;
pub(crate) mod text;
pub(crate) mod watch;
pub(crate) mod window;

use std::io::{BufWriter, IsTerminal, Stdout, Write};

use crate::env::Env;
use crate::exit::Stop;

/// Standard output of a command that is no run: buffered, and quiet when its reader goes away.
pub(crate) struct Out {
    to: BufWriter<Stdout>,
    closed: bool,
}

impl Out {
    pub(crate) fn new() -> Self {
        Self { to: BufWriter::with_capacity(64 * 1024, std::io::stdout()), closed: false }
    }

    /// Writes one line.
    pub(crate) fn line(&mut self, text: impl AsRef<str>) -> Result<(), Stop> {
        writeln!(self, "{}", text.as_ref())?;
        Ok(())
    }

    /// Writes a value as one line of JSON.
    pub(crate) fn json(&mut self, value: &impl serde::Serialize) -> Result<(), Stop> {
        serde_json::to_writer(&mut *self, value).map_err(std::io::Error::from)?;
        self.write_all(b"\n")?;
        Ok(())
    }

    /// Whether whoever read it went away.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Writes out what is buffered. Every command ends with it.
    pub(crate) fn finish(mut self) -> Result<(), Stop> {
        self.flush()?;
        Ok(())
    }

    fn seen<T>(&mut self, written: std::io::Result<T>) -> std::io::Result<T> {
        self.closed |= written.as_ref().is_err_and(|e| e.kind() == std::io::ErrorKind::BrokenPipe);
        written
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.to.write(bytes);
        self.seen(written)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        let flushed = self.to.flush();
        self.seen(flushed)
    }
}

/// Prints name and version. Nobody is told where standard output is closed.
pub(crate) fn print_version() {
    let _ = writeln!(std::io::stdout(), "hames {}", env!("CARGO_PKG_VERSION"));
}

/// Says something on standard error. Nobody is told where even that is closed.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Says what failed, in the words of the failure and of the provider.
pub(crate) fn say_failure(failure: &hames_protocol::Failure) {
    say(&text::failure_lines(failure).join("\n"));
}

/// Asks a yes-or-no question on the terminal; `None` where there is nobody to ask.
pub(crate) fn ask(question: &str) -> Option<bool> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return None;
    }
    let _ = write!(std::io::stderr(), "{question} [y/N] ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).ok()?;
    Some(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Whether a stream is coloured: a terminal that has colours, and `NO_COLOR` is not set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Style {
    colour: bool,
}

impl Style {
    /// For standard error.
    pub(crate) fn for_stderr(env: &Env) -> Self {
        Self::of(std::io::stderr().is_terminal(), env)
    }

    /// For standard output.
    pub(crate) fn for_stdout(env: &Env) -> Self {
        Self::of(std::io::stdout().is_terminal(), env)
    }

    fn of(terminal: bool, env: &Env) -> Self {
        Self { colour: terminal && env.get("NO_COLOR").is_none() && env.get("TERM") != Some("dumb") }
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }
    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }
    pub(crate) fn cyan(self, text: &str) -> String {
        self.paint("36", text)
    }
    pub(crate) fn red(self, text: &str) -> String {
        self.paint("31", text)
    }
    pub(crate) fn green(self, text: &str) -> String {
        self.paint("32", text)
    }
    pub(crate) fn yellow(self, text: &str) -> String {
        self.paint("33", text)
    }

    /// A line of a unified diff.
    pub(crate) fn diff_line(self, line: &str) -> String {
        match line.as_bytes().first() {
            Some(b'+') => self.green(line),
            Some(b'-') => self.red(line),
            _ => self.dim(line),
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_need_a_terminal_and_nobody_against_them() {
        for (terminal, vars, colour) in [
            (true, &[][..], true),
            (false, &[], false),
            (true, &[("NO_COLOR", "1")], false),
            (true, &[("NO_COLOR", "")], true),
            (true, &[("TERM", "dumb")], false),
        ] {
            assert_eq!(Style::of(terminal, &Env::of(vars)), Style { colour }, "{terminal} {vars:?}");
        }
    }
}
