//! The only part that touches a terminal, a clock and signals: reads keys, performs effects, draws frames.
//!
//! It sleeps until something comes: a burst of keys, something of the server, a signal, a moment the app asked for. A frame
//! is drawn when something came, at most thirty times a second, and only what differs is written.

mod burst;
mod decode;
mod ground;
mod keeping;
mod modes;
mod outside;
mod pace;
mod paint;
mod reader;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hames_client::Finder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant as Moment, sleep_until, timeout_at};

use crate::io::Io;
use crate::{App, Effect, Face, Input, Keymap, Start, Theme, Ticket};
use burst::Bursts;
pub(crate) use burst::clean;
use decode::Token;
pub use ground::Terminal;
use keeping::Keeping;
pub(crate) use outside::MAX_COPY;
use pace::Pace;
pub(crate) use paint::Painter;
use reader::{Heard, Reader};

/// How long answers are waited for at the end, where a message is on its way.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// Things of the server that are taken in before a frame is looked at again.
const AT_ONCE: usize = 8;

/// What the face is told by whoever starts it.
pub struct Options {
    /// Finds the server of the home, and starts one.
    pub finder: Finder,
    /// The folder, canonical.
    pub folder: PathBuf,
    /// The user's home, for paths that begin with `~/`.
    pub home: Option<PathBuf>,
    /// Which key means what.
    pub keys: Keymap,
    /// What is known of the terminal.
    pub terminal: Terminal,
    /// The command of the user's editor, with its arguments.
    pub editor: Option<String>,
    /// How it begins.
    pub start: Start,
    /// The folder that keeps what is written; it is kept in memory only where there is none.
    pub written: Option<PathBuf>,
}

/// How the face ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Somebody left.
    Left,
    /// A signal asked it to end: its number.
    Signal(i32),
    /// The terminal is gone.
    TerminalGone,
}

/// Signals that concern a terminal.
struct Signals {
    terminate: Signal,
    hang_up: Signal,
    interrupt: Signal,
    resized: Signal,
    stop: Signal,
}

impl Signals {
    fn catch() -> io::Result<Signals> {
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            resized: signal(SignalKind::window_change())?,
            stop: signal(SignalKind::from_raw(rustix::process::Signal::TSTP.as_raw()))?,
        })
    }

    async fn next(&mut self) -> Came {
        tokio::select! {
            _ = self.terminate.recv() => Came::End(rustix::process::Signal::TERM.as_raw()),
            _ = self.hang_up.recv() => Came::End(rustix::process::Signal::HUP.as_raw()),
            _ = self.interrupt.recv() => Came::End(rustix::process::Signal::INT.as_raw()),
            _ = self.resized.recv() => Came::Resized,
            _ = self.stop.recv() => Came::Stop,
        }
    }
}

/// What the shell wakes up for.
enum Came {
    Heard(Heard),
    Server(Option<Input>),
    End(i32),
    Resized,
    Stop,
    Due,
}

/// Shows the face on this terminal until somebody leaves. Standard input and output are the terminal.
pub async fn run(options: Options) -> io::Result<Ending> {
    let _restored = modes::Restored::on_every_way_out();
    let signals = Signals::catch()?;
    modes::enter(true)?;
    modes::write(ground::ASK)?;
    let reader = Reader::start(terminal()?)?;
    let theme = Theme { shade: options.terminal.shade(), depth: options.terminal.depth() };
    let face = Face {
        folder: options.folder.display().to_string(),
        home: options.home.as_ref().map(|home| home.display().to_string()),
        size: modes::size(),
        is_focused: true,
        has_mouse: true,
        ..Face::default()
    };
    let seed = options.start.seed.clone();
    let app = App::new(face, options.keys, theme, options.start);
    let (io, server) = Io::start(options.finder, options.home, options.folder);
    let keeping = Keeping::start(options.written, seed, &io)?;
    let begun = Instant::now();
    let shell = Shell {
        app,
        io,
        painter: Painter::default(),
        bursts: Bursts::default(),
        begun,
        // A terminal that says its ground is asked for before the first frame.
        pace: Pace::first_at(begun + ground::ASK_LIMIT),
        wake: None,
        editor: options.editor,
        reader: Some(reader),
        ending: None,
        keeping,
    };
    shell.live(server, signals).await
}

