//! The forms themselves: what stands around calls, and calls that are more than JSON.

use serde_json::{Map, Value};

use super::{MAX_BLANKS_BYTES, MAX_HELD_BYTES, Read, Reader, Stop};

/// What stands around calls, and what ends it; nothing, where the form has no end.
const AROUND: [(&str, &[&str]); 20] = [
    ("<tool_call>", &["</tool_call>"]),
    ("<tool_calls>", &["</tool_calls>"]),
    ("<tools>", &["</tools>"]),
    ("<toolcall>", &["</toolcall>"]),
    ("<TOOLCALL>", &["</TOOLCALL>"]),
    ("<function_call>", &["</function_call>"]),
    ("<function_calls>", &["</function_calls>"]),
    ("<functioncall>", &["</functioncall>"]),
    ("<minimax:tool_call>", &["</minimax:tool_call>"]),
    ("<seed:tool_call>", &["</seed:tool_call>"]),
    ("<longcat_tool_call>", &["</longcat_tool_call>"]),
    ("<|DSML|function_calls>", &["</|DSML|function_calls>"]),
    ("<|tool_call|>", &["<|/tool_call|>", "</|tool_call|>", "<|end_tool_call|>"]),
    ("<|tool_calls_section_begin|>", &["<|tool_calls_section_end|>"]),
    ("<|tool_calls_begin|>", &["<|tool_calls_end|>"]),
    ("<|START_ACTION|>", &["<|END_ACTION|>"]),
    ("[TOOL_REQUEST]", &["[END_TOOL_REQUEST]"]),
    ("[TOOL_CALLS]", &[]),
    ("[AVAILABLE_TOOLS]", &["[/AVAILABLE_TOOLS]"]),
    ("<|python_tag|>", &[]),
];

/// What servers let slip through at the end.
const TAILS: [&str; 7] =
    ["<|eom_id|>", "<|eot_id|>", "<|im_end|>", "<|call|>", "<|end_of_sentence|>", "<|endoftext|>", "</s>"];

/// A name or a key longer than this is none.
const MAX_NAME_BYTES: usize = 200;

/// The words of a form that names tool and parameters in attributes.
struct Attributes {
    call: &'static str,
    call_end: &'static str,
    parameter: &'static str,
    parameter_end: &'static str,
}

const ATTRIBUTES: [Attributes; 4] = [
    Attributes {
        call: "<invoke name=",
        call_end: "</invoke>",
        parameter: "<parameter name=",
        parameter_end: "</parameter>",
    },
    Attributes {
        call: "<|DSML|invoke name=",
        call_end: "</|DSML|invoke>",
        parameter: "<|DSML|parameter name=",
        parameter_end: "</|DSML|parameter>",
    },
    Attributes {
        call: "<function name=",
        call_end: "</function>",
        parameter: "<parameter name=",
        parameter_end: "</parameter>",
    },
    Attributes { call: "<function=", call_end: "</function>", parameter: "<parameter=", parameter_end: "</parameter>" },
];

impl<'t> Reader<'t> {
    /// A whole answer: calls and nothing else.
    pub(super) fn answer(&mut self) -> Read<()> {
        self.blanks();
        if self.at > MAX_BLANKS_BYTES || self.text.len() > MAX_HELD_BYTES {
            return Err(Stop::No);
        }
        loop {
            self.blanks();
            if self.is_over() {
                return if self.is_end && !self.calls.is_empty() { Ok(()) } else { Err(Stop::More) };
            }
            if !self.calls.is_empty() && self.maybe(&TAILS)? {
                continue;
            }
            if !self.calls.is_empty() && self.maybe(&[";"])? {
                continue;
            }
            self.either(&[
                Self::fenced,
                Self::surrounded,
                Self::with_attributes,
                Self::begun,
                Self::in_channel,
                Self::braced,
                Self::bare_calls,
            ])?;
        }
    }

    /// One or more calls within something that says so.
    fn inner(&mut self) -> Read<()> {
        self.either(&[
            Self::marked_calls,
            Self::with_attributes,
            Self::begun,
            Self::named,
            Self::fenced,
            Self::surrounded,
        ])
    }

    fn surrounded(&mut self) -> Read<()> {
        let opens = AROUND.map(|(open, _)| open);
        let open = self.word(&opens)?;
        let ends = AROUND.iter().find(|(known, _)| *known == open).map_or(&[][..], |(_, ends)| ends);
        self.nested(|reader| {
            reader.blanks();
            reader.inner()?;
            loop {
                let behind = reader.at;
                reader.blanks();
                if reader.is_over() && reader.is_end {
                    // Where a model stops, its closing tag was often what it was stopped by.
                    return Ok(());
                }
                if ends.is_empty() {
                    reader.at = behind;
                    return Ok(());
                }
                match reader.word(ends) {
                    Ok(_) => return Ok(()),
                    Err(Stop::More) => return Err(Stop::More),
                    Err(Stop::No) => {}
                }
                reader.maybe(&[",", ";"])?;
                reader.blanks();
                reader.inner()?;
            }
        })
    }

