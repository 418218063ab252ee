//! Puts calls together from their pieces.
//!
//! Pieces are keyed by `index`. A new id on a known index is a new call (some servers give every call index 0), a piece
//! without index goes by its id, and one with neither belongs to the call opened last. Empty ids and names never
//! overwrite; the first ones stay. A server that says all of the arguments again in each piece only adds what is new.

use std::borrow::Cow;

use hames_protocol::{Delta, RawCall};
use serde_json::Value;

use super::spoken::Spoken;
use super::wire::{Function, Scalar, ToolCall};

/// Arguments that say nothing; some servers send them ahead of the real ones.
const NO_ARGUMENTS: &str = "{}";

/// Calls one answer may ask for: far more than any model means, and few enough to look through for every piece.
pub(crate) const MAX_CALLS: usize = 1024;

#[derive(Debug, Default)]
struct Open {
    index: Option<i64>,
    call: RawCall,
    named: bool,
}

/// The calls of one answer so far.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    open: Vec<Open>,
    /// More were asked for than are taken.
    has_too_many: bool,
}

impl Calls {
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether more calls were asked for than [`MAX_CALLS`].
    pub(crate) fn has_too_many(&self) -> bool {
        self.has_too_many
    }

    pub(crate) fn into_calls(self) -> Vec<RawCall> {
        self.open.into_iter().map(|o| o.call).collect()
    }

    /// Takes in one piece of `tool_calls`; gives the bytes it added.
    pub(crate) fn take(&mut self, piece: &ToolCall<'_>, out: &mut Vec<Delta>) -> usize {
        if self.has_too_many {
            return 0;
        }
        let function = piece.function.0.as_ref();
        let id = piece.id.name();
        let name = function.and_then(|f| f.name.text()).or(piece.name.text());
        let arguments = text_of(function.map_or(&piece.arguments, |f| &f.arguments));
        let index = piece.index.integer();
        let at = match self.find(index, id.as_deref(), name, &arguments) {
            Some(at) => at,
            // Nothing that could begin a call: a list that a server fills in with empty objects.
            None if id.is_none() && name.is_none() && arguments.is_empty() && extra_of(piece).is_none() => return 0,
            None if self.open.len() >= MAX_CALLS => {
                self.has_too_many = true;
                return 0;
            }
            None => {
                self.open.push(Open { index, ..Open::default() });
                self.open.len() - 1
            }
        };
        let mut bytes = 0;
        let open = &mut self.open[at];
        if open.index.is_none() {
            open.index = index;
        }
        if let Some(id) = id.filter(|_| open.call.id.is_empty()) {
            bytes += id.len();
            open.call.id = id.into_owned();
        }
        if open.call.extra.is_none() {
            open.call.extra = extra_of(piece);
            bytes += open.call.extra.as_ref().map_or(0, String::len);
        }
        bytes + self.append(at, name, &arguments, out)
    }

    /// Takes in a whole call that was spoken as text. It has no id of the provider's.
    pub(crate) fn take_spoken(&mut self, spoken: Spoken, out: &mut Vec<Delta>) {
        let Spoken { name, arguments } = spoken;
        push_input(out, self.open.len(), Some(name.clone()), &arguments);
        let call = RawCall { name, arguments, ..RawCall::default() };
        self.open.push(Open { index: None, call, named: true });
    }

    /// Takes in one piece of the old `function_call`, of which there is one an answer.
    pub(crate) fn take_function(&mut self, function: &Function<'_>, out: &mut Vec<Delta>) -> usize {
        if self.open.is_empty() {
            self.open.push(Open::default());
        }
        let at = self.open.len() - 1;
        self.append(at, function.name.text(), &text_of(&function.arguments), out)
    }

