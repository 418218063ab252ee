//! When a list opens over the prompt, what it offers, and what a choice writes.

use super::attach::{Attachment, MAX_ATTACHMENTS};
use super::command::{self, entry};
use super::draft::Piece;
use super::mention::Mention;
use super::menu::{Item, Menu, Of};
use super::{Prompt, PromptOutcome, fuzzy, mention, path};
use crate::Cx;

/// Earlier messages that are listed.
const MAX_FOUND: usize = 50;
/// Characters of an earlier message that are listed and searched.
const MAX_SHOWN: usize = 300;

impl Prompt {
    /// Looks at what stands before the cursor, after a key that wrote or deleted (`is_written`) or only moved.
    pub(super) fn refresh_list(&mut self, is_written: bool, cx: &mut Cx<'_>) {
        if matches!(self.menu.as_ref().map(|menu| menu.of), Some(Of::History)) {
            return;
        }
        let wanted = self.wanted_list();
        if wanted.as_ref().map(|(of, _)| *of) != self.dismissed {
            self.dismissed = None;
        }
        let is_open = self.menu.is_some();
        match wanted {
            Some((of, query)) if self.dismissed.is_none() && (is_written || is_open) => self.list(of, query, cx),
            _ => self.menu = None,
        }
    }

    fn wanted_list(&self) -> Option<(Of, String)> {
        let (text, cursor) = (self.now.draft.text(), self.now.draft.cursor());
        if self.now.draft.selection().is_some() {
            return None;
        }
        let may_be_command = self.now.editing.is_none() && !text.contains('\n');
        let name = command::split(text).map(|(name, _)| name).filter(|name| (1..=name.len() + 1).contains(&cursor));
        if let Some(name) = name.filter(|_| may_be_command) {
            return Some((Of::Commands, name.to_owned()));
        }
        mention::under(text, cursor).map(|(at, query)| (Of::Files(at), query))
    }

    fn list(&mut self, of: Of, query: String, cx: &mut Cx<'_>) {
        let open = self.menu.take().filter(|menu| menu.of == of);
        let is_open = open.is_some();
        let mut menu = open.unwrap_or_else(|| Menu::new(of));
        menu.query = query;
        match of {
            Of::Commands => {
                let found = command::filter(&menu.query).into_iter().map(|(entry, at)| Item {
                    value: format!("/{}", entry.name),
                    matched: at.into_iter().map(|at| at + 1).collect(),
                    about: match entry.arguments {
                        "" => entry.does.to_owned(),
                        arguments => format!("{arguments}  {}", entry.does),
                    },
                });
                menu.set(found.collect());
                // Nothing fits: the hint line says so.
                self.menu = (!menu.is_empty()).then_some(menu);
            }
            Of::Files(_) => {
                if !is_open {
                    // What was found for an earlier mention may be there no more.
                    self.mention = Mention::default();
                }
                self.mention.want(&menu.query, self.session.as_ref(), cx);
                self.menu = Some(menu);
                self.list_files();
            }
            Of::History => self.menu = Some(menu),
        }
    }

    /// Lists the files that are known for the name.
    pub(super) fn list_files(&mut self) {
        let Some(menu) = self.menu.as_mut().filter(|menu| matches!(menu.of, Of::Files(_))) else { return };
        let (items, more) = self.mention.items(&menu.query);
        menu.set(items);
        menu.more = more;
        menu.is_looking = self.mention.is_looking();
    }

    /// Opens the search in what was sent before.
    pub(super) fn search_history(&mut self) {
        let mut menu = Menu::new(Of::History);
        self.list_history(&mut menu);
        self.menu = Some(menu);
    }

    fn list_history(&self, menu: &mut Menu) {
        let Some(history) = self.histories.get(&self.folder) else { return menu.set(Vec::new()) };
        let found = history.newest_first().enumerate().filter_map(|(index, piece)| {
            let line: String = one_line(piece);
            let found = fuzzy::find(&menu.query, &line)?;
            Some(Item { value: line, matched: found.at, about: format!("{index}") })
        });
        menu.set(found.take(MAX_FOUND).map(|item| Item { about: String::new(), ..item }).collect());
    }

    /// A letter, or none for Backspace, while the history is searched.
    pub(super) fn type_into_search(&mut self, letter: Option<char>) {
        let Some(mut menu) = self.menu.take() else { return };
        match letter {
            Some(c) if !c.is_control() => menu.query.push(c),
            Some(_) => {}
            None => {
                menu.query.pop();
            }
        }
        self.list_history(&mut menu);
        self.menu = Some(menu);
    }

