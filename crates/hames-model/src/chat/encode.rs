//! Requests, rendered from what was rendered before.
//!
//! A body is a head (model, tools, system text), one segment per message, and a tail of parameters, so that what changes
//! from request to request stands behind what does not. A segment is kept with the items it was made from and used
//! again, byte for byte, as long as those are the same items (by pointer: items are immutable). So a step costs what it
//! adds. The fingerprint is a chain of the segments' hashes, so it costs no more either.
//!
//! An item gives one message, but for two cases: neighbouring user items are one message, and images of results are
//! sent in a user message of their own behind the last result of the step, because nothing else may carry images.

mod ids;
mod pack;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use hames_protocol::{
    BlobStore, ErrorClass, Failure, Head, Item, Lesson, ModelRef, Part, PreparedInfo, Remedy, RequestOptions,
};

use self::ids::Ids;
use self::pack::Packs;
use super::parameters::Parameters;
use super::render::{self, Loaded, Replay, SystemPlace};
use crate::ThinkingDialect;
use crate::error::Place;
use crate::learned::Sent;

/// Bytes of one image that are sent; larger ones are refused by every provider.
const MAX_IMAGE_BYTES: u64 = 32 * 1024 * 1024;

/// How requests to one endpoint and model are written.
#[derive(Clone, Debug)]
pub(crate) struct Style {
    /// By which its own answers are known.
    pub(crate) model: ModelRef,
    pub(crate) thinking: Option<ThinkingDialect>,
    pub(crate) replay_reasoning: Option<bool>,
    /// The name of the output limit.
    pub(crate) limit_name: &'static str,
    /// Whether images are sent; where not, words stand in their place.
    pub(crate) images: bool,
}

/// How messages are written: what settings and lessons come to. Another manner is another text of every message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Manner {
    system: SystemPlace,
    replay: Replay,
}

impl Manner {
    fn new(style: &Style, lessons: &[Lesson]) -> Self {
        let about = |name: &str| lessons.iter().find(|lesson| lesson.parameter == name).map(|lesson| &lesson.remedy);
        let system = match about("system") {
            Some(Remedy::Rename(role)) if role == "user" => SystemPlace::FirstMessage,
            Some(Remedy::Rename(role)) => SystemPlace::Role(role.clone()),
            _ => SystemPlace::Role("system".to_owned()),
        };
        let reasoning = about("reasoning_content");
        let setting = if reasoning == Some(&Remedy::Drop) { Some(false) } else { style.replay_reasoning };
        let insisted = matches!(reasoning, Some(Remedy::Set(_)));
        Self { system, replay: Replay { own: true, setting, insisted } }
    }
}

/// What a request is made of.
pub(crate) struct Wanted<'a> {
    pub(crate) head: &'a Arc<Head>,
    pub(crate) items: &'a [Arc<Item>],
    pub(crate) options: &'a RequestOptions,
    /// What is known of the endpoint beyond its settings.
    pub(crate) lessons: &'a [Lesson],
}

/// A request ready to be sent: shared pieces, never joined.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    pub(crate) frames: Arc<[Bytes]>,
    pub(crate) len: u64,
}

type Hash = [u8; 32];

/// What a message is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Made {
    /// All that its items say.
    Whole,
    /// The images of its results, and all that user items behind them say.
    OfImages,
}

/// The items of one message.
#[derive(Clone, Copy)]
struct Group<'a> {
    made: Made,
    items: &'a [Arc<Item>],
}

/// One message and what it was made from.
#[derive(Debug)]
struct Segment {
    made: Made,
    items: Vec<Arc<Item>>,
    /// With a comma in front.
    bytes: Bytes,
    hash: Hash,
    /// Hash of this segment and all before it.
    chain: Hash,
    /// Bytes of this segment and all before it.
    end: u64,
    /// Whether it is an answer.
    is_answer: bool,
    /// Whether it carries reasoning.
    has_reasoning: bool,
}

#[derive(Debug)]
struct RenderedHead {
    head: Arc<Head>,
    bytes: Bytes,
    hash: Hash,
    /// Whether it ends with a message, so that the next one needs its comma.
    has_system: bool,
}

/// Where two requests part.
struct Change {
    /// Segments both have.
    common: usize,
    /// The segment that stood there before.
    old: Option<(Vec<Arc<Item>>, Bytes)>,
}

/// The renderer of one conversation.
#[derive(Debug)]
pub(crate) struct Encoder {
    style: Style,
    manner: Manner,
    head: Option<RenderedHead>,
    segments: Vec<Segment>,
    packs: Packs,
    tail: Bytes,
    ids: Ids,
    sent: Sent,
}

