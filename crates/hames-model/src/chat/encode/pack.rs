//! Segments joined into larger pieces, so that a long conversation is a handful of writes and not one for every message.
//!
//! What is joined once is joined into something at least as large the next time only when it has grown to its size: all
//! copying together stays within a small multiple of the conversation. The segments keep pointing into the pieces, so
//! the bytes exist once.

use bytes::{Bytes, BytesMut};

use super::Segment;

/// Segments that may stand alone at the end before they are joined.
const LOOSE: usize = 32;

#[derive(Debug)]
struct Pack {
    segments: usize,
    bytes: Bytes,
}

/// The joined beginning of a conversation.
#[derive(Debug, Default)]
pub(super) struct Packs {
    packs: Vec<Pack>,
    /// Segments joined so far.
    covered: usize,
}

impl Packs {
    /// Forgets what covers more than the first `segments`.
    pub(super) fn keep(&mut self, segments: usize) {
        while self.covered > segments {
            let Some(pack) = self.packs.pop() else { break };
            self.covered -= pack.segments;
        }
    }

    /// Joins what has gathered at the end.
    pub(super) fn settle(&mut self, segments: &mut [Segment]) {
        if segments.len() < self.covered + LOOSE {
            return;
        }
        let mut first = self.covered;
        let mut size: usize = segments[first..].iter().map(|segment| segment.bytes.len()).sum();
        while let Some(pack) = self.packs.pop_if(|pack| pack.bytes.len() <= size) {
            first -= pack.segments;
            size += pack.bytes.len();
        }
        let mut joined = BytesMut::with_capacity(size);
        segments[first..].iter().for_each(|segment| joined.extend_from_slice(&segment.bytes));
        let joined = joined.freeze();
        let mut at = 0;
        for segment in &mut segments[first..] {
            let end = at + segment.bytes.len();
            segment.bytes = joined.slice(at..end);
            at = end;
        }
        self.packs.push(Pack { segments: segments.len() - first, bytes: joined });
        self.covered = segments.len();
    }

    /// All segments in order, in as few pieces as there are.
    pub(super) fn frames(&self, segments: &[Segment], frames: &mut Vec<Bytes>) {
        frames.extend(self.packs.iter().map(|pack| pack.bytes.clone()));
        frames.extend(segments[self.covered..].iter().map(|segment| segment.bytes.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Group, Made};
    use super::*;
    use proptest::prelude::*;

    fn segment(text: &str) -> Segment {
        Segment::new(Group { made: Made::Whole, items: &[] }, text)
    }

    fn all(segments: &[Segment]) -> Vec<u8> {
        segments.iter().flat_map(|s| s.bytes.to_vec()).collect()
    }

    proptest! {
        #[test]
        fn pieces_hold_every_segment_in_order_however_the_conversation_grows_and_shrinks(
            steps in proptest::collection::vec((0usize..60, 0usize..90, 0usize..40), 1..12),
        ) {
            let (mut packs, mut segments) = (Packs::default(), Vec::new());
            for (cut, grow, length) in steps {
                let keep = segments.len().saturating_sub(cut);
                segments.truncate(keep);
                packs.keep(keep);
                segments.extend((0..grow).map(|n| segment(&format!("{n}{}", "x".repeat(length)))));
                let before = all(&segments);
                packs.settle(&mut segments);
                let mut frames = Vec::new();
                packs.frames(&segments, &mut frames);
                prop_assert_eq!(frames.concat(), before.clone());
                prop_assert_eq!(all(&segments), before);
                let bound = LOOSE + 2 + segments.len().max(1).ilog2() as usize * 2;
                prop_assert!(frames.len() <= bound, "{} frames", frames.len());
            }
        }
    }
}
