//! WebFetch: a page of the public internet as text.
//!
//! Three things a page must not be able to do: lead into the machine or the network Hames runs in (see `address` and
//! `fetch`), cost more than was agreed (bytes, time, redirects, work: each has its limit where it is spent), or pass for
//! anything but a tool's result. It is GET and nothing else, on nobody's behalf: no cookies, no credentials, no referer,
//! no proxy but one that is given as a value.
//!
//! Pages become Markdown, other text comes as it is, everything else is named with its type and size. The whole text is
//! kept by the door where the window gets its beginning, so that Recall can read on.
//!
//! It does not run scripts and does not search.

mod address;
mod body;
mod fetch;
mod html;
mod target;

use std::sync::LazyLock;
use std::time::Duration;

use async_trait::async_trait;
use hames_protocol::{Declaration, Effect, Label, Resource, ToolSpec};
use hames_tools::{Tool, ToolCx, ToolFailure, ToolOutput, Whole};
use serde_json::{Value, json};

use self::address::Border;
pub use self::address::{Allowed, NotAllowable};
use self::body::{Shown, decode, looks_like_html};
use self::fetch::{Fetched, Fetcher, TIME, system_lookup};
use self::target::Target;
use crate::files::Content;
use crate::shell::clean;

/// Bytes of a result in the window: some pages of text. The rest is kept.
const CAP: u64 = 24 * 1024;

/// Milliseconds for which a page is taken for the same: whoever asks again later wants to know what became of it.
const FRESH_MS: u64 = 60_000;

/// Bytes of an error page that are shown: what it says stands at its beginning.
const ERROR_TEXT: usize = 600;

/// Characters of an address that are repeated.
const SHOWN_URL: usize = 500;

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| ToolSpec {
    name: "WebFetch".into(),
    description: include_str!("web_fetch.md").trim_end().into(),
    parameters: json!({
        "type": "object",
        "properties": {"url": {"type": "string"}},
        "required": ["url"],
    }),
});

/// What an embedder decides about fetching.
#[derive(Clone, Debug)]
pub struct WebOptions {
    /// Hosts and addresses beyond the public internet that may be fetched from.
    pub allow: Vec<Allowed>,
    /// The proxy to go through. It looks names up, so what a name leads to is checked by the proxy or by nobody; names
    /// and addresses are still checked as they are written.
    pub proxy: Option<String>,
    /// What one fetch may take in all, redirects and body included; 20 s by default.
    pub time: Duration,
}

impl Default for WebOptions {
    fn default() -> Self {
        Self { allow: Vec::new(), proxy: None, time: TIME }
    }
}

/// Fetches pages.
pub struct WebFetch {
    fetcher: Fetcher,
}

impl WebFetch {
    /// The tool. No client is made and nothing read before the first fetch.
    pub fn new(options: WebOptions) -> Self {
        let WebOptions { allow, proxy, time } = options;
        Self { fetcher: Fetcher::new(Border::new(allow), proxy, system_lookup(), time) }
    }
}

impl Default for WebFetch {
    fn default() -> Self {
        Self::new(WebOptions::default())
    }
}

#[async_trait]
impl Tool for WebFetch {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn aliases(&self) -> &'static [(&'static str, &'static str)] {
        &[("uri", "url"), ("link", "url"), ("href", "url"), ("address", "url"), ("page", "url")]
    }

    fn declare(&self, input: &Value) -> Declaration {
        let host = Target::parse(url_of(input)).ok().map(|target| Resource::Host { host: target.host });
        Declaration {
            cacheable: true,
            cache_ms: Some(FRESH_MS),
            cap_bytes: Some(CAP),
            timeout_ms: Some(u64::try_from(self.fetcher.time().as_millis()).unwrap_or(u64::MAX)),
            ..Declaration::new(Effect::Read, host.into_iter().collect())
        }
    }

    fn label(&self, input: &Value) -> Label {
        Label::new("WebFetch", url_of(input))
    }

    async fn run(&self, input: &Value, cx: &ToolCx) -> Result<ToolOutput, ToolFailure> {
        let written = url_of(input);
        let target = Target::parse(written).map_err(|bad| ToolFailure::invalid(format!("{} {bad}", shown(written))))?;
        let fetched = self.fetcher.fetch(target, cx).await?;
        cx.blocking(move |cx| render(fetched, cx.cap_bytes)).await
    }
}

fn url_of(input: &Value) -> &str {
    input.get("url").and_then(Value::as_str).unwrap_or_default()
}

/// An address as it is repeated: on one line, cut, and without what stands in front of an `@`.
fn shown(url: &str) -> String {
    let tail = url.rsplit_once('@').map_or(url, |(_, tail)| tail);
    let tail: String = tail.trim().chars().filter(|c| !hames_protocol::is_unprintable(*c)).take(SHOWN_URL).collect();
    if tail.is_empty() { "the url".into() } else { tail }
}