    /// JSON in a fence of Markdown.
    fn fenced(&mut self) -> Read<()> {
        self.word(&["```"])?;
        self.maybe(&["json", "tool_call", "tool_calls", "tool_code", "tool", "xml"])?;
        let before = self.at;
        self.blanks();
        let has_line_end = self.text[before..self.at].contains('\n');
        if self.is_over() {
            return Err(Stop::More);
        }
        if !has_line_end {
            return Err(Stop::No);
        }
        self.nested(|reader| {
            loop {
                reader.either(&[Self::bare_calls, Self::surrounded, Self::with_attributes])?;
                reader.blanks();
                if reader.is_over() && reader.is_end {
                    return Ok(());
                }
                match reader.word(&["```"]) {
                    Ok(_) => return Ok(()),
                    Err(Stop::More) => return Err(Stop::More),
                    Err(Stop::No) => {}
                }
            }
        })
    }

    /// `<function=NAME><parameter=KEY>VALUE</parameter></function>` and its kin with attributes.
    fn with_attributes(&mut self) -> Read<()> {
        let starts = ATTRIBUTES.each_ref().map(|form| form.call);
        let start = self.word(&starts)?;
        let form = ATTRIBUTES.iter().find(|form| form.call == start).ok_or(Stop::No)?;
        self.maybe(&["\"", "'"])?;
        let tool = self.tool()?.to_owned();
        self.maybe(&["\"", "'"])?;
        self.blanks();
        self.word(&[">"])?;
        self.blanks();
        let mut arguments = Map::new();
        loop {
            self.blanks();
            if self.is_over() && self.is_end && !arguments.is_empty() {
                break;
            }
            if self.rest().starts_with('{') && arguments.is_empty() {
                let raw = self.arguments()?;
                self.blanks();
                if !(self.is_over() && self.is_end) {
                    self.word(&[form.call_end])?;
                }
                return self.found(&tool, raw);
            }
            if self.word(&[form.call_end, form.parameter])? == form.call_end {
                break;
            }
            let (key, value) = self.parameter(&tool, form)?;
            arguments.insert(key, value);
        }
        self.found(&tool, Value::Object(arguments).to_string())
    }

    /// A parameter whose first word has been read.
    fn parameter(&mut self, tool: &str, form: &Attributes) -> Read<(String, Value)> {
        let head = self.until(">", MAX_NAME_BYTES)?;
        let says_text = head.contains("string=\"true\"");
        let says_json = head.contains("string=\"false\"");
        let name = head.split([' ', '\n']).find(|part| !part.is_empty()).ok_or(Stop::No)?;
        let key = name.trim_matches(['"', '\'']).to_owned();
        if key.is_empty() {
            return Err(Stop::No);
        }
        let text = self.parameter_text(form)?;
        let value = match serde_json::from_str(text.trim()) {
            _ if says_text => Value::String(text.to_owned()),
            Ok(value) if says_json => value,
            _ => self.typed(tool, &key, text),
        };
        Ok((key, value))
    }