impl Encoder {
    pub(crate) fn new(style: Style) -> Self {
        Self {
            style,
            manner: Manner::default(),
            head: None,
            segments: Vec::new(),
            packs: Packs::default(),
            tail: Bytes::new(),
            ids: Ids::default(),
            sent: Sent::default(),
        }
    }

    /// Renders a request.
    pub(crate) async fn prepare(
        &mut self,
        wanted: Wanted<'_>,
        blobs: &dyn BlobStore,
        place: &Place,
    ) -> Result<(Body, PreparedInfo), Failure> {
        let Wanted { head, items, options, lessons } = wanted;
        let groups = grouped(items, self.style.images);
        let is_fresh = self.take_manner(Manner::new(&self.style, lessons), head, &groups);
        let old_head = self.render_head(head, is_fresh);
        let change = self.render_segments(&groups, is_fresh, blobs, place).await?;
        let parameters = Parameters::wanted(options, self.style.thinking, self.style.limit_name)
            .taught(lessons, !head.tools.is_empty());
        let tail = Bytes::from(parameters.tail());
        let (changed_at, changed_why) = self.changed(old_head, &change, &tail);
        self.tail = tail;
        self.sent = self.carries(head, parameters);
        let body = self.body();
        let info = PreparedInfo { bytes: body.len, fingerprint: self.fingerprint(), changed_at, changed_why };
        Ok((body, info))
    }

    /// The items of the request rendered last.
    pub(crate) fn items(&self) -> Vec<Arc<Item>> {
        // A message of images names results that have their own messages before it.
        let own = |segment: &Segment, item: &Item| segment.made == Made::Whole || !matches!(item, Item::Tool(_));
        self.segments.iter().flat_map(|s| s.items.iter().filter(|item| own(s, item)).cloned()).collect()
    }

    /// What the request rendered last carries.
    pub(crate) fn sent(&self) -> &Sent {
        &self.sent
    }

    fn carries(&self, head: &Head, parameters: Parameters) -> Sent {
        let role = match &self.manner.system {
            SystemPlace::Role(role) => role.clone(),
            SystemPlace::FirstMessage => "user".to_owned(),
        };
        Sent {
            parameters,
            has_tools: !head.tools.is_empty(),
            system_role: (!head.system.trim().is_empty()).then_some(role),
            has_answers: self.segments.iter().any(|segment| segment.is_answer),
            has_reasoning: self.segments.iter().any(|segment| segment.has_reasoning),
        }
    }

