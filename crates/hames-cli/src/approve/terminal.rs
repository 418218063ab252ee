//! Asking at the terminal.
//!
//! The output of the run waits while a question stands, so that nothing comes between question and answer. The terminal
//! stays in its usual mode: a line and Enter is an answer, so there is nothing to restore, and Ctrl-C is the signal it
//! always is. What was typed before the question stood is thrown away: nobody meant it as an answer.
//!
//! A thread of its own waits for the line. The run's end, or an interrupt, drops the question; the thread notices at
//! once and ends without an answer.

use std::io::{PipeReader, Write};
use std::os::fd::AsFd;

use async_trait::async_trait;
use hames_protocol::{ApprovalAsked, Approver, Decision, QuestionAsked};
use tokio::sync::oneshot;

use super::sheet::{Extent, granted, question, sheet};
use crate::output::Style;
use crate::output::printer::{Hold, Sink};
use crate::sys;

/// Columns where the terminal does not say.
const USUAL_WIDTH: usize = 80;
/// Bytes of an answer that are looked at. A terminal gives a line of 4096 at most.
const ANSWER_BYTES: usize = 4096;

/// Who answers, for the record.
const BY: &str = "user";

/// The person at the terminal.
pub(super) struct Terminal {
    sink: Sink,
    style: Style,
}

impl Terminal {
    pub(super) fn new(sink: Sink, style: Style) -> Self {
        Self { sink, style }
    }
}

#[async_trait]
impl Approver for Terminal {
    async fn decide(&self, asked: &ApprovalAsked) -> Option<(Decision, String)> {
        let deciding = Deciding { asked: asked.clone(), style: self.style };
        self.stand(move |lines| deciding.ask(lines)).await.map(|decision| (decision, BY.to_owned()))
    }

    async fn answer(&self, asked: &QuestionAsked) -> Option<(String, String)> {
        let telling = Telling { asked: asked.clone(), style: self.style };
        self.stand(move |lines| telling.ask(lines)).await.map(|answer| (answer, BY.to_owned()))
    }
}

impl Terminal {
    /// Lets a question stand until `ask` has its answer, on a thread of its own.
    async fn stand<T: Send + 'static>(&self, ask: impl FnOnce(&Lines) -> Option<T> + Send + 'static) -> Option<T> {
        let hold = self.sink.hold().await;
        let (cancelled, cancel) = std::io::pipe().ok()?;
        let (reply, answer) = oneshot::channel();
        std::thread::Builder::new()
            .name("question".into())
            .spawn(move || {
                // Nobody waits for it any more where the run has ended.
                let _ = reply.send(ask(&Lines { cancelled }));
            })
            .ok()?;
        let mut open = Open { hold: Some(hold), _cancel: cancel };
        let answer = answer.await.ok().flatten()?;
        open.hold = None;
        Some(answer)
    }
}

/// A question that stands. Dropped without an answer it ends the line the cursor is in.
struct Open {
    hold: Option<Hold>,
    /// Closing it ends the thread.
    _cancel: std::io::PipeWriter,
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.hold.is_some() {
            // Before anything that waited, so straight to the terminal.
            print("\n");
        }
    }
}

/// What a line means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Decision(Decision),
    ShowAll,
    Odd,
}

impl Answer {
    /// Reads a line; `lasting` says that more than this once can be answered.
    fn of(line: &str, lasting: bool) -> Answer {
        match line.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" | "once" => Answer::Decision(Decision::Once),
            "s" | "session" if lasting => Answer::Decision(Decision::Session),
            "f" | "folder" if lasting => Answer::Decision(Decision::Folder),
            "n" | "no" => Answer::Decision(Decision::Deny),
            "v" | "view" => Answer::ShowAll,
            _ => Answer::Odd,
        }
    }
}

struct Deciding {
    asked: ApprovalAsked,
    style: Style,
}

impl Deciding {
    /// Shows the question and waits for its answer; `None` where it was dropped.
    fn ask(&self, lines: &Lines) -> Option<Decision> {
        self.show(Extent::Short);
        lines.forget_typed();
        loop {
            self.prompt();
            match lines.next() {
                Line::Cancelled => return None,
                Line::End => {
                    print("\n");
                    return Some(Decision::Deny);
                }
                Line::Text(line) => match Answer::of(&line, self.is_lasting()) {
                    Answer::Decision(decision) => return Some(decision),
                    Answer::ShowAll => self.show(Extent::Whole),
                    Answer::Odd => {}
                },
            }
        }
    }