    /// The call a piece belongs to; `None` where it opens a new one.
    fn find(&self, index: Option<i64>, id: Option<&str>, name: Option<&str>, arguments: &str) -> Option<usize> {
        let last = self.open.len().checked_sub(1)?;
        if let Some(index) = index
            && let Some(at) = self.open.iter().rposition(|o| o.index == Some(index))
        {
            return (!self.is_another(at, id, name, arguments)).then_some(at);
        }
        match (id, name) {
            // An index of its own, or none, and a name: a call begins, unless it only repeats the id of an unfinished one.
            (Some(id), _) => {
                let at = self.open.iter().rposition(|o| o.call.id == id)?;
                let begins = name.is_some() && (index.is_some() || self.is_finished(at));
                (!begins).then_some(at)
            }
            (None, Some(_)) => None,
            // An index never opened and nothing to open it with: the server misnumbered the call it opened last.
            (None, None) => (!(begins_object(arguments) && self.is_finished(last))).then_some(last),
        }
    }

    /// Whether a piece for a known index is the beginning of another call all the same.
    fn is_another(&self, at: usize, id: Option<&str>, name: Option<&str>, arguments: &str) -> bool {
        let open = &self.open[at];
        match id {
            Some(id) if !open.call.id.is_empty() && id != open.call.id => true,
            // The same call told again, or told after an empty object that only held its place.
            Some(_) if [arguments, NO_ARGUMENTS].contains(&open.call.arguments.as_str()) => false,
            _ => name.is_some() && begins_object(arguments) && self.is_finished(at),
        }
    }

    /// Whether the arguments are a whole object. The last brace is looked for first: this may be asked for every piece.
    fn is_finished(&self, at: usize) -> bool {
        let arguments = &self.open[at].call.arguments;
        arguments.trim_end().ends_with('}') && serde_json::from_str::<serde_json::Map<String, Value>>(arguments).is_ok()
    }

    fn append(&mut self, at: usize, name: Option<&str>, arguments: &str, out: &mut Vec<Delta>) -> usize {
        let open = &mut self.open[at];
        let renamed = name.is_some_and(|name| take_name(&mut open.call, name, arguments));
        open.named &= !renamed;
        let arguments = unseen(&open.call.arguments, arguments);
        if open.call.arguments == NO_ARGUMENTS && begins_object(arguments) {
            open.call.arguments.clear();
        }
        open.call.arguments.push_str(arguments);
        let first = (!open.named && !open.call.name.is_empty()).then(|| open.call.name.clone());
        open.named |= first.is_some();
        if first.is_some() || !arguments.is_empty() {
            push_input(out, at, first, arguments);
        }
        arguments.len() + name.map_or(0, str::len)
    }
}

fn begins_object(arguments: &str) -> bool {
    arguments.trim_start().starts_with('{')
}

/// Takes in a name; gives whether it changed one that was there. Before any arguments, a name may come in pieces.
fn take_name(call: &mut RawCall, name: &str, arguments: &str) -> bool {
    if call.name.is_empty() {
        call.name = name.to_owned();
        return false;
    }
    if name == call.name || !call.arguments.is_empty() || !arguments.is_empty() {
        return false;
    }
    match name.starts_with(call.name.as_str()) {
        true => call.name = name.to_owned(),
        false => call.name.push_str(name),
    }
    true
}

/// What a piece adds to the arguments `so_far`. A piece that begins with all of them tells them again: appended, it would
/// be an object within a key or behind a value, which is no JSON. Only where a value may begin it can be one.
fn unseen<'a>(so_far: &str, piece: &'a str) -> &'a str {
    match piece.strip_prefix(so_far) {
        Some(new) if so_far.starts_with('{') && !so_far.trim_end().ends_with([':', '[', ',']) => new,
        _ => piece,
    }
}

fn push_input(out: &mut Vec<Delta>, at: usize, name: Option<String>, text: &str) {
    let call = u32::try_from(at).unwrap_or(u32::MAX);
    if name.is_none()
        && let Some(Delta::ToolInput { call: last, text: all, .. }) = out.last_mut()
        && *last == call
    {
        return all.push_str(text);
    }
    out.push(Delta::ToolInput { call, name, text: text.to_owned() });
}

/// The arguments as text, also where a server sends the object itself.
fn text_of<'a>(arguments: &'a Scalar<'_>) -> Cow<'a, str> {
    match arguments {
        Scalar::Absent => Cow::Borrowed(""),
        Scalar::Text(text) => Cow::Borrowed(text),
        Scalar::Integer(number) => Cow::Owned(number.to_string()),
        Scalar::Other(value) => Cow::Owned(value.to_string()),
    }
}

