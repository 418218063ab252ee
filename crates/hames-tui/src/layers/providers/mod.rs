//! Setting up a provider, for somebody who has none: choose one, give its key, see it tested, and save it.
//!
//! Three pages, one after the other: the `choice` (what answers on this machine, what is configured, what is well known, an
//! address of one's own), the `form`, and the `test` with what it found. Nothing is written before the last one is left with
//! yes. A key is typed unseen, held nowhere but in the form, and given to nobody but the server.

mod form;
mod test;

use hames_protocol::api::{ApiError, KnownProviders, ProviderDraft, ProviderRow};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};

use super::parts::{Item, List, Look, Said, frame, line, plural};
use crate::{Action, Answer, Cx, Input, Layer, Outcome, Request, Sight, Ticket};
use form::{Filled, Form};
use test::{Asked, Test};

/// The row for an address that nobody knows.
const OWN: &str = "own";

/// Where one is.
enum Page {
    Choice,
    Form(Box<Form>),
    Test(Box<Test>, Option<Box<Form>>),
}

/// Setting up a provider.
pub(super) struct Setup {
    page: Page,
    list: List,
    known: Option<KnownProviders>,
    configured: Option<Vec<ProviderRow>>,
    asked: Vec<Ticket>,
    wrong: Option<String>,
}

impl Setup {
    pub(super) fn new(cx: &mut Cx<'_>) -> Self {
        let mut layer = Self {
            page: Page::Choice,
            list: List::new(),
            known: None,
            configured: None,
            asked: Vec::new(),
            wrong: None,
        };
        layer.read(cx);
        layer
    }

    fn read(&mut self, cx: &mut Cx<'_>) {
        self.asked = vec![cx.ask(Request::Providers), cx.ask(Request::KnownProviders)];
    }

    fn items(&self) -> Vec<Item> {
        let mut items = Vec::new();
        let mut add = |id: String, group: &str, text: &str, about: String, note: (String, Look)| {
            items.push(Item {
                id,
                group: group.to_owned(),
                text: text.to_owned(),
                about,
                columns: vec![note],
                ..Item::default()
            });
        };
        for server in self.known.iter().flat_map(|known| &known.local) {
            let models = plural(server.models.len() as u64, "model");
            let id = format!("local {}", server.base_url);
            add(id, "On this machine", &server.title, String::new(), (models, Look::Good));
        }
        for provider in self.configured.iter().flatten() {
            let key = match provider.key.as_str() {
                "none" => ("no key".to_owned(), Look::Dim),
                key if key.ends_with("(not set)") => (key.to_owned(), Look::Warn),
                key => (format!("key: {key}"), Look::Good),
            };
            add(
                format!("configured {}", provider.name),
                "Configured; Enter tests it",
                &provider.name,
                provider.base_url.clone(),
                key,
            );
        }
        for known in self.known.iter().flat_map(|known| &known.known) {
            if self.configured.iter().flatten().any(|provider| provider.name == known.name) {
                continue;
            }
            let note = match (&known.key_env, known.has_key) {
                (Some(var), true) => (format!("${var} is set"), Look::Good),
                (Some(_), false) => ("needs a key".to_owned(), Look::Dim),
                (None, _) => ("on this machine".to_owned(), Look::Dim),
            };
            add(format!("known {}", known.name), "Well known", &known.title, known.base_url.clone(), note);
        }
        if self.known.is_some() {
            let about = "any server that speaks chat completions".to_owned();
            add(OWN.to_owned(), "Something else", "An address of your own", about, (String::new(), Look::Dim));
        }
        items
    }

    fn picked(&mut self, id: &str, cx: &mut Cx<'_>) {
        let (kind, name) = id.split_once(' ').unwrap_or((id, ""));
        let known = self.known.as_ref();
        let form = match kind {
            "local" => known
                .and_then(|known| known.local.iter().find(|server| server.base_url == name))
                .map(|server| Form::new(&self.free_name(&server.name), &server.base_url, None, false)),
            "known" => known
                .and_then(|known| known.known.iter().find(|known| known.name == name))
                .map(|known| Form::new(&known.name, &known.base_url, known.key_env.clone(), known.has_key)),
            "configured" => {
                let draft = ProviderDraft { name: name.to_owned(), ..ProviderDraft::default() };
                self.page = Page::Test(Box::new(Test::new(draft, cx)), None);
                None
            }
            _ => Some(Form::new("", "", None, false)),
        };
        if let Some(form) = form {
            self.page = Page::Form(Box::new(form));
        }
    }

