//! A provider under test: step by step, what is wrong and what to do about it; then the model that is to be the default one,
//! and the file.

use hames_protocol::api::{ApiError, CheckState, ProviderDraft, ProviderTest};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::{Position, Rect};

use super::super::parts::{Item, List, Look, Said, Scroll, frame, line};
use crate::{Action, Answer, Cx, Input, Keymap, Request, Sight, Ticket};

/// What an input did.
pub(super) enum Asked {
    Passed,
    Taken,
    Back,
}

/// A test, and what came of it.
pub(super) struct Test {
    draft: ProviderDraft,
    testing: Option<Ticket>,
    saving: Option<Ticket>,
    found: Option<Result<ProviderTest, String>>,
    models: List,
    /// The models are to be chosen from.
    is_choosing: bool,
    said: Option<String>,
    scroll: Scroll,
}

impl Test {
    /// Begins.
    pub(super) fn new(draft: ProviderDraft, cx: &mut Cx<'_>) -> Self {
        let mut test = Self {
            draft,
            testing: None,
            saving: None,
            found: None,
            models: List::new(),
            is_choosing: false,
            said: None,
            scroll: Scroll::default(),
        };
        test.begin(cx);
        test
    }

    fn begin(&mut self, cx: &mut Cx<'_>) {
        (self.found, self.said) = (None, None);
        self.testing = Some(cx.ask(Request::TestProvider(self.draft.clone())));
    }

    pub(super) fn is_asked(&self, ticket: Ticket) -> bool {
        self.testing == Some(ticket) || self.saving == Some(ticket)
    }

    fn is_well(&self) -> bool {
        matches!(&self.found, Some(Ok(found)) if found.ok)
    }

    /// Takes an answer; true where all is done.
    pub(super) fn answer(&mut self, ticket: Ticket, answer: Result<Answer, ApiError>, cx: &mut Cx<'_>) -> bool {
        if self.saving == Some(ticket) {
            self.saving = None;
            match answer {
                Ok(_) => {
                    let model = self.draft.model.as_deref().map(|id| format!(" with {}", line(id))).unwrap_or_default();
                    cx.say(format!("{} is set up{model}. Write what is to be done.", line(&self.draft.name)));
                    return true;
                }
                Err(error) => self.said = Some(format!("Not saved: {}", line(&error.message))),
            }
            return false;
        }
        self.testing = None;
        self.found = Some(match answer {
            Ok(Answer::Tested(found)) => Ok(found),
            Ok(_) => Err("the server answered something else".into()),
            Err(error) => Err(line(&error.message)),
        });
        if let Some(Ok(found)) = &self.found {
            let items = found.models.iter().map(|id| Item { id: id.clone(), text: id.clone(), ..Item::default() });
            self.models.set(items.collect());
            if let Some(model) = &found.model {
                self.models.choose(model);
            }
        }
        false
    }

    fn save(&mut self, model: Option<String>, cx: &mut Cx<'_>) {
        if self.saving.is_none() {
            self.draft.model = model;
            self.said = None;
            self.saving = Some(cx.ask(Request::SaveProvider(self.draft.clone())));
        }
    }

    pub(super) fn handle(&mut self, input: &Input, action: Option<Action>, is_new: bool, cx: &mut Cx<'_>) -> Asked {
        if self.is_choosing {
            return self.choose(input, action, cx);
        }
        if self.scroll.handle(input, action) {
            return Asked::Taken;
        }
        let code = if let Input::Key(key) = input { Some(key.code) } else { None };
        match (action, code) {
            (Some(Action::Abort), _) if self.saving.is_none() => return Asked::Back,
            (Some(Action::Submit), _) if self.is_well() && self.saving.is_none() => {
                if self.models.is_empty() {
                    let asked = self.found.as_ref().and_then(|found| found.as_ref().ok()?.model.clone());
                    self.save(asked, cx);
                } else {
                    self.is_choosing = true;
                }
            }
            (None, Some(KeyCode::Char('r'))) if self.testing.is_none() && self.saving.is_none() => self.begin(cx),
            // A server that is down now may be up later.
            (None, Some(KeyCode::Char('s'))) if is_new && self.testing.is_none() => self.save(None, cx),
            _ if matches!(input, Input::Key(_) | Input::Paste(_) | Input::Mouse(_)) => {}
            _ => return Asked::Passed,
        }
        Asked::Taken
    }