    /// The text of a parameter up to the tag that closes it: one that is followed by what may follow. A file may hold the
    /// tag itself.
    fn parameter_text(&mut self, form: &Attributes) -> Read<&'t str> {
        let start = self.at;
        let mut end = start;
        loop {
            end += self.until(form.parameter_end, usize::MAX)?.len();
            let behind = self.at;
            self.blanks();
            let follows = match self.word(&[form.call_end, form.parameter]) {
                Ok(_) => true,
                Err(Stop::More) if self.is_end => self.is_over(),
                Err(Stop::More) => return Err(Stop::More),
                Err(Stop::No) => false,
            };
            self.at = behind;
            if follows {
                let text = &self.text[start..end];
                let text = text.strip_prefix("\r\n").or_else(|| text.strip_prefix('\n')).unwrap_or(text);
                return Ok(text.strip_suffix('\n').map_or(text, |text| text.strip_suffix('\r').unwrap_or(text)));
            }
            end = behind;
        }
    }

    /// `<|tool_call_begin|>NAME<|tool_sep|>{…}<|tool_call_end|>`, and with a number, a kind or a fence.
    fn begun(&mut self) -> Read<()> {
        self.word(&["<|tool_call_begin|>"])?;
        self.blanks();
        self.maybe(&["function<|tool_sep|>"])?;
        self.maybe(&["functions."])?;
        let tool = self.tool()?.to_owned();
        if self.maybe(&[":"])? {
            let digits = self.rest().len() - self.rest().trim_start_matches(|c: char| c.is_ascii_digit()).len();
            self.at += digits;
        }
        self.blanks();
        self.maybe(&["<|tool_sep|>", "<|tool_call_argument_begin|>"])?;
        self.blanks();
        let is_fenced = self.maybe(&["```json", "```"])?;
        self.blanks();
        let arguments = self.arguments()?;
        self.blanks();
        if is_fenced && !(self.is_over() && self.is_end) {
            self.word(&["```"])?;
            self.blanks();
        }
        if !(self.is_over() && self.is_end) {
            self.word(&["<|tool_call_end|>"])?;
        }
        self.found(&tool, arguments)
    }

    /// `NAME[ARGS]{…}`, `NAME{…}`, or a name and pairs of keys and values.
    fn named(&mut self) -> Read<()> {
        let tool = self.tool()?.to_owned();
        if self.maybe(&["[CALL_ID]"])? {
            self.until("[ARGS]", MAX_NAME_BYTES)?;
        } else {
            self.maybe(&["[ARGS]", "<tool_sep>"])?;
        }
        self.blanks();
        if self.rest().starts_with('{') {
            let arguments = self.arguments()?;
            return self.found(&tool, arguments);
        }
        let mut arguments = Map::new();
        loop {
            self.blanks();
            match self.word(&["<arg_key>"]) {
                Ok(_) => {}
                Err(Stop::More) if !self.is_end => return Err(Stop::More),
                Err(_) => break,
            }
            let key = self.until("</arg_key>", MAX_NAME_BYTES)?.trim().to_owned();
            self.blanks();
            self.word(&["<arg_value>"])?;
            let value = self.until("</arg_value>", usize::MAX)?;
            let value = self.typed(&tool, &key, value);
            arguments.insert(key, value);
        }
        self.found(&tool, Value::Object(arguments).to_string())
    }

    /// `<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{…}<|call|>`.
    fn in_channel(&mut self) -> Read<()> {
        self.maybe(&["<|start|>assistant"])?;
        self.maybe(&["<|channel|>commentary", "<|channel|>analysis"])?;
        self.blanks();
        self.word(&["to=functions."])?;
        let tool = self.tool()?.to_owned();
        self.until("<|message|>", MAX_NAME_BYTES)?;
        self.blanks();
        let arguments = self.arguments()?;
        self.blanks();
        self.maybe(&["<|call|>"])?;
        self.found(&tool, arguments)
    }

    /// `<|tool_call>call:NAME{key:<|"|>text<|"|>}<tool_call|>`: not quite JSON.
    fn braced(&mut self) -> Read<()> {
        let open = self.word(&["<|tool_call>call:", "<start_function_call>call:"])?;
        let (end, quote) = match open.starts_with("<|") {
            true => ("<tool_call|>", "<|\"|>"),
            false => ("<end_function_call>", "<escape>"),
        };
        let tool = self.tool()?.to_owned();
        self.word(&["{"])?;
        let arguments = self.braced_members(quote)?;
        if !(self.is_over() && self.is_end) {
            self.word(&[end])?;
        }
        self.found(&tool, Value::Object(arguments).to_string())
    }

    fn braced_members(&mut self, quote: &'static str) -> Read<Map<String, Value>> {
        let mut members = Map::new();
        loop {
            if self.maybe(&["}"])? {
                return Ok(members);
            }
            let key = if self.maybe(&[quote])? {
                let key = self.until(quote, MAX_NAME_BYTES)?;
                self.word(&[":"])?;
                key
            } else {
                self.until(":", MAX_NAME_BYTES)?
            };
            let key = key.trim().to_owned();
            let value = self.braced_value(quote)?;
            members.insert(key, value);
            if self.word(&[",", "}"])? == "}" {
                return Ok(members);
            }
        }
    }

    fn braced_value(&mut self, quote: &'static str) -> Read<Value> {
        if self.maybe(&[quote])? {
            return Ok(Value::String(self.until(quote, usize::MAX)?.to_owned()));
        }
        if self.maybe(&["{"])? {
            let mut members = Map::new();
            self.nested(|reader| {
                members = reader.braced_members(quote)?;
                Ok(())
            })?;
            return Ok(Value::Object(members));
        }
        if self.maybe(&["["])? {
            let mut items = Vec::new();
            self.nested(|reader| {
                loop {
                    if reader.maybe(&["]"])? {
                        return Ok(());
                    }
                    items.push(reader.braced_value(quote)?);
                    if reader.word(&[",", "]"])? == "]" {
                        return Ok(());
                    }
                }
            })?;
            return Ok(Value::Array(items));
        }
        let raw = self.value()?;
        serde_json::from_str(raw).map_err(|_| Stop::No)
    }
}
