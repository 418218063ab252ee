//! Files and images that go along with a message: read, uploaded, shown, taken off again.
//!
//! Nothing is lost on the way: what could not be read or uploaded stays, says why, and is tried again.

use std::sync::Arc;

use hames_protocol::api::ApiError;
use hames_protocol::{Part, SessionId};

use super::path;
use crate::{Answer, Cx, Effect, Request, Ticket};

/// More files than this are better named in the message, and read by the agent.
pub(crate) const MAX_ATTACHMENTS: usize = 10;

/// Where an attachment comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum From {
    Path(String),
    Clipboard,
    /// A message that came back.
    Message,
}

/// How far it is.
#[derive(Clone, Debug, PartialEq)]
enum State {
    /// It is being read.
    Reading(Ticket),
    /// Read, and there is no session yet to keep it.
    Read(Arc<[u8]>),
    /// On its way to the server.
    Uploading(Ticket, Arc<[u8]>),
    /// The parts that go with the message.
    Ready(Vec<Part>),
    /// It failed; the bytes, where they were read.
    Failed(String, Option<Arc<[u8]>>),
}

/// A file or an image.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Attachment {
    name: String,
    from: From,
    state: State,
}

impl Attachment {
    /// A file, to be read.
    pub(crate) fn file(path: &str, cx: &mut Cx<'_>) -> Self {
        let mut file = Self {
            name: path::name(path).to_owned(),
            from: From::Path(path.to_owned()),
            state: State::Ready(Vec::new()),
        };
        file.read(cx);
        file
    }

    /// The image in the clipboard, to be read.
    pub(crate) fn clipboard(cx: &mut Cx<'_>) -> Self {
        let mut image =
            Self { name: "clipboard image".to_owned(), from: From::Clipboard, state: State::Ready(Vec::new()) };
        image.read(cx);
        image
    }

    /// What came with a message that was sent before.
    pub(crate) fn ready(name: String, parts: Vec<Part>) -> Self {
        Self { name, from: From::Message, state: State::Ready(parts) }
    }

    fn read(&mut self, cx: &mut Cx<'_>) {
        let ticket = cx.ticket();
        match &self.from {
            From::Path(path) => cx.push(Effect::ReadFile(ticket, path.clone())),
            From::Clipboard => cx.push(Effect::PasteImage(ticket)),
            From::Message => return,
        }
        self.state = State::Reading(ticket);
    }

    /// Goes on where it waits for a session, or, where `again`, where it failed.
    pub(crate) fn push_on(&mut self, session: Option<&SessionId>, again: bool, cx: &mut Cx<'_>) {
        match (&self.state, session) {
            (State::Failed(_, None), _) if again => self.read(cx),
            (State::Failed(_, Some(bytes)), None) if again => self.state = State::Read(bytes.clone()),
            (State::Failed(_, Some(bytes)), Some(session)) if again => self.upload(bytes.clone(), session, cx),
            (State::Read(bytes), Some(session)) => self.upload(bytes.clone(), session, cx),
            _ => {}
        }
    }

    fn upload(&mut self, bytes: Arc<[u8]>, session: &SessionId, cx: &mut Cx<'_>) {
        let (session, name) = (session.clone(), self.name.clone());
        let ticket = cx.ask(Request::Attach { session, name, bytes: bytes.to_vec() });
        self.state = State::Uploading(ticket, bytes);
    }

    /// Takes an answer in that was meant for it; says whether it was.
    pub(crate) fn take(
        &mut self,
        ticket: Ticket,
        answer: &Result<Answer, ApiError>,
        session: Option<&SessionId>,
        cx: &mut Cx<'_>,
    ) -> bool {
        let bytes = match &self.state {
            State::Reading(asked) if *asked == ticket => None,
            State::Uploading(asked, bytes) if *asked == ticket => Some(bytes.clone()),
            _ => return false,
        };
        self.state = match (answer, bytes) {
            (Ok(Answer::Read { name, bytes }), None) => {
                if !name.is_empty() {
                    self.name = super::text::clean(name).replace('\n', " ");
                }
                State::Read(bytes.as_slice().into())
            }
            (Ok(Answer::Attached(attached)), _) => State::Ready(attached.parts.clone()),
            (Ok(_), bytes) => State::Failed("the answer was not understood".to_owned(), bytes),
            (Err(error), bytes) => State::Failed(error.message.clone(), bytes),
        };
        self.push_on(session, false, cx);
        true
    }