fn terminal() -> io::Result<OwnedFd> {
    io::stdin().as_fd().try_clone_to_owned()
}

struct Shell {
    app: App,
    io: Io,
    painter: Painter,
    bursts: Bursts,
    begun: Instant,
    pace: Pace,
    wake: Option<u64>,
    editor: Option<String>,
    reader: Option<Reader>,
    ending: Option<Ending>,
    keeping: Keeping,
}

impl Shell {
    /// Lives until somebody leaves; whatever ended it, what is written is kept.
    async fn live(mut self, mut server: mpsc::Receiver<Input>, mut signals: Signals) -> io::Result<Ending> {
        let (width, height) = modes::size();
        self.take(Input::Resize { width, height });
        let ending = self.until_left(&mut server, &mut signals).await;
        modes::restore();
        let until = Moment::now() + LAST_ANSWERS;
        while self.app.is_sending() {
            let Ok(Some(input)) = timeout_at(until, server.recv()).await else { break };
            self.take(input);
        }
        self.keeping.end(&mut self.app, server);
        ending
    }

    async fn until_left(&mut self, server: &mut mpsc::Receiver<Input>, signals: &mut Signals) -> io::Result<Ending> {
        loop {
            if let Some(ending) = self.ending {
                return Ok(ending);
            }
            if self.pace.due().is_some_and(|due| due <= Instant::now()) && self.draw().is_err() {
                return Ok(Ending::TerminalGone);
            }
            let due = self.due();
            let came = tokio::select! {
                biased;
                came = signals.next() => came,
                heard = heard(&mut self.reader) => Came::Heard(heard),
                input = server.recv() => Came::Server(input),
                () = sleep_until(due.unwrap_or_else(Moment::now)), if due.is_some() => Came::Due,
            };
            match came {
                Came::Heard(Heard::Burst(tokens)) => self.burst(tokens),
                Came::Heard(Heard::Gone) => return Ok(Ending::TerminalGone),
                Came::Server(Some(input)) => {
                    self.take(input);
                    for _ in 1..AT_ONCE {
                        let Ok(input) = server.try_recv() else { break };
                        self.take(input);
                    }
                }
                Came::Server(None) => return Ok(Ending::Left),
                Came::End(number) => {
                    self.take(Input::Leave);
                    self.ending = Some(Ending::Signal(number));
                }
                Came::Resized => self.resized(),
                Came::Stop => self.suspend(),
                Came::Due => {
                    self.keeping.tend(&mut self.app, Instant::now());
                    if self.wake.is_some_and(|wake| wake <= self.now()) {
                        self.wake = None;
                        self.take(Input::Wake);
                    }
                }
            }
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// When to wake up although nothing comes.
    fn due(&self) -> Option<Moment> {
        let wake = self.wake.map(|at| self.begun + Duration::from_millis(at));
        self.pace.due().into_iter().chain(wake).chain(self.keeping.due()).min().map(Moment::from_std)
    }

    fn draw(&mut self) -> io::Result<()> {
        let (size, now) = (modes::size(), self.now());
        let app = &mut self.app;
        let bytes = self.painter.frame(size, |area, buf| app.draw(area, buf, now))?;
        self.pace.drawn(Instant::now());
        // What was not finished in this frame is drawn in one of the next.
        if let Some(at) = self.app.goes_on(now) {
            self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
        }
        if bytes.is_empty() { Ok(()) } else { modes::write(&bytes) }
    }

    fn burst(&mut self, tokens: Vec<Token>) {
        for token in &tokens {
            match token {
                Token::Ground(colour) => {
                    self.pace.answered(Instant::now());
                    self.take(Input::Shade(ground::shade_of(*colour)));
                }
                // It has answered everything it would.
                Token::Attributes => self.pace.answered(Instant::now()),
                _ => {}
            }
        }
        let now = self.now();
        for input in self.bursts.take(tokens, now) {
            self.take(input);
        }
    }

    /// To the app, and what it wants done is done.
    fn take(&mut self, input: Input) {
        self.pace.touch();
        let now = self.now();
        // Each time: a machine that slept has another time, though the app's clock stood still.
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.app.set_time(u64::try_from(unix.as_millis()).unwrap_or(u64::MAX), now);
        let by_hand = matches!(input, Input::Key(_) | Input::Paste(_) | Input::Mouse(_));
        for effect in self.app.update(input, now) {
            self.perform(effect, by_hand);
        }
        self.keeping.note(&mut self.app, Instant::now());
    }

    fn resized(&mut self) {
        let (width, height) = modes::size();
        self.painter.forget();
        self.pace.hurry(Instant::now());
        self.take(Input::Resize { width, height });
    }

    fn perform(&mut self, effect: Effect, by_hand: bool) {
        match effect {
            Effect::Ask(ticket, request) => self.io.ask(ticket, *request, by_hand),
            Effect::Watch { session, after } => self.io.watch(session, after),
            Effect::Unwatch => self.io.unwatch(),
            Effect::WakeAt(at) => self.wake = Some(at),
            Effect::Recall { spot, folder } => self.keeping.recall(spot, folder),
            Effect::Copy(text) => self.say_to_terminal(outside::copy(&text)),
            Effect::Notify(text) => self.say_to_terminal(outside::notice(&text)),
            Effect::Mouse(is_on) => {
                if modes::set_mouse(is_on).is_err() {
                    self.ending = Some(Ending::TerminalGone);
                }
            }
            Effect::Edit(ticket, text) => self.edit(ticket, &text),
            Effect::PasteImage(ticket) => self.io.clipboard_image(ticket),
            Effect::ReadFile(ticket, path) => self.io.read_file(ticket, path),
            Effect::SaveExport(ticket, session, path) => self.io.export(ticket, session, path),
            Effect::Suspend => self.suspend(),
            Effect::Redraw => self.painter.forget(),
            Effect::Quit => self.ending = Some(Ending::Left),
            // The app's own.
            Effect::Show(_)
            | Effect::ShowAt { .. }
            | Effect::Set(..)
            | Effect::New(_)
            | Effect::Draft(..)
            | Effect::Say(_) => {}
        }
    }

    fn say_to_terminal(&mut self, bytes: Vec<u8>) {
        if modes::write(&bytes).is_err() {
            self.ending = Some(Ending::TerminalGone);
        }
    }

    /// Gives the terminal back while something else has it, and takes it again.
    fn away<T>(&mut self, what: impl FnOnce(&Shell) -> T) -> T {
        self.reader = None;
        modes::restore();
        self.keeping.now(&mut self.app);
        let done = what(self);
        let back = modes::enter(true).and_then(|()| Reader::start(terminal()?));
        match back {
            Ok(reader) => self.reader = Some(reader),
            Err(_) => self.ending = Some(Ending::TerminalGone),
        }
        self.resized();
        done
    }

    fn suspend(&mut self) {
        if outside::has_shell() {
            self.away(|_| outside::stop());
        } else {
            self.take_notice("There is no shell to go back to.");
        }
    }

    fn edit(&mut self, ticket: Ticket, text: &str) {
        let edited = self.away(|shell| outside::edit(shell.editor.as_deref(), text));
        self.take(Input::Reply(ticket, edited));
    }

    fn take_notice(&mut self, text: &str) {
        self.app.notice(text);
        self.pace.touch();
    }
}

async fn heard(reader: &mut Option<Reader>) -> Heard {
    match reader {
        Some(reader) => reader.next().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
