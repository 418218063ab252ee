//! The picker of models: by provider, with windows, prices and what each can. What nobody says is shown as unknown.

use hames_protocol::Settings;
use hames_protocol::api::{ApiError, ModelRow};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use serde_json::Value;

use super::parts::{Item, List, Look, Said, asking, cut_to, frame, numbers};
use crate::{Action, Answer, Cx, Effect, Face, Input, Layer, Outcome, Request, Sight, Ticket};

/// What stands in place of what nobody says.
const UNKNOWN: &str = "?";
/// Rows of an area that has room for the line that explains the columns.
const ROOM_FOR_MORE: u16 = 7;

/// The models.
pub(super) struct Models {
    list: List,
    is_read: bool,
    asked: Option<Ticket>,
    failure: Option<String>,
}

impl Models {
    pub(super) fn open(cx: &mut Cx<'_>) -> Self {
        let mut models = Self { list: List::new(), is_read: false, asked: None, failure: None };
        models.read(cx);
        models
    }

    fn read(&mut self, cx: &mut Cx<'_>) {
        self.failure = None;
        self.asked = Some(cx.ask(Request::Models));
    }

    fn show(&mut self, rows: &[ModelRow], default: Option<&str>, face: &Face) {
        let current = current(face);
        let items = rows.iter().map(|row| item(row, default, current.as_deref())).collect();
        self.list.set(items);
        if !self.is_read
            && let Some(current) = current
        {
            self.list.choose(&current);
        }
        self.is_read = true;
    }
}

/// The model the next run uses, where one is chosen.
fn current(face: &Face) -> Option<String> {
    let of_view = face.view.as_ref().and_then(|view| view.effective.model.clone());
    of_view.or_else(|| face.chosen.model.clone()).map(|model| model.to_string())
}

fn item(row: &ModelRow, default: Option<&str>, current: Option<&str>) -> Item {
    let name = row.model.to_string();
    let is_current = current == Some(name.as_str());
    let is_default = default == Some(name.as_str());
    let mut about: Vec<String> = Vec::new();
    about.extend(is_current.then(|| "in use".to_owned()));
    about.extend(is_default.then(|| "default".to_owned()));
    about.extend(abilities(&row.facts));
    let of = |at: &str| row.facts.get(at).and_then(Value::as_str) == Some("trained");
    let window = match row.context_window {
        None => UNKNOWN.to_owned(),
        Some(tokens) if of("context_window_from") => format!("≤{}", numbers::tokens(tokens)),
        Some(tokens) => numbers::tokens(tokens),
    };
    let output = row.max_output_tokens.map_or_else(|| UNKNOWN.to_owned(), numbers::tokens);
    Item {
        id: name.clone(),
        group: row.model.provider.clone(),
        mark: if is_current { ("●", Look::Good) } else { ("", Look::Text) },
        text: row.model.id.clone(),
        about: about.join(" · "),
        columns: vec![
            (window, Look::Text),
            (price(&row.facts, &["input", "output"]), Look::Text),
            (price(&row.facts, &["cache_read"]), Look::Dim),
            (output, Look::Dim),
        ],
        also: name,
        ..Item::default()
    }
}

/// What it can, as far as that is known; what it is known not to can is left out.
fn abilities(facts: &Value) -> Vec<String> {
    let known = |name: &&str| facts.get(*name).and_then(Value::as_bool) == Some(true);
    let mut all: Vec<String> =
        ["tools", "images", "reasoning"].iter().filter(|name| known(name)).map(ToString::to_string).collect();
    let unknown = |name: &&str| facts.get(*name).is_none_or(Value::is_null);
    if all.is_empty() && ["tools", "images", "reasoning"].iter().all(unknown) {
        all.push("abilities unknown".into());
    }
    all
}