/// The members that have to go back with the call, as the JSON text of an object.
fn extra_of(piece: &ToolCall<'_>) -> Option<String> {
    let members = [
        ("extra_content", piece.extra_content),
        ("thought_signature", piece.thought_signature),
        ("provider_specific_fields", piece.provider_specific_fields),
    ];
    let members: Vec<String> =
        members.iter().filter_map(|(name, raw)| raw.map(|raw| format!("\"{name}\":{}", raw.get()))).collect();
    (!members.is_empty()).then(|| format!("{{{}}}", members.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn together(pieces: &[&str]) -> Vec<(String, String, String)> {
        let mut calls = Calls::default();
        let mut out = Vec::new();
        for piece in pieces {
            calls.take(&serde_json::from_str(piece).unwrap(), &mut out);
        }
        calls.into_calls().into_iter().map(|c| (c.id, c.name, c.arguments)).collect()
    }

    fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
        (id.into(), name.into(), arguments.into())
    }

    #[test]
    fn later_pieces_of_a_call_belong_to_it_whatever_they_leave_out() {
        let whole = vec![call("c1", "Read", r#"{"path":"a"}"#)];
        let cases: &[&[&str]] = &[
            &[
                r#"{"index":0,"id":"c1","function":{"name":"Read","arguments":""}}"#,
                r#"{"index":0,"function":{"arguments":"{\"pa"}}"#,
                r#"{"index":0,"function":{"arguments":"th\":\"a\"}"}}"#,
            ],
            &[
                r#"{"index":0,"id":"c1","function":{"name":"Read"}}"#,
                r#"{"index":0,"id":"","function":{"name":"","arguments":"{\"path\":\"a\"}"}}"#,
            ],
            &[
                r#"{"index":0,"id":"c1","function":{"name":"Read","arguments":null}}"#,
                r#"{"index":0,"id":null,"type":null,"function":{"name":null,"arguments":"{\"path\":\"a\"}"}}"#,
            ],
            &[
                r#"{"index":0,"id":"c1","function":{"name":"Read","arguments":"{\"path\""}}"#,
                r#"{"index":0,"id":"c1","function":{"name":"Read","arguments":":\"a\"}"}}"#,
            ],
            &[
                r#"{"id":"c1","function":{"name":"Read","arguments":"{\"path\""}}"#,
                r#"{"function":{"arguments":":\"a\"}"}}"#,
            ],
            &[
                r#"{"id":"c1","function":{"name":"Read","arguments":"{\"path\""}}"#,
                r#"{"id":"c1","function":{"name":"Read","arguments":":\"a\"}"}}"#,
            ],
            &[
                r#"{"index":0,"id":"","function":{"name":"Read","arguments":""}}"#,
                r#"{"index":0,"id":"c1","function":{"arguments":"{\"path\":\"a\"}"}}"#,
            ],
            &[
                r#"{"index":1,"id":"c1","function":{"name":"Read","arguments":""}}"#,
                r#"{"index":"1","function":{"arguments":"{\"path\":\"a\"}"}}"#,
            ],
            &[r#"{"index":0,"id":"c1","function":{"name":"Read","arguments":{"path":"a"}}}"#],
            &[
                r#"{"index":0,"id":"c1","function":{"name":"Read","arguments":""}}"#,
                r#"{"index":3,"function":{"arguments":"{\"path\":\"a\"}"}}"#,
            ],
            &[
                r#"{"index":0,"id":"c1"}"#,
                r#"{"index":0,"function":{"name":"Read"}}"#,
                r#"{"index":0,"function":{"arguments":"{\"path\":\"a\"}"}}"#,
                r#"{"index":0}"#,
            ],
            &[r#"{"index":0,"id":"c1","name":"Read","arguments":"{\"path\":\"a\"}"}"#],
            &[r#"{"id":"c1","name":"Read","arguments":{"path":"a"}}"#],
            &["{}", r#"{"index":0}"#, r#"{"id":"c1","function":{"name":"Read","arguments":"{\"path\":\"a\"}"}}"#],
        ];
        for pieces in cases {
            assert_eq!(together(pieces), whole, "{pieces:#?}");
        }
    }

    #[test]
    fn what_is_told_again_is_not_added_again() {
        let whole = vec![call("c1", "Read", r#"{"path":"a"}"#)];
        let cases: &[&[&str]] = &[
            &[
                r#"{"index":0,"id":"c1","function":{"name":"Read","arguments":"{\"pa"}}"#,
                r#"{"index":0,"id":"c1","function":{"name":"Read","arguments":"{\"path\":\"a"}}"#,
                r#"{"index":0,"id":"c1","function":{"name":"Read","arguments":"{\"path\":\"a\"}"}}"#,
            ],
            &[
                r#"{"index":0,"id":"c1","function":{"name":"Read","arguments":"{"}}"#,
                r#"{"index":0,"function":{"arguments":"{\"path\""}}"#,
                r#"{"index":0,"function":{"arguments":"{\"path\":\"a\"}"}}"#,
            ],
            &[
                r#"{"index":0,"id":"c1","function":{"name":"Read","arguments":"{\"path\":"}}"#,
                r#"{"index":0,"function":{"arguments":"\"a\"}"}}"#,
                r#"{"index":0,"id":"c1","function":{"name":"Read","arguments":"{\"path\":\"a\"}"}}"#,
            ],
            &[
                r#"{"index":0,"id":"c1","function":{"name":"Read","arguments":"{\"path\":\"a\"}"}}"#,
                r#"{"index":0,"id":"c1","function":{"name":"Read","arguments":"{\"path\":\"a\"}"}}"#,
            ],
            &[
                r#"{"index":0,"id":"c1","function":{"name":"Read","arguments":"{}"}}"#,
                r#"{"index":0,"function":{"arguments":"{\"path"}}"#,
                r#"{"index":0,"function":{"arguments":"\":\"a\"}"}}"#,
            ],
            &[
                r#"{"index":0,"id":"c1","function":{"name":"Read","arguments":"{}"}}"#,
                r#"{"index":0,"id":"c1","function":{"name":"Read","arguments":"{\"path\":\"a\"}"}}"#,
            ],
            &[
                r#"{"index":0,"id":"c1","function":{"name":"Re"}}"#,
                r#"{"index":0,"function":{"name":"ad"}}"#,
                r#"{"index":0,"function":{"arguments":"{\"path\":\"a\"}"}}"#,
            ],
            &[
                r#"{"index":0,"id":"c1","function":{"name":"Re","arguments":""}}"#,
                r#"{"index":0,"id":"c1","function":{"name":"Read","arguments":""}}"#,
                r#"{"index":0,"id":"c1","function":{"name":"Read","arguments":"{\"path\":\"a\"}"}}"#,
            ],
        ];
        for pieces in cases {
            assert_eq!(together(pieces), whole, "{pieces:#?}");
        }
        for (pieces, arguments) in [
            (["{\"a\":", "{\"a\":1}}"], "{\"a\":{\"a\":1}}"),
            (["{\"a\":[", "{\"a\":[]}]}"], "{\"a\":[{\"a\":[]}]}"),
            (["{\"a\":\"x", "x\"}"], "{\"a\":\"xx\"}"),
            (["{\"a\":1", "1}"], "{\"a\":11}"),
            (["{\"a\":[1,", "1,2]}"], "{\"a\":[1,1,2]}"),
        ] {
            let pieces =
                pieces.map(|p| serde_json::json!({"index": 0, "id": "c", "function": {"arguments": p}}).to_string());
            assert_eq!(together(&[&pieces[0], &pieces[1]])[0].2, arguments, "{pieces:?}");
        }
    }

    #[test]
    fn another_id_or_another_whole_call_is_never_appended_to_the_one_before() {
        let two = |a: &str, b: &str| vec![call(a, "Read", r#"{"path":"1"}"#), call(b, "Read", r#"{"path":"2"}"#)];
        let cases: &[(&[&str], Vec<_>)] = &[
            (
                &[
                    r#"{"index":0,"id":"a","function":{"name":"Read","arguments":"{\"path\":\"1\"}"}}"#,
                    r#"{"index":0,"id":"b","function":{"name":"Read","arguments":""}}"#,
                    r#"{"index":1,"function":{"arguments":"{\"path\":\"2\"}"}}"#,
                ],
                two("a", "b"),
            ),
            (
                &[
                    r#"{"index":0,"id":"a","function":{"name":"Read","arguments":"{\"path\":\"1\"}"}}"#,
                    r#"{"index":0,"id":"b","function":{"name":"Read","arguments":"{\"path\":\"2\"}"}}"#,
                ],
                two("a", "b"),
            ),
            (
                &[
                    r#"{"index":0,"id":"a","function":{"name":"Read","arguments":"{\"path\":\"1\"}"}}"#,
                    r#"{"index":0,"id":"b","function":{"name":"Read","arguments":"{\"path"}}"#,
                    r#"{"index":0,"function":{"arguments":"\":\"2\"}"}}"#,
                ],
                two("a", "b"),
            ),
            (
                &[
                    r#"{"index":0,"id":"call_0","function":{"name":"Read","arguments":"{\"path\":\"1\"}"}}"#,
                    r#"{"index":1,"id":"call_0","function":{"name":"Read","arguments":"{\"path\":\"2\"}"}}"#,
                ],
                two("call_0", "call_0"),
            ),
            (
                &[
                    r#"{"index":0,"id":"","function":{"name":"Read","arguments":"{\"path\":\"1\"}"}}"#,
                    r#"{"index":1,"id":"","function":{"name":"Read","arguments":"{\"path\":\"2\"}"}}"#,
                ],
                two("", ""),
            ),
            (
                &[
                    r#"{"index":0,"id":"","function":{"name":"Read","arguments":"{\"path\":\"1\"}"}}"#,
                    r#"{"index":0,"id":"","function":{"name":"Read","arguments":"{\"path\":\"2\"}"}}"#,
                ],
                two("", ""),
            ),
            (
                &[
                    r#"{"id":"a","function":{"name":"Read","arguments":"{\"path\":\"1\"}"}}"#,
                    r#"{"id":"b","function":{"name":"Read","arguments":"{\"path\":\"2\"}"}}"#,
                ],
                two("a", "b"),
            ),
            (
                &[
                    r#"{"function":{"name":"Read","arguments":"{\"path\":\"1\"}"}}"#,
                    r#"{"function":{"name":"Read","arguments":"{\"path\":\"2\"}"}}"#,
                ],
                two("", ""),
            ),
            (
                &[
                    r#"{"index":0,"id":"a","function":{"name":"Read","arguments":""}}"#,
                    r#"{"index":1,"id":"b","function":{"name":"Read","arguments":""}}"#,
                    r#"{"index":1,"function":{"arguments":"{\"path\":\"2\"}"}}"#,
                    r#"{"index":0,"function":{"arguments":"{\"path\":\"1\"}"}}"#,
                ],
                two("a", "b"),
            ),
            (
                &[
                    r#"{"id":"same","function":{"name":"Read","arguments":"{\"path\":\"1\"}"}}"#,
                    r#"{"id":"same","function":{"name":"Read","arguments":"{\"path\":\"2\"}"}}"#,
                ],
                two("same", "same"),
            ),
            (
                &[
                    r#"{"index":0,"id":"same","function":{"name":"Read","arguments":"{\"path\":\"1\"}"}}"#,
                    r#"{"index":0,"id":"same","function":{"name":"Read","arguments":"{\"path\":\"2\"}"}}"#,
                ],
                two("same", "same"),
            ),
        ];
        for (pieces, expected) in cases {
            assert_eq!(&together(pieces), expected, "{pieces:#?}");
        }
    }

    #[test]
    fn what_goes_back_with_a_call_is_kept_verbatim() {
        let mut calls = Calls::default();
        let piece = r#"{"id":"a","extra_content":{"google":{"thought_signature":"A+/="}},"function":{"name":"f"}}"#;
        calls.take(&serde_json::from_str(piece).unwrap(), &mut Vec::new());
        let extra = calls.into_calls()[0].extra.clone();
        assert_eq!(extra.as_deref(), Some(r#"{"extra_content":{"google":{"thought_signature":"A+/="}}}"#));
    }
}