/// What the model gets.
fn render(fetched: Fetched, cap: usize) -> Result<ToolOutput, ToolFailure> {
    let url = shown(fetched.target.url.as_str());
    let status = fetched.status;
    if !status.is_success() {
        return Err(unsuccessful(&url, &fetched));
    }
    let mut notes = fetched.redirects.clone();
    let page = match text_of(&fetched) {
        Ok(page) => page,
        Err(kind) => {
            let size = match fetched.size {
                Some(size) => format!("{size} bytes"),
                None if fetched.cut.is_none() => format!("{} bytes", fetched.body.len()),
                None => "size unknown".into(),
            };
            return Err(ToolFailure::failed(format!("{url} is {kind} ({size}); only text can be shown")));
        }
    };
    notes.extend(page.note.map(str::to_owned));
    notes.extend(fetched.cut);
    let mut head = String::new();
    if !page.title.is_empty() {
        head.push_str(&format!("{}\n", page.title));
    }
    head.push_str(&url);
    notes.iter().for_each(|note| head.push_str(&format!("\n({note})")));
    // Once more: a page can spell control characters as entities.
    let text = if page.text.trim().is_empty() { "(no text)" } else { page.text.trim_matches('\n') };
    Ok(fit(clean(format!("{head}\n\n{text}").as_bytes()), cap))
}

/// The beginning that fits, up to the end of a line, and the whole beside it.
fn fit(text: String, cap: usize) -> ToolOutput {
    if text.len() <= cap {
        return ToolOutput::text(text);
    }
    /// Bytes kept free for the line that says how much there is.
    const ROOM: usize = 60;
    let at = (0..=cap.saturating_sub(ROOM)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    let end = text[..at].rfind('\n').filter(|end| *end > at / 2).unwrap_or(at);
    let part = format!("{}\n[{} more bytes follow]", text[..end].trim_end(), text.len() - end);
    ToolOutput { whole: Whole::Bytes(text.into_bytes()), ..ToolOutput::text(part) }
}

/// A response as text.
struct Text {
    title: String,
    text: String,
    note: Option<&'static str>,
}

/// The text of a response, or what it is, with its article, where it is none.
fn text_of(fetched: &Fetched) -> Result<Text, String> {
    let Fetched { media, body, .. } = fetched;
    let shown = media.shown();
    let named = || match media.essence.as_str() {
        "" => "no text".to_owned(),
        essence => format!("of type {}", essence.chars().filter(|c| !c.is_control()).take(80).collect::<String>()),
    };
    if shown == Shown::Named {
        return Err(named());
    }
    // A type that says text does not make it one.
    let is_utf16 = media.charset.is_some_and(|charset| charset.name().starts_with("UTF-16"));
    if !is_utf16 {
        match Content::of(body) {
            Content::Text(_) => {}
            Content::Image(kind) => return Err(format!("a {} image", kind.name())),
            Content::Other("a binary file") if shown == Shown::Unknown => return Err(named()),
            Content::Other(kind) => return Err(kind.to_owned()),
        }
    }
    let is_html = shown == Shown::Html || (shown == Shown::Unknown && looks_like_html(body));
    let text = decode(body, media.charset, is_html, fetched.cut.is_none());
    // A carriage return ends a line here; it does not go back to its beginning.
    let text = clean(text.replace("\r\n", "\n").replace('\r', "\n").as_bytes());
    if !is_html {
        return Ok(Text { title: String::new(), text, note: None });
    }
    Ok(match html::to_markdown(&text, &fetched.target.url) {
        Some(page) => {
            let note = page.cut.then_some("parts were left out: there is too much, or it lies too deep");
            Text { title: page.title, text: page.text, note }
        }
        None => {
            let note = Some("the page is too tangled for Markdown; this is its source");
            Text { title: String::new(), text, note }
        }
    })
}

/// A response that is no success: its status, and the beginning of what it says.
fn unsuccessful(url: &str, fetched: &Fetched) -> ToolFailure {
    let status = fetched.status;
    let reason = status.canonical_reason().unwrap_or("no known status");
    let next = match status.as_u16() {
        300..=399 => "it names no place to go on",
        401 | 403 | 407 => "it wants to know who asks; nothing is sent on anybody's behalf",
        404 | 410 => "check the address",
        429 | 500..=599 => "try again later, or use another source",
        _ => "use another source",
    };
    let words = text_of(fetched).map(|page| page.text).unwrap_or_default();
    let words = clean(words.as_bytes());
    let words = words.trim();
    let end = words.char_indices().map(|(at, _)| at).find(|at| *at >= ERROR_TEXT).unwrap_or(words.len());
    let said = match (words.is_empty(), end < words.len()) {
        (true, _) => String::new(),
        (false, more) => format!(". It says:\n{}{}", &words[..end], if more { "…" } else { "" }),
    };
    ToolFailure::failed(format!("{url} answered {} {reason}; {next}{said}", status.as_u16()))
}