    fn choose(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Asked {
        if action == Some(Action::Abort) {
            self.is_choosing = false;
            return Asked::Taken;
        }
        match self.models.handle(input, action) {
            Said::Picked(id) => self.save(Some(id), cx),
            Said::Passed if !matches!(input, Input::Key(_) | Input::Paste(_) | Input::Mouse(_)) => {
                return Asked::Passed;
            }
            _ => {}
        }
        Asked::Taken
    }

    fn lines(&self, is_new: bool) -> Vec<Vec<(String, Look)>> {
        let text = |text: &str, look| vec![(text.to_owned(), look)];
        let mut out = Vec::new();
        if let Some(said) = &self.said {
            out.push(text(said, Look::Bad));
        }
        match &self.found {
            None => out.push(text("testing: its address, its models, one token of an answer …", Look::Dim)),
            Some(Err(why)) => out.push(text(&format!("It could not be tested: {why}"), Look::Bad)),
            Some(Ok(found)) => {
                for check in &found.checks {
                    let (sign, look) = match check.state {
                        CheckState::Ok => ("✓ ", Look::Good),
                        CheckState::Note => ("! ", Look::Warn),
                        CheckState::Failed => ("✗ ", Look::Bad),
                        CheckState::Unknown => ("? ", Look::Warn),
                    };
                    let what = if check.state == CheckState::Failed { Look::Bad } else { Look::Text };
                    out.push(vec![
                        (sign.into(), look),
                        (format!("{:<8} ", line(&check.name)), Look::Name),
                        (check.what.trim_end().to_owned(), what),
                    ]);
                    out.extend(check.remedy.iter().map(|remedy| vec![(format!("           → {remedy}"), Look::Warn)]));
                }
                out.push(Vec::new());
                out.push(match (found.ok, is_new) {
                    (true, _) => {
                        text("It works. Enter chooses the model that is used where you name none.", Look::Good)
                    }
                    (false, true) => {
                        text("It does not work like that. Go back and correct it, or save it as it is.", Look::Text)
                    }
                    (false, false) => text("It does not work now.", Look::Text),
                });
            }
        }
        out
    }

    pub(super) fn draw(&mut self, area: Rect, buf: &mut Buffer, is_new: bool, sight: Sight<'_>) -> Option<Position> {
        let name = line(&self.draft.name);
        if self.is_choosing {
            let title = match self.said {
                Some(_) => format!("{name} · it could not be saved"),
                None => format!("{name} · the model that is used where you name none"),
            };
            let inner = frame(area, buf, sight, &title);
            let rows = u16::from(self.said.is_some() && inner.height > 3);
            if let Some(said) = self.said.as_ref().filter(|_| rows > 0) {
                crate::prompt::paint::Line::new(inner, 0).put(buf, said, sight.theme.bad());
            }
            let inner = Rect { y: inner.y + rows, height: inner.height - rows, ..inner };
            return self.models.draw(inner, buf, "", sight);
        }
        let url = self.draft.base_url.as_deref().map(|url| format!(" · {}", line(url))).unwrap_or_default();
        let inner = frame(area, buf, sight, &format!("Test of {name}{url}"));
        self.scroll.set(self.lines(is_new));
        self.scroll.draw(inner, buf, sight.theme);
        None
    }

    /// Whether letters filter the models.
    pub(super) fn takes_text(&self) -> bool {
        self.is_choosing
    }

    pub(super) fn hint(&self, is_new: bool, back: &str, keys: &Keymap) -> String {
        let (test, save) = (keys.inner("providers.test"), keys.inner("providers.save"));
        match (self.saving.is_some(), self.is_choosing, self.testing.is_some(), self.is_well(), is_new) {
            (true, ..) => "saving …".into(),
            (_, true, ..) => format!("Enter saves it with this model · {back} back to the test"),
            (_, _, true, ..) => format!("{back} back"),
            (.., true, _) => format!("Enter chooses the model · {test} tests again · {back} back"),
            (.., true) => format!("{back} back to correct it · {test} tests again · {save} saves it as it is"),
            _ => format!("{test} tests again · {back} back"),
        }
    }
}
