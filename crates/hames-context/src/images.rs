//! How many images a request carries. They weigh far more in bytes than in tokens, so a budget of tokens does not hold
//! them: providers refuse requests over some twenty megabytes, and refuse them for ever.
//!
//! Which images go is a fold over the conversation from its beginning: whenever what is carried passes a high mark, the
//! oldest images go until a low mark is reached. So the same conversation always gives the same request, whoever
//! continues it, and the bytes of requests change only at these points. In place of an image stands a line that says so.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use hames_protocol::{Item, Part, ToolItem, UserItem};

/// Bytes of images a request carries at most: a third more in base64, and what the strictest of the large providers
/// takes in all is 20 MB. What a person attaches to one message is less.
const MAX_BYTES: u64 = 14 << 20;
/// Bytes that are left once it was more.
const LOW_BYTES: u64 = 8 << 20;
/// Images a request carries at most: with more, providers want each of them small.
const MAX_IMAGES: usize = 20;
/// Images that are left once there were more.
const LOW_IMAGES: usize = 10;

/// Said in place of an image that is not sent any more.
const GONE: &str = "was shown here; it is no longer sent. Look at it again if you need it";

/// Leaves out the images a request has no room for, keeping what it made for items from request to request.
#[derive(Debug, Default)]
pub struct ImageRoom {
    /// Items without their images, by the item they were made from.
    made: HashMap<usize, (Arc<Item>, Arc<Item>)>,
}

impl ImageRoom {
    /// Items whose images were left out the last time.
    pub fn left_out(&self) -> usize {
        self.made.len()
    }

    /// The conversation as it is sent.
    pub fn fit(&mut self, items: Vec<Arc<Item>>) -> Vec<Arc<Item>> {
        let first = first_carried(&items);
        if first == 0 {
            self.made.clear();
            return items;
        }
        let mut before = std::mem::take(&mut self.made);
        let mut fitted = Vec::with_capacity(items.len());
        for (at, item) in items.into_iter().enumerate() {
            if at >= first || images_of(&item).next().is_none() {
                fitted.push(item);
                continue;
            }
            // The item is held beside what was made from it, so its address is nobody else's.
            let address = Arc::as_ptr(&item).addr();
            let (item, plain) = before.remove(&address).unwrap_or_else(|| {
                let plain = Arc::new(without_images(&item));
                (item, plain)
            });
            fitted.push(Arc::clone(&plain));
            self.made.insert(address, (item, plain));
        }
        fitted
    }
}

/// The first item whose images are carried; those of the last item that has any always are.
fn first_carried(items: &[Arc<Item>]) -> usize {
    let mut carried: VecDeque<(usize, u64, usize)> = VecDeque::new();
    let (mut bytes, mut images, mut first) = (0u64, 0usize, 0);
    for (at, item) in items.iter().enumerate() {
        let (own_bytes, own_images) =
            images_of(item).fold((0u64, 0), |(sum, n), size| (sum.saturating_add(size), n + 1));
        if own_images == 0 {
            continue;
        }
        carried.push_back((at, own_bytes, own_images));
        bytes = bytes.saturating_add(own_bytes);
        images += own_images;
        if bytes <= MAX_BYTES && images <= MAX_IMAGES {
            continue;
        }
        while (bytes > LOW_BYTES || images > LOW_IMAGES) && carried.len() > 1 {
            if let Some((_, gone_bytes, gone_images)) = carried.pop_front() {
                bytes = bytes.saturating_sub(gone_bytes);
                images -= gone_images;
            }
        }
        first = carried.front().map_or(0, |(at, _, _)| *at);
    }
    first
}

/// Bytes of each image of an item.
fn images_of(item: &Item) -> impl Iterator<Item = u64> {
    let parts: &[Part] = match item {
        Item::User(user) => &user.parts,
        Item::Tool(tool) => &tool.attachments,
        Item::Assistant(_) => &[],
    };
    parts.iter().filter_map(|part| match part {
        Part::Image { blob, .. } => Some(blob.bytes),
        Part::Text { .. } => None,
    })
}

fn without_images(item: &Item) -> Item {
    match item {
        Item::User(user) => {
            let plain = |part: &Part| match part {
                Part::Image { name, .. } => Part::text(format!("[{} {GONE}]", name.as_deref().unwrap_or("an image"))),
                Part::Text { .. } => part.clone(),
            };
            Item::User(UserItem { parts: user.parts.iter().map(plain).collect(), ..user.clone() })
        }
        Item::Tool(tool) => Item::Tool(ToolItem {
            text: format!("{}\n[it {GONE}]", tool.text),
            attachments: Vec::new(),
            ..tool.clone()
        }),
        Item::Assistant(answer) => Item::Assistant(answer.clone()),
    }
}