    /// Whether nothing rendered before can be used: messages are written in another manner, or the system text stands in
    /// the first of them and one of the two is another.
    fn take_manner(&mut self, manner: Manner, head: &Arc<Head>, groups: &[Group<'_>]) -> bool {
        let same_head = self.head.as_ref().is_some_and(|rendered| Arc::ptr_eq(&rendered.head, head));
        let same_first = self.segments.first().zip(groups.first()).is_some_and(|(segment, group)| segment.is_of(group));
        let is_other = manner != self.manner;
        let is_fresh = is_other || (manner.system == SystemPlace::FirstMessage && !(same_head && same_first));
        self.manner = manner;
        is_fresh
    }

    /// Renders the head if it is another; gives the one before it.
    fn render_head(&mut self, head: &Arc<Head>, is_fresh: bool) -> Option<Bytes> {
        let before = self.head.as_ref().map(|h| h.bytes.clone());
        let same = !is_fresh && self.head.as_ref().is_some_and(|h| Arc::ptr_eq(&h.head, head));
        if !same {
            let text = render::head(&self.style.model.id, head, &self.manner.system);
            let has_system = !text.ends_with('[');
            let hash = hash_of(text.as_bytes());
            self.head = Some(RenderedHead { head: Arc::clone(head), bytes: text.into(), hash, has_system });
        }
        before
    }

    /// Makes the segments those of `groups`, rendering only what is new.
    async fn render_segments(
        &mut self,
        groups: &[Group<'_>],
        is_fresh: bool,
        blobs: &dyn BlobStore,
        place: &Place,
    ) -> Result<Change, Failure> {
        let same = |(segment, group): &(&Segment, &Group<'_>)| !is_fresh && segment.is_of(group);
        let common = self.segments.iter().zip(groups).take_while(same).count();
        self.packs.keep(common);
        let mut before: Vec<Segment> = self.segments.drain(common..).collect();
        let old = before.first().map(|s| (s.items.clone(), s.bytes.clone()));
        // What only moved keeps its bytes; what is gone frees its ids first, so that they can be given again.
        let kept: HashMap<Key, Group<'_>> =
            groups[common..].iter().filter_map(|group| Some((key(group.made, group.items)?, *group))).collect();
        let mut moved: HashMap<Key, Segment> = HashMap::new();
        for segment in before.drain(..) {
            let Some(key) = key(segment.made, &segment.items) else { continue };
            let stays = kept.get(&key).is_some_and(|group| segment.is_of(group));
            if stays && !is_fresh {
                moved.insert(key, segment);
            } else if !stays {
                self.ids.forget(&segment.items);
            }
        }
        for group in &groups[common..] {
            let Some(key) = key(group.made, group.items) else { continue };
            match moved.remove(&key) {
                Some(segment) => self.push(segment),
                None => {
                    if let Some(text) = self.render(*group, blobs, place).await? {
                        self.push(Segment::new(*group, &text));
                    }
                }
            }
        }
        self.packs.settle(&mut self.segments);
        Ok(Change { common, old })
    }

    fn push(&mut self, mut segment: Segment) {
        let (chain, end) = self.segments.last().map_or((Hash::default(), 0), |s| (s.chain, s.end));
        segment.end = end + segment.bytes.len() as u64;
        segment.chain = joined(&chain, &segment.hash);
        self.segments.push(segment);
    }

    /// The message of one group; `None` where it says nothing.
    async fn render(
        &mut self,
        group: Group<'_>,
        blobs: &dyn BlobStore,
        place: &Place,
    ) -> Result<Option<String>, Failure> {
        let first = group.items.first().map(Arc::as_ref).filter(|_| group.made == Made::Whole);
        match first {
            Some(Item::Assistant(answer)) => {
                let ids: Vec<Arc<str>> =
                    answer.calls.iter().map(|call| self.ids.give(&call.call_id, &call.provider_id)).collect();
                let ids: Vec<&str> = ids.iter().map(AsRef::as_ref).collect();
                let own = answer.model.as_ref().is_none_or(|model| **model == self.style.model);
                Ok(Some(render::assistant(answer, &ids, Replay { own, ..self.manner.replay })))
            }
            Some(Item::Tool(result)) => match self.ids.known(&result.call_id) {
                Some(id) => Ok(Some(render::tool(result, id))),
                None => Err(place.failure(
                    ErrorClass::WireRule,
                    &format!("the result of {} has no call before it, so the request would be refused", result.name),
                    "Please report this as a fault of Hames",
                )),
            },
            _ => {
                let images = load(group.items, self.style.images, blobs).await;
                Ok(render::user(group.items, &images, self.first_words().as_deref()))
            }
        }
    }

    /// The system text, where the first message has to begin with it and is the next to be rendered.
    fn first_words(&self) -> Option<String> {
        let is_first = self.segments.is_empty() && self.manner.system == SystemPlace::FirstMessage;
        let head = self.head.as_ref().filter(|_| is_first)?;
        Some(head.head.system.clone()).filter(|text| !text.trim().is_empty())
    }

    fn changed(&self, old_head: Option<Bytes>, change: &Change, tail: &Bytes) -> (Option<u64>, &'static str) {
        let Some(old_head) = old_head else { return (None, "first") };
        let head = self.head.as_ref().map(|h| h.bytes.clone()).unwrap_or_default();
        if head != old_head {
            return (Some(common_bytes(&old_head, &head)), "head");
        }
        let drop_comma = u64::from(!self.needs_first_comma());
        let at_segment = |n: usize| match n {
            0 => head.len() as u64,
            n => head.len() as u64 + self.segments[n - 1].end - drop_comma,
        };
        let start = at_segment(change.common);
        match (&change.old, self.segments.get(change.common)) {
            (None, None) => (Some(start + common_bytes(&self.tail, tail)), "appended"),
            (None, Some(_)) => (Some(start), "appended"),
            (Some(_), None) => (Some(start), "item"),
            (Some((items, bytes)), Some(new)) => {
                let grown = new.items.len() > items.len() && same_items(items, &new.items[..items.len()]);
                let lost = if change.common == 0 { drop_comma } else { 0 };
                (Some(start + common_bytes(bytes, &new.bytes) - lost), if grown { "appended" } else { "item" })
            }
        }
    }

    fn needs_first_comma(&self) -> bool {
        self.head.as_ref().is_some_and(|h| h.has_system)
    }

    fn body(&self) -> Body {
        let mut frames: Vec<Bytes> = self.head.iter().map(|h| h.bytes.clone()).collect();
        let first = frames.len();
        self.packs.frames(&self.segments, &mut frames);
        if let (false, Some(frame)) = (self.needs_first_comma(), frames.get_mut(first)) {
            *frame = frame.slice(1..);
        }
        frames.push(self.tail.clone());
        let len = frames.iter().map(|frame| frame.len() as u64).sum();
        Body { frames: frames.into(), len }
    }

    fn fingerprint(&self) -> String {
        /// Characters of a fingerprint: 128 bits tell requests apart.
        const CHARS: usize = 32;
        let head = self.head.as_ref().map_or(Hash::default(), |h| h.hash);
        let chain = self.segments.last().map_or(Hash::default(), |s| s.chain);
        let all = joined(&joined(&head, &chain), &hash_of(&self.tail));
        let mut text = blake3::Hash::from_bytes(all).to_hex().to_string();
        text.truncate(CHARS);
        text
    }
}

/// Items as messages: consecutive user items are one, an answer with nothing to send is none, and the images of
/// results, where they are sent, are one with what the user says behind them.
fn grouped(items: &[Arc<Item>], images: bool) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::with_capacity(items.len());
    let mut at = 0;
    // The first of the neighbouring results that has images.
    let mut seen = None;
    while at < items.len() {
        let mut end = at + 1;
        match items[at].as_ref() {
            Item::Tool(result) => {
                if images && !result.attachments.is_empty() {
                    seen = seen.or(Some(at));
                }
                groups.push(Group { made: Made::Whole, items: &items[at..end] });
                let is_last = !matches!(items.get(end).map(Arc::as_ref), Some(Item::Tool(_)));
                if let Some(first) = seen.take_if(|_| is_last) {
                    while end < items.len() && joins_user(&items[end]) {
                        end += 1;
                    }
                    groups.push(Group { made: Made::OfImages, items: &items[first..end] });
                }
            }
            Item::Assistant(answer) if !render::has_substance(answer) => {}
            Item::Assistant(_) => groups.push(Group { made: Made::Whole, items: &items[at..end] }),
            Item::User(_) => {
                // An empty answer between two messages leaves them neighbours.
                while end < items.len() && joins_user(&items[end]) {
                    end += 1;
                }
                groups.push(Group { made: Made::Whole, items: &items[at..end] });
            }
        }
        at = end;
    }
    groups
}

fn joins_user(item: &Item) -> bool {
    match item {
        Item::User(_) => true,
        Item::Assistant(answer) => !render::has_substance(answer),
        Item::Tool(_) => false,
    }
}

impl Segment {
    fn new(group: Group<'_>, text: &str) -> Self {
        let is_answer = matches!(group.items.first().map(Arc::as_ref), Some(Item::Assistant(_)));
        // Members of the message: within a string a quote has a backslash before it.
        let members = [",\"reasoning_content\":", ",\"reasoning\":", ",\"reasoning_details\":"];
        let bytes = Bytes::from(format!(",{text}"));
        Self {
            made: group.made,
            items: group.items.to_vec(),
            hash: hash_of(&bytes),
            chain: Hash::default(),
            end: 0,
            is_answer,
            has_reasoning: is_answer && members.iter().any(|member| text.contains(member)),
            bytes,
        }
    }

    fn is_of(&self, group: &Group<'_>) -> bool {
        self.made == group.made && same_items(&self.items, group.items)
    }
}

/// What tells messages apart. Segments hold their items, so no address is given twice while it is compared.
type Key = (Made, usize);

fn key(made: Made, items: &[Arc<Item>]) -> Option<Key> {
    Some((made, Arc::as_ptr(items.first()?).addr()))
}

fn same_items(a: &[Arc<Item>], b: &[Arc<Item>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Arc::ptr_eq(a, b))
}

/// The images of a message, in order.
async fn load(items: &[Arc<Item>], wanted: bool, blobs: &dyn BlobStore) -> Vec<Loaded> {
    let mut images = Vec::new();
    for part in items.iter().flat_map(|item| render::user_parts(item)) {
        let Part::Image { blob, .. } = part else { continue };
        let sendable = 1..=MAX_IMAGE_BYTES;
        images.push(if !wanted {
            Loaded::NotTaken
        } else if !sendable.contains(&blob.bytes) || blob.dropped > 0 {
            Loaded::Missing
        } else {
            match blobs.get(&blob.hash, 0, blob.bytes).await {
                Ok(bytes) if bytes.len() as u64 == blob.bytes => Loaded::Bytes(bytes),
                _ => Loaded::Missing,
            }
        });
    }
    images
}

fn common_bytes(a: &[u8], b: &[u8]) -> u64 {
    a.iter().zip(b).take_while(|(a, b)| a == b).count() as u64
}

fn hash_of(bytes: &[u8]) -> Hash {
    *blake3::hash(bytes).as_bytes()
}

fn joined(a: &Hash, b: &Hash) -> Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(a).update(b);
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests;
