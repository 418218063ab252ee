//! Looking through files ahead of whoever goes through them in order.
//!
//! A page of matches is made file by file, because what is shown depends on what was found before. Most files hold
//! nothing that goes onto it: they are counted on other threads, and whoever makes the page looks again into those few
//! that it shows. So the answer is the same however many threads there are.
//!
//! Memory stays bounded: threads stay a few batches ahead, and only whoever goes in order opens large files.

mod batches;

use std::io;
use std::ops::ControlFlow;
use std::sync::OnceLock;

use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkFinish, SinkMatch};
use hames_tools::ToolCx;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use self::batches::{Batches, Ends};
use super::find::Found;
use super::grep::Watched;
use super::hits::MAX_MATCHES;
use super::needle::Needle;

/// Files below which starting threads costs more than it saves.
const WORTH_IT: usize = 128;

/// Files a thread takes at once.
const BATCH: usize = 32;

/// Batches each thread may be ahead of whoever goes in order.
const BATCHES_AHEAD: usize = 8;

/// Larger files are left to whoever goes in order: a search may hold the whole of a file.
const MAX_FILE: u64 = 4 << 20;

/// Threads at most: a search is one call of many, and the disk is one.
const MAX_THREADS: usize = 4;

/// What is in a file, as far as counting tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Count {
    /// Matches; of a binary file those before it turned out to be one.
    pub(super) matches: usize,
    /// Lines that matches touch.
    pub(super) lines: usize,
    /// Bytes that were read.
    pub(super) read: u64,
    /// How far it could be searched.
    pub(super) end: End,
}

/// How the search of a file ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It is text.
    Text,
    /// It holds a NUL.
    Binary,
    /// It could not be opened, or not read to its end; why.
    Failed(String),
}

/// The threads that suit this machine.
pub(super) fn usual_threads() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS))
}

/// Hands every file in order to `each`, with its count where it was looked through ahead, until that breaks.
pub(super) fn in_order<'a>(
    cx: &ToolCx,
    needle: &Needle,
    files: &'a [Found],
    threads: usize,
    mut each: impl FnMut(&'a Found, Option<Count>) -> ControlFlow<()>,
) {
    if threads < 2 || files.len() < WORTH_IT {
        let _ = files.iter().try_for_each(|file| each(file, None));
        return;
    }
    let cancel = cx.cancel.child_token();
    let batches = Batches::new(files.len().div_ceil(BATCH), threads * BATCHES_AHEAD);
    let runtime = Handle::try_current().ok();
    std::thread::scope(|scope| {
        // However this ends, those who count find out, and are waited for.
        let _ends = Ends(&batches, &cancel);
        for _ in 0..threads {
            let leaves = batches.join();
            let (runtime, cancel, batches) = (runtime.clone(), &cancel, &batches);
            let work = move || {
                let _leaves = leaves;
                // Proposed content is read on the runtime.
                let _inside = runtime.as_ref().map(Handle::enter);
                count_batches(cx, needle, files, batches, cancel);
            };
            if std::thread::Builder::new().name("hames-search".into()).spawn_scoped(scope, work).is_err() {
                // Those that run are enough, and none is, too: then nothing is counted ahead.
                break;
            }
        }
        for (number, batch) in files.chunks(BATCH).enumerate() {
            let mut counts = batches.take(number).unwrap_or_default().into_iter();
            if batch.iter().try_for_each(|file| each(file, counts.next().flatten())).is_break() {
                break;
            }
        }
    });
}

fn count_batches(cx: &ToolCx, needle: &Needle, files: &[Found], batches: &Batches, cancel: &CancellationToken) {
    // One of its own: what a matcher needs while it works would be shared else.
    let matcher = needle.matcher.clone();
    let mut searcher = needle.counter();
    while let Some(number) = batches.next() {
        let batch = files.chunks(BATCH).nth(number).unwrap_or_default();
        let counts = batch.iter().map(|file| count(cx, &matcher, file, &mut searcher, cancel)).collect();
        batches.put(number, counts);
    }
}

fn count(
    cx: &ToolCx,
    matcher: &RegexMatcher,
    file: &Found,
    searcher: &mut Searcher,
    cancel: &CancellationToken,
) -> Option<Count> {
    if file.size > MAX_FILE || cancel.is_cancelled() {
        return None;
    }
    let reader = match cx.fs.open(&file.path) {
        Ok(reader) => reader,
        Err(error) => return Some(Count { matches: 0, lines: 0, read: 0, end: End::Failed(error.to_string()) }),
    };
    // A file may have grown since it was found; then it is not one to be held here either.
    let mut reader = Watched::limited(reader, MAX_FILE + 1, cancel);
    let mut tally = Tally::default();
    let searched = searcher.search_reader(matcher, &mut reader, &mut tally);
    if reader.read > MAX_FILE || tally.stopped {
        return None;
    }
    let end = match searched {
        Err(error) => End::Failed(format!("{}: {error}", file.path.shown)),
        Ok(()) if tally.binary => End::Binary,
        Ok(()) => End::Text,
    };
    Some(Count { matches: tally.matches, lines: tally.lines, read: reader.read, end })
}

#[derive(Default)]
struct Tally {
    matches: usize,
    lines: usize,
    binary: bool,
    stopped: bool,
}

impl Sink for &mut Tally {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, matched: &SinkMatch<'_>) -> Result<bool, io::Error> {
        self.matches += 1;
        self.lines += matched.lines().count();
        // With so many, whoever goes in order looks for itself where to stop.
        self.stopped = self.lines >= MAX_MATCHES;
        Ok(!self.stopped)
    }

    fn finish(&mut self, _searcher: &Searcher, finish: &SinkFinish) -> Result<(), io::Error> {
        self.binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}