    /// A name that no configured provider has.
    fn free_name(&self, name: &str) -> String {
        let is_taken = |name: &str| self.configured.iter().flatten().any(|provider| provider.name == name);
        let more = (2..100).map(|n| format!("{name}-{n}"));
        std::iter::once(name.to_owned()).chain(more).find(|name| !is_taken(name)).unwrap_or_default()
    }

    fn choice(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Outcome {
        if action == Some(Action::Abort) {
            return Outcome::Closed;
        }
        match self.list.handle(input, action) {
            Said::Picked(id) => self.picked(&id, cx),
            Said::Passed if !matches!(input, Input::Key(_) | Input::Paste(_) | Input::Mouse(_)) => {
                return Outcome::Passed;
            }
            _ => {}
        }
        Outcome::Taken
    }

    fn form(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Outcome {
        let Page::Form(form) = &mut self.page else { return Outcome::Passed };
        match form.handle(input, action) {
            Filled::Passed => return Outcome::Passed,
            Filled::Taken => {}
            Filled::Back => self.page = Page::Choice,
            Filled::Whole(draft) => {
                let is_taken = self.configured.iter().flatten().any(|provider| provider.name == draft.name);
                if is_taken {
                    form.refuse(format!("There is a provider \"{}\" already; choose another name.", line(&draft.name)));
                } else if let Page::Form(form) = std::mem::replace(&mut self.page, Page::Choice) {
                    self.page = Page::Test(Box::new(Test::new(*draft, cx)), Some(form));
                }
            }
        }
        Outcome::Taken
    }

    fn test(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Outcome {
        let Page::Test(test, form) = &mut self.page else { return Outcome::Passed };
        match test.handle(input, action, form.is_some(), cx) {
            Asked::Passed => return Outcome::Passed,
            Asked::Taken => {}
            Asked::Back => {
                self.page = form.take().map_or(Page::Choice, Page::Form);
            }
        }
        Outcome::Taken
    }
}

impl Layer for Setup {
    fn handle(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Outcome {
        match self.page {
            Page::Choice => self.choice(input, action, cx),
            Page::Form(_) => self.form(input, action, cx),
            Page::Test(..) => self.test(input, action, cx),
        }
    }

    fn answer(&mut self, ticket: Ticket, answer: Result<Answer, ApiError>, cx: &mut Cx<'_>) -> Outcome {
        if let Page::Test(test, _) = &mut self.page
            && test.is_asked(ticket)
        {
            if test.answer(ticket, answer, cx) {
                return Outcome::Closed;
            }
            return Outcome::Taken;
        }
        let before = self.asked.len();
        self.asked.retain(|asked| *asked != ticket);
        if self.asked.len() == before {
            return Outcome::Passed;
        }
        match answer {
            Ok(Answer::Providers(providers)) => self.configured = Some(providers.providers),
            Ok(Answer::KnownProviders(known)) => self.known = Some(known),
            Ok(_) => {}
            Err(error) => self.wrong = Some(line(&error.message)),
        }
        self.list.set(self.items());
        Outcome::Taken
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) -> Option<Position> {
        match &mut self.page {
            Page::Choice => {
                let is_new = self.configured.as_ref().is_some_and(Vec::is_empty);
                let title = if is_new { "Where is your model? No provider is set up yet" } else { "Providers" };
                let inner = frame(area, buf, sight, title);
                let empty = match &self.wrong {
                    Some(wrong) => format!("They cannot be read: {wrong}"),
                    None => "looking for model servers on this machine …".into(),
                };
                self.list.draw(inner, buf, &empty, sight)
            }
            Page::Form(form) => form.draw(area, buf, sight),
            Page::Test(test, form) => test.draw(area, buf, form.is_some(), sight),
        }
    }

    fn takes_text(&self) -> bool {
        !matches!(&self.page, Page::Test(test, _) if !test.takes_text())
    }

    fn hint(&self, sight: Sight<'_>) -> String {
        let back = sight.keys.hint(Action::Abort);
        match &self.page {
            Page::Choice => format!("Enter chooses · type to filter · {back} closes"),
            Page::Form(_) => format!("Tab next field · Enter tests it, nothing is saved yet · {back} back"),
            Page::Test(test, form) => test.hint(form.is_some(), &back, sight.keys),
        }
    }

    fn name(&self) -> &'static str {
        "providers"
    }
}

#[cfg(test)]
mod tests;
