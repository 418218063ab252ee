//! One page of a list of lines, and the line that says how to go on.

/// Bytes kept free for the line that says how to go on.
pub(super) const TAIL_ROOM: usize = 160;

/// Which part of the results is wanted, and how many bytes there are for it.
#[derive(Clone, Copy)]
pub(super) struct Window {
    /// Results to skip.
    pub(super) offset: usize,
    /// Results to show at most.
    pub(super) limit: usize,
    /// Bytes the page may have.
    pub(super) room: usize,
}

impl Window {
    pub(super) fn new(offset: Option<usize>, limit: Option<usize>, cap: usize) -> Self {
        let cap = cap.min(super::RESULT_CAP);
        Self {
            offset: offset.unwrap_or(0),
            limit: limit.filter(|n| *n > 0).unwrap_or(super::DEFAULT_LIMIT),
            room: cap.saturating_sub(TAIL_ROOM.min(cap / 2)),
        }
    }
}

/// Lines of a list that fall into a window.
pub(super) struct Page {
    window: Window,
    text: String,
    shown: usize,
    total: usize,
    full: bool,
}

impl Page {
    pub(super) fn new(window: Window) -> Self {
        Self { window, text: String::new(), shown: 0, total: 0, full: false }
    }

    /// Takes the next result. The first of a page is always shown, whatever its length, so that paging gets on.
    pub(super) fn push(&mut self, line: &str) {
        let ordinal = self.total;
        self.total += 1;
        if ordinal < self.window.offset || self.full {
            return;
        }
        let fits = self.shown == 0 || self.text.len() + line.len() < self.window.room;
        if self.shown == self.window.limit || !fits {
            self.full = true;
            return;
        }
        self.text.push_str(line);
        self.text.push('\n');
        self.shown += 1;
    }

    /// The page; `what` names the results in the plural.
    pub(super) fn finish(mut self, what: &str) -> String {
        self.text.push_str(&tail(self.window.offset, self.shown, self.total, what));
        self.text.truncate(self.text.trim_end_matches('\n').len());
        self.text
    }
}

/// Says which part of the results was shown; empty where that was all.
pub(super) fn tail(offset: usize, shown: usize, total: usize, what: &str) -> String {
    let end = offset + shown;
    if shown == 0 && offset > 0 {
        format!("Nothing at offset {offset}: there are {total} {what}.")
    } else if end < total {
        format!("({what} {}-{end} of {total}; continue with offset {end})", offset + 1)
    } else if offset > 0 {
        format!("({what} {}-{end} of {total}; end)", offset + 1)
    } else {
        String::new()
    }
}