    /// Takes what is chosen. `None` where Enter is to do what it does without a list.
    pub(super) fn choose(&mut self, is_enter: bool, cx: &mut Cx<'_>) -> Option<PromptOutcome> {
        let menu = self.menu.as_ref()?;
        let of = menu.of;
        let Some(item) = menu.chosen().cloned() else {
            return if is_enter && of != Of::History { None } else { Some(PromptOutcome::Taken) };
        };
        match of {
            Of::Commands => {
                let needs =
                    entry(&item.value[1..]).is_some_and(|entry| entry.arguments.starts_with(|c: char| c != '['));
                self.menu = None;
                let behind = self.now.draft.text().find(char::is_whitespace).unwrap_or(self.now.draft.text().len());
                let has_more = self.now.draft.text().len() > behind;
                let space = if has_more || (is_enter && !needs) { "" } else { " " };
                self.now.draft.replace(0..behind, Piece::typed(&format!("{}{space}", item.value)));
                (!is_enter || needs).then_some(PromptOutcome::Taken)
            }
            // It is written whole already: Enter means the message.
            Of::Files(_) if is_enter && item.value == menu.query => {
                self.menu = None;
                None
            }
            Of::Files(at) => {
                let cursor = self.now.draft.cursor();
                self.now.draft.replace(at..cursor, Piece::typed(&mention::written(&item.value)));
                self.menu = None;
                if item.value.ends_with('/') {
                    self.refresh_list(true, cx);
                }
                Some(PromptOutcome::Taken)
            }
            Of::History => {
                self.menu = None;
                let found = self.histories.get(&self.folder);
                let found =
                    found.and_then(|history| history.newest_first().find(|piece| one_line(piece) == item.value));
                if let Some(piece) = found.cloned() {
                    self.now.draft.set(piece);
                }
                Some(PromptOutcome::Taken)
            }
        }
    }

    /// Closes the list; it stays closed where it is.
    pub(super) fn dismiss(&mut self) {
        self.dismissed = self.menu.take().map(|menu| menu.of);
    }

    /// Text that came at once. A path is offered to be attached.
    pub(super) fn paste(&mut self, text: &str, cx: &mut Cx<'_>) -> PromptOutcome {
        if matches!(self.menu.as_ref().map(|menu| menu.of), Some(Of::History)) {
            text.chars().take(MAX_SHOWN).for_each(|c| self.type_into_search(Some(c)));
            return PromptOutcome::Taken;
        }
        if text.is_empty() {
            // What terminals give where the clipboard holds an image.
            self.paste_image(cx);
            return PromptOutcome::Taken;
        }
        self.begin_writing();
        let text = super::text::clean(text);
        let range = self.now.draft.paste(&text);
        let paths = path::paths(&text);
        self.offer = (!paths.is_empty()).then_some((range, paths));
        // A list that opened by itself would take the Enter that comes right behind.
        self.menu = None;
        self.mention.tend(self.session.as_ref(), cx);
        PromptOutcome::Taken
    }

    /// Attaches what a paste offered, in place of its text.
    pub(super) fn take_offer(&mut self, cx: &mut Cx<'_>) -> bool {
        let Some((range, paths)) = self.offer.take() else { return false };
        if self.now.attachments.len() + paths.len() > MAX_ATTACHMENTS {
            self.note = Some(format!("{MAX_ATTACHMENTS} files can go along; name the others, the agent can read them"));
            return true;
        }
        self.now.draft.replace(range, Piece::default());
        for path in &paths {
            self.now.attachments.push(Attachment::file(path, cx));
        }
        true
    }

    /// Attaches a file that was named: by a path as a drop gives it, or from the session's folder on.
    pub(super) fn attach(&mut self, path: &str, cx: &mut Cx<'_>) {
        let mut paths = path::paths(path);
        if paths.is_empty() {
            let path = path.trim_matches(['"', '\'']);
            let is_rooted = path.starts_with('/') || path.starts_with("~/");
            paths.push(if is_rooted {
                path.to_owned()
            } else {
                format!("{}/{path}", self.folder.trim_end_matches('/'))
            });
        }
        let cursor = self.now.draft.cursor();
        self.offer = Some((cursor..cursor, paths));
        self.take_offer(cx);
    }

    /// Attaches the image in the clipboard.
    pub(super) fn paste_image(&mut self, cx: &mut Cx<'_>) {
        if self.now.attachments.len() >= MAX_ATTACHMENTS {
            self.note = Some(format!("{MAX_ATTACHMENTS} files can go along; take one off first"));
            return;
        }
        self.begin_writing();
        self.now.attachments.push(Attachment::clipboard(cx));
    }
}

/// An earlier message in one line.
fn one_line(piece: &Piece) -> String {
    let mut line = String::new();
    let mut chips = piece.chips().iter();
    for c in piece.text().chars().take(MAX_SHOWN) {
        match c {
            super::text::CHIP => line.push_str(chips.next().map(super::draft::Chip::label).unwrap_or_default()),
            c if c.is_whitespace() => line.push(' '),
            c => line.push(c),
        }
    }
    line
}
