//! Name, address and key of a provider. The key is typed unseen.

use hames_protocol::api::{ApiKey, ProviderDraft};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Position, Rect};

use super::super::parts::{Field, frame, wrapped};
use crate::prompt::paint::Line;
use crate::{Action, Input, Sight};

/// What an input did.
pub(super) enum Filled {
    Passed,
    Taken,
    /// Back to the choice.
    Back,
    /// Everything is there.
    Whole(Box<ProviderDraft>),
}

/// The fields, and the one that is written into.
pub(super) struct Form {
    name: Field,
    url: Field,
    key: Field,
    at: usize,
    key_env: Option<String>,
    has_key: bool,
    wrong: String,
}

impl Form {
    /// With what is known already; `key_env` is the variable the key is usually in, and whether it is set.
    pub(super) fn new(name: &str, url: &str, key_env: Option<String>, has_key: bool) -> Self {
        let mut form = Self {
            name: Field::new(name),
            url: Field::new(url),
            key: Field::default(),
            at: 0,
            key_env,
            has_key,
            wrong: String::new(),
        };
        form.at = [name.is_empty(), url.is_empty(), true].iter().position(|is_empty| *is_empty).unwrap_or(2);
        form
    }

    pub(super) fn refuse(&mut self, why: String) {
        self.at = 0;
        self.wrong = why;
    }

    fn field(&mut self) -> &mut Field {
        match self.at {
            0 => &mut self.name,
            1 => &mut self.url,
            _ => &mut self.key,
        }
    }

    pub(super) fn handle(&mut self, input: &Input, action: Option<Action>) -> Filled {
        let code = if let Input::Key(key) = input { Some(key.code) } else { None };
        match (action, code) {
            (Some(Action::Abort), _) => return Filled::Back,
            (Some(Action::Next), _) | (None, Some(KeyCode::Tab)) => self.at = (self.at + 1) % 3,
            (Some(Action::Previous | Action::Mode), _) => self.at = (self.at + 2) % 3,
            (Some(Action::Submit), _) => match self.whole() {
                Ok(draft) => return Filled::Whole(Box::new(draft)),
                Err((at, why)) => {
                    // An Enter in a field that is filled goes on to the one that is not.
                    self.wrong = if at > self.at { String::new() } else { why };
                    self.at = at;
                }
            },
            _ => {
                if !matches!(input, Input::Key(_) | Input::Paste(_) | Input::Mouse(_)) {
                    return Filled::Passed;
                }
                self.wrong.clear();
                self.field().handle(input, action);
            }
        }
        Filled::Taken
    }

    /// What was written, or which field is wrong and why.
    fn whole(&self) -> Result<ProviderDraft, (usize, String)> {
        let (name, url, key) = (self.name.text().trim(), self.url.text().trim(), self.key.text().trim());
        if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c == '/') {
            return Err((0, "A name has no blanks and no slashes; it stands before the model: NAME/MODEL.".into()));
        }
        let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
        if rest.is_none_or(|rest| rest.is_empty() || rest.starts_with('/') || rest.contains(char::is_whitespace)) {
            return Err((1, "An address begins with http:// or https://.".into()));
        }
        if key.contains(char::is_whitespace) {
            return Err((2, "A key has no blanks; it may have been pasted with something else.".into()));
        }
        let mut draft =
            ProviderDraft { name: name.to_owned(), base_url: Some(url.to_owned()), ..ProviderDraft::default() };
        match key.strip_prefix('$') {
            Some(var) => draft.api_key_env = Some(var.to_owned()),
            None if !key.is_empty() => draft.api_key = Some(ApiKey(key.to_owned())),
            None => match &self.key_env {
                Some(var) if self.has_key => draft.api_key_env = Some(var.clone()),
                Some(_) => {
                    return Err((2, "It needs a key: paste it here, or write $NAME of a variable that has it.".into()));
                }
                None => {}
            },
        }
        Ok(draft)
    }

    fn about_key(&self) -> String {
        match (&self.key_env, self.has_key) {
            (Some(var), true) => format!("Empty takes the key from ${var}, which is set."),
            (Some(var), false) => {
                format!("Paste it; it is not shown. Or write $NAME of a variable that has it (${var} is not set).")
            }
            (None, _) => "Empty for none, as most servers of one's own want it. It is not shown.".into(),
        }
    }

    pub(super) fn draw(&self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) -> Option<Position> {
        let inner = frame(area, buf, sight, "Set up a provider");
        let hidden = self.key.text().strip_prefix('$').map_or_else(
            || Field::new(&"•".repeat(self.key.text().chars().count().min(usize::from(area.width)))),
            |_| self.key.clone(),
        );
        let labels = ["Name     ", "Address  ", "Key      "];
        let mut cursor = None;
        for (at, (label, field)) in labels.iter().zip([&self.name, &self.url, &hidden]).enumerate() {
            let y = at as u16 * 2;
            if y >= inner.height {
                break;
            }
            let row = Rect { y: inner.y + y, height: 1, ..inner };
            let mark = if at == self.at { "› " } else { "  " };
            let place = field.draw(row, buf, &format!("{mark}{label}"), sight);
            if at == self.at {
                cursor = place;
            }
        }
        let below = Rect { y: inner.y + inner.height.min(6), height: inner.height.saturating_sub(6), ..inner };
        let (text, style) = match self.wrong.as_str() {
            "" => (self.about_key(), sight.theme.dim()),
            wrong => (wrong.to_owned(), sight.theme.bad()),
        };
        for (at, row) in wrapped(&text, below.width).iter().enumerate() {
            Line::new(below, at as u16).put(buf, row, style);
        }
        cursor
    }
}