    /// Whether it is an image that was looked for in the clipboard and is not there: nothing is lost without it.
    pub(crate) fn is_nothing(&self) -> bool {
        self.from == From::Clipboard && matches!(self.state, State::Failed(_, None))
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What it adds to the message, once it is there.
    pub(crate) fn parts(&self) -> Option<&[Part]> {
        match &self.state {
            State::Ready(parts) => Some(parts),
            _ => None,
        }
    }

    /// Why it is not there.
    pub(crate) fn failure(&self) -> Option<&str> {
        match &self.state {
            State::Failed(why, _) => Some(why),
            _ => None,
        }
    }

    /// Whether it waits for a session to exist.
    pub(crate) fn wants_session(&self) -> bool {
        matches!(self.state, State::Read(_))
    }

    /// How it is shown.
    pub(crate) fn label(&self) -> String {
        match &self.state {
            State::Ready(_) => format!("[{}]", self.name),
            State::Failed(..) => format!("[{} failed]", self.name),
            _ => format!("[{} …]", self.name),
        }
    }
}

/// Something that went along with a message: its name and its parts.
pub(crate) type Along<'a> = (String, Vec<&'a Part>);

/// A message taken apart again, without copying it: the texts that were written, and what went along.
pub(crate) fn take_apart(parts: &[Part]) -> (Vec<&str>, Vec<Along<'_>>) {
    let (mut texts, mut along) = (Vec::new(), Vec::new());
    let mut parts = parts.iter().peekable();
    while let Some(part) = parts.next() {
        match part {
            Part::Text { text } => match attached_name(text, parts.peek().copied()) {
                Some(name) => {
                    let image = parts.next_if(|next| text.starts_with(IMAGE) && matches!(next, Part::Image { .. }));
                    along.push((name, [Some(part), image].into_iter().flatten().collect()));
                }
                None => texts.push(text.as_str()),
            },
            Part::Image { name, media_type, .. } => {
                along.push((name.clone().unwrap_or_else(|| media_type.clone()), vec![part]));
            }
        }
    }
    (texts, along)
}

/// A message taken apart again: what was written, and what went along.
pub(crate) fn unpack(parts: &[Part]) -> (String, Vec<Attachment>) {
    let (texts, along) = take_apart(parts);
    let attachments =
        along.into_iter().map(|(name, parts)| Attachment::ready(name, parts.into_iter().cloned().collect()));
    (texts.join("\n"), attachments.collect())
}

const FILE: &str = "Attached file ";
const IMAGE: &str = "Attached image ";

/// The name in a part that the server made of a file: the line of an image that follows, a fenced block, or a note that the
/// content is not shown.
fn attached_name(text: &str, next: Option<&Part>) -> Option<String> {
    if let Some(rest) = text.strip_prefix(IMAGE) {
        return matches!(next, Some(Part::Image { .. })).then(|| rest.split(": ").next().unwrap_or(rest).to_owned());
    }
    let rest = text.strip_prefix(FILE)?;
    let line_end = rest.find('\n').unwrap_or(rest.len());
    let (line, behind) = rest.split_at(line_end);
    let block = line.strip_suffix(':').filter(|_| behind.starts_with("\n```") && text.ends_with("```"));
    let name = block.or_else(|| line.split_once(": not shown, because it is ").map(|(name, _)| name))?;
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hames_protocol::BlobRef;

    #[test]
    fn a_message_comes_apart_into_what_was_written_and_what_went_along() {
        let blob = BlobRef { hash: "00".into(), bytes: 1, dropped: 0, name: None };
        let image = Part::Image { blob, media_type: "image/png".into(), name: Some("a.png".into()) };
        let parts = [
            Part::text("look at this"),
            Part::text("Attached image a.png: PNG image, 3×2 pixels."),
            image.clone(),
            Part::text("Attached file b.md:\n```\nx\n```"),
            Part::text("Attached file c.bin: not shown, because it is a binary file (3 bytes)."),
            image.clone(),
        ];
        let (text, attachments) = unpack(&parts);
        assert_eq!(text, "look at this");
        let shown: Vec<_> = attachments.iter().map(|a| (a.name(), a.parts().unwrap().len())).collect();
        assert_eq!(shown, [("a.png", 2), ("b.md", 1), ("c.bin", 1), ("a.png", 1)]);
        let again: Vec<Part> = attachments.iter().flat_map(|a| a.parts().unwrap().to_vec()).collect();
        assert_eq!(again, parts[1..]);
    }

    #[test]
    fn what_a_person_wrote_about_files_stays_text() {
        for text in ["Attached file handling is broken", "Attached image a.png: see", "Attached file x: what?"] {
            let (kept, attachments) = unpack(&[Part::text(text), Part::text("and more")]);
            assert_eq!((kept, attachments.len()), (format!("{text}\nand more"), 0));
        }
    }
}