/// Dollars for a million tokens.
fn price(facts: &Value, of: &[&str]) -> String {
    let one = |name: &&str| match facts.get("price").and_then(|price| price.get(*name)).and_then(Value::as_f64) {
        Some(dollars) => dollars_text(dollars),
        None => UNKNOWN.to_owned(),
    };
    let all: Vec<String> = of.iter().map(one).collect();
    if all.iter().all(|text| text == UNKNOWN) { UNKNOWN.into() } else { all.join(" / ") }
}

/// Two digits behind the point at least, and as many as say something.
fn dollars_text(dollars: f64) -> String {
    let text = format!("{dollars:.6}");
    let digits = text.trim_end_matches('0').len();
    text[..digits.max(text.len() - 4)].to_owned()
}

impl Layer for Models {
    fn handle(&mut self, input: &Input, action: Option<Action>, cx: &mut Cx<'_>) -> Outcome {
        match action {
            Some(Action::Abort) => return Outcome::Closed,
            Some(Action::Models) => {
                if self.asked.is_none() {
                    self.read(cx);
                }
                return Outcome::Taken;
            }
            _ => {}
        }
        match self.list.handle(input, action) {
            Said::Passed => Outcome::Passed,
            Said::Taken | Said::Query => Outcome::Taken,
            Said::Picked(id) => {
                match id.parse() {
                    Ok(model) => {
                        let is_busy = cx.face.is_busy();
                        let change = Settings { model: Some(model), ..Settings::default() };
                        cx.push(Effect::Set(Box::new(change), Vec::new()));
                        cx.say(format!("{id} {}.", if is_busy { "from the next run on" } else { "from now on" }));
                    }
                    Err(_) => cx.say(format!("{id} cannot be chosen: its name is not PROVIDER/MODEL.")),
                }
                Outcome::Closed
            }
        }
    }

    fn answer(&mut self, ticket: Ticket, answer: Result<Answer, ApiError>, cx: &mut Cx<'_>) -> Outcome {
        if self.asked.take_if(|asked| *asked == ticket).is_none() {
            return Outcome::Passed;
        }
        match answer {
            Ok(Answer::Models(models)) => self.show(&models.models, models.default.as_deref(), cx.face),
            Ok(_) => {}
            Err(error) => self.failure = Some(format!("The models cannot be read: {error}")),
        }
        Outcome::Taken
    }

    fn draw(&mut self, area: Rect, buf: &mut Buffer, sight: Sight<'_>) -> Option<Position> {
        let inner = frame(area, buf, sight, "Models");
        let again = sight.keys.hint(Action::Models);
        let empty = match &self.failure {
            Some(failure) => format!("{failure} {again} asks again."),
            None if self.is_read => "No provider lists a model. /providers sets one up.".into(),
            None => asking(sight).into(),
        };
        let has_more = inner.height >= ROOM_FOR_MORE && !self.list.is_empty();
        let rows = Rect { height: inner.height - u16::from(has_more), ..inner };
        if let (true, Some(last)) = (has_more, inner.rows().next_back()) {
            let says = "Window · dollars for a million tokens in / out · cached · longest answer · ? nobody says";
            buf.set_stringn(last.x, last.y, cut_to(says, last.width.into()), last.width.into(), sight.theme.dim());
        }
        self.list.draw(rows, buf, &empty, sight)
    }

    fn hint(&self, sight: Sight<'_>) -> String {
        let key = |action| sight.keys.hint(action);
        format!(
            "{} chooses it · type to filter · {} asks the providers again · {} leaves it",
            key(Action::Submit),
            key(Action::Models),
            key(Action::Abort)
        )
    }

    fn name(&self) -> &'static str {
        "models"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_have_two_digits_or_as_many_as_say_something() {
        for (dollars, text) in
            [(2.5, "2.50"), (0.075, "0.075"), (0.0, "0.00"), (0.000_001, "0.000001"), (15.0, "15.00")]
        {
            assert_eq!(dollars_text(dollars), text);
        }
    }
}