    fn is_lasting(&self) -> bool {
        !self.asked.grants.is_empty()
    }

    fn show(&self, extent: Extent) {
        let sheet = sheet(&self.asked, width(), self.style, extent);
        let mut text = sheet.text;
        if self.is_lasting() {
            text.push_str(&self.style.dim("  s and f allow from then on"));
            text.push('\n');
            granted(&self.asked.grants).iter().for_each(|line| text.push_str(&format!("    {line}\n")));
        }
        if sheet.left_out > 0 {
            let said = format!("  {} lines are not shown; v shows all of it", sheet.left_out);
            text.push_str(&self.style.yellow(&said));
            text.push('\n');
        }
        print(&text);
    }

    fn prompt(&self) {
        let choices = match self.is_lasting() {
            true => "y once, s this session, f this folder, n no, v show all",
            false => "y once, n no, v show all",
        };
        print(&format!("{} > ", self.style.bold(choices)));
    }
}

struct Telling {
    asked: QuestionAsked,
    style: Style,
}

impl Telling {
    /// Shows the question and waits for its answer; `None` where it was dropped, or where none will come.
    fn ask(&self, lines: &Lines) -> Option<String> {
        print(&question(&self.asked, width(), self.style));
        lines.forget_typed();
        let how = if self.asked.choices.is_empty() { "your answer" } else { "a number, or your own words" };
        loop {
            print(&format!("{} > ", self.style.bold(how)));
            match lines.next() {
                Line::Cancelled => return None,
                Line::End => {
                    print("\n");
                    return None;
                }
                Line::Text(line) => {
                    if let Some(answer) = meant(&line, &self.asked.choices) {
                        return Some(answer);
                    }
                }
            }
        }
    }
}

/// What a line says as an answer: a choice, by its words or its number, or its own words. Nothing where it is blank.
fn meant(line: &str, choices: &[String]) -> Option<String> {
    let words = line.trim();
    let by_number = || choices.get(words.parse::<usize>().ok()?.checked_sub(1)?);
    let chosen = choices.iter().find(|choice| choice.trim() == words).or_else(by_number);
    Some(chosen.map_or(words, String::as_str).to_owned()).filter(|answer| !answer.trim().is_empty())
}

/// What came from the terminal.
enum Line {
    Text(String),
    /// No answer will come from there.
    End,
    /// The question was dropped.
    Cancelled,
}

/// The lines that are typed while a question stands.
struct Lines {
    cancelled: PipeReader,
}

impl Lines {
    /// Throws away what was typed before the question could be read.
    fn forget_typed(&self) {
        let _ = sys::forget_typed(std::io::stdin().as_fd());
    }

    /// The next line of the terminal.
    fn next(&self) -> Line {
        let stdin = std::io::stdin().lock();
        let mut line = Vec::new();
        loop {
            match sys::wait_readable(stdin.as_fd(), self.cancelled.as_fd()) {
                Ok(sys::Readable::First) => {}
                Ok(sys::Readable::Second) => return Line::Cancelled,
                Err(_) => return Line::End,
            }
            let mut bytes = [0; ANSWER_BYTES];
            match sys::read_once(stdin.as_fd(), &mut bytes) {
                Ok(0) => return Line::End,
                Ok(n) => line.extend_from_slice(&bytes[..n]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => return Line::End,
            }
            if line.iter().any(|byte| matches!(byte, b'\n' | b'\r')) {
                return Line::Text(String::from_utf8_lossy(&line).into_owned());
            }
            line.truncate(ANSWER_BYTES);
        }
    }
}

fn width() -> usize {
    sys::columns(std::io::stderr().as_fd()).unwrap_or(USUAL_WIDTH)
}

/// Straight to the terminal, past the output that waits. Nobody can be told where even that is closed.
fn print(text: &str) {
    let mut to = std::io::stderr().lock();
    let _ = to.write_all(text.as_bytes());
    let _ = to.flush();
}

#[cfg(test)]
mod tests;