#[cfg(test)]
mod tests {
    use hames_protocol::BlobRef;
    use proptest::prelude::*;

    use super::*;

    fn image(bytes: u64) -> Part {
        let blob = BlobRef { hash: "h".into(), bytes, dropped: 0, name: None };
        Part::Image { blob, media_type: "image/png".into(), name: Some("a.png".into()) }
    }

    fn result(images: &[u64]) -> Arc<Item> {
        Arc::new(Item::Tool(ToolItem {
            call_id: "c".into(),
            name: "Read".into(),
            text: "a.png: PNG image".into(),
            error: None,
            blob: None,
            attachments: images.iter().map(|bytes| image(*bytes)).collect(),
            capability: false,
        }))
    }

    fn user(images: &[u64]) -> Arc<Item> {
        let mut parts = vec![Part::text("look")];
        parts.extend(images.iter().map(|bytes| image(*bytes)));
        Arc::new(Item::User(UserItem { parts, note: Some("note".into()), nudge: None }))
    }

    fn carried(items: &[Arc<Item>]) -> (u64, usize) {
        items.iter().flat_map(|item| images_of(item)).fold((0, 0), |(bytes, n), size| (bytes + size, n + 1))
    }

    const MB: u64 = 1 << 20;

    #[test]
    fn a_conversation_with_room_for_its_images_is_sent_as_it_is() {
        for items in [
            vec![],
            vec![user(&[])],
            vec![user(&[6 * MB, 6 * MB])],
            vec![user(&[MB]), result(&[5 * MB]), result(&[8 * MB])],
            (0..20).map(|_| result(&[1])).collect(),
        ] {
            let fitted = ImageRoom::default().fit(items.clone());
            assert!(fitted.iter().zip(&items).all(|(a, b)| Arc::ptr_eq(a, b)));
        }
    }

    #[test]
    fn the_oldest_images_go_at_the_high_mark_until_the_low_one() {
        let mut items: Vec<_> = (0..20).map(|_| result(&[1])).collect();
        items.insert(0, user(&[]));
        items.push(result(&[1]));
        let fitted = ImageRoom::default().fit(items.clone());
        assert_eq!(carried(&fitted), (10, 10));
        assert!(Arc::ptr_eq(&fitted[0], &items[0]) && Arc::ptr_eq(&fitted[21], &items[21]));
        let Item::Tool(gone) = fitted[1].as_ref() else { panic!() };
        assert_eq!(
            gone.text,
            "a.png: PNG image\n[it was shown here; it is no longer sent. Look at it again if you need it]"
        );
        let fitted = ImageRoom::default().fit(vec![user(&[7 * MB]), result(&[6 * MB]), result(&[2 * MB])]);
        assert_eq!(carried(&fitted), (8 * MB, 2));
        let Item::User(gone) = fitted[0].as_ref() else { panic!() };
        assert_eq!(gone.note.as_deref(), Some("note"));
        assert_eq!(
            gone.parts,
            [
                Part::text("look"),
                Part::text("[a.png was shown here; it is no longer sent. Look at it again if you need it]")
            ]
        );
        // What came last is shown whatever it weighs: nothing newer makes it superfluous.
        assert_eq!(carried(&ImageRoom::default().fit(vec![result(&[8 * MB]), user(&[9 * MB, 9 * MB])])).1, 2);
    }

    proptest! {
        #[test]
        fn what_is_sent_only_changes_where_images_go_and_never_depends_on_who_continues(
            sizes in proptest::collection::vec(proptest::collection::vec(0u64..9 * MB, 0..4), 0..40),
        ) {
            let items: Vec<Arc<Item>> =
                sizes.iter().enumerate().map(|(at, sizes)| if at % 3 == 0 { user(sizes) } else { result(sizes) }).collect();
            let mut room = ImageRoom::default();
            let mut before: Vec<Arc<Item>> = Vec::new();
            for n in 0..=items.len() {
                let fitted = room.fit(items[..n].to_vec());
                prop_assert_eq!(&fitted, &ImageRoom::default().fit(items[..n].to_vec()));
                let (bytes, images) = carried(&fitted);
                let last = items[..n].iter().rev().find(|item| images_of(item).next().is_some());
                let largest = last.map_or(0, |item| images_of(item).sum());
                prop_assert!(bytes <= MAX_BYTES.max(largest) && images <= MAX_IMAGES);
                // An image that went does not come back, and what was made is the same item.
                for (old, new) in before.iter().zip(&fitted) {
                    let same = Arc::ptr_eq(old, new);
                    prop_assert!(same || images_of(new).next().is_none());
                }
                before = fitted;
            }
        }
    }
}
