//! Older pages in front, and the tail taken away.
//!
//! A page is folded by itself and then joined: cards whose result came later, badges whose run began earlier, lines that
//! count retries and bubbles of children come out as if everything had been folded at once.

use hames_protocol::api::LogPage;

use super::block::{Block, Key, Kind, Tone};
use super::fold::Fold;
use super::notes;

impl Fold {
    /// Puts an older page in front. What is loaded already is left out.
    pub(super) fn prepend(&mut self, page: &LogPage) {
        let mut older = Fold::default();
        let before = self.first.unwrap_or(u64::MAX);
        for envelope in page.events.iter().filter(|e| e.seq.is_some_and(|seq| seq < before)) {
            older.apply(envelope);
        }
        self.put_behind(older);
    }

    /// Puts what was folded of older events in front of what is here.
    pub(super) fn put_behind(&mut self, mut older: Fold) {
        if older.first.is_none() {
            return;
        }
        self.join_children(&mut older);
        if self.first.is_none() {
            // The newest page comes first, maybe after what streams.
            older.open.go_on(std::mem::take(&mut self.open));
            older.blocks.append(&mut self.blocks);
            older.children.extend(self.children.drain());
            *self = older;
            return;
        }
        self.join(older);
    }

    /// What a later page has of a child that began in an older one belongs into the bubble there.
    fn join_children(&mut self, older: &mut Fold) {
        for (name, key) in older.children.clone() {
            let is_it = |block: &Block| matches!(&block.kind, Kind::Child(child) if child.name == name);
            let later = self.blocks.iter().position(is_it);
            if let Some(at) = older.position(&key)
                && let Kind::Child(child) = &mut older.blocks[at].kind
                && let Some(later) = later.filter(|at| child.is_begun_by(&self.blocks[*at]))
                && let Some(Block { kind: Kind::Child(rest), .. }) = self.blocks.remove(later)
            {
                child.absorb(*rest);
                older.blocks[at].version += 1;
            }
            // The bubble that goes on is the last one of its name.
            if self.children.get(&name).is_none_or(|key| self.position(key).is_none()) {
                self.children.insert(name, key);
            }
        }
        older.children.clear();
    }

    fn join(&mut self, mut older: Fold) {
        // Cuts of a later time reach into earlier pages only where the log still has what they removed: it has not.
        self.first = older.first;
        self.bounds.splice(0..0, older.bounds.drain(..));
        for (run, sum) in older.runs.drain() {
            let known = self.runs.entry(run).or_default();
            known.began = sum.began.or(known.began.take());
            known.first_token = sum.first_token.or(known.first_token);
            known.costs.splice(0..0, sum.costs);
            known.reason = known.reason.take().or(sum.reason);
        }
        self.join_cards(&mut older);
        self.join_retries(&mut older);
        self.masked.extend(older.masked.drain());
        self.calls.extend(older.calls.drain());
        for block in older.blocks.into_iter().rev() {
            self.blocks.push_front(block);
        }
        self.settle_badges();
        self.settle_ends();
        self.settle_checkpoints();
    }

    /// Puts the cards of checkpoints where their windows begin. Several at one place stand in the order they were made.
    pub(super) fn settle_checkpoints(&mut self) {
        let is_one = |block: &Block| matches!(block.kind, Kind::Checkpoint(_));
        if !self.blocks.iter().any(is_one) {
            return;
        }
        let (mut made, kept): (Vec<Block>, Vec<Block>) = self.blocks.drain(..).partition(is_one);
        self.blocks = kept.into();
        let place = |block: &Block| match &block.kind {
            Kind::Checkpoint(it) => (it.behind, it.made_at),
            _ => (0, 0),
        };
        made.sort_by_key(place);
        let mut last = (0, 1u8);
        for mut block in made {
            let (behind, _) = place(&block);
            last = if last.0 == behind { (behind, last.1.saturating_add(1)) } else { (behind, 2u8) };
            block.key = Key::Log(behind, last.1);
            let before = |other: &Block| matches!(other.key, Key::Log(..)) && other.key < block.key;
            let at = self.blocks.iter().rposition(before).map_or(0, |at| at + 1);
            self.blocks.insert(at, block);
        }
    }

    /// Cards without a beginning give what they know to the ones that have it.
    fn join_cards(&mut self, older: &mut Fold) {
        for (id, key) in &older.calls {
            let Some(at) = older.position(key) else { continue };
            let block = &mut older.blocks[at];
            let Kind::Card(card) = &mut block.kind else { continue };
            if self.masked.contains(id) {
                card.is_masked = true;
                block.version += 1;
            }
            let Some(later) = self.calls.remove(id).and_then(|key| self.position(&key)) else { continue };
            let Some(later) = self.blocks.remove(later) else { continue };
            if let Kind::Card(later) = later.kind {
                card.absorb(*later);
                block.version += 1;
            }
        }
    }

    fn join_retries(&mut self, older: &mut Fold) {
        let (Some(last), Some(first)) = (older.blocks.back_mut(), self.blocks.front()) else { return };
        if let (Kind::Note(old), Kind::Note(new)) = (&mut last.kind, &first.kind)
            && (old.tone, new.tone) == (Tone::Retry, Tone::Retry)
        {
            *old = new.clone();
            last.version += 1;
            self.blocks.pop_front();
        }
    }

    fn settle_ends(&mut self) {
        for block in &mut self.blocks {
            let Kind::Note(note) = &mut block.kind else { continue };
            let Some((run, result)) = &note.ends else { continue };
            let reason = self.runs.get(run).and_then(|sum| sum.reason.as_ref());
            if let Some(text) = notes::ended(*result, reason.map(|(_, reason)| reason.as_str()))
                && text != note.text
            {
                note.text = text;
                block.version += 1;
            }
        }
    }

    /// Takes away everything from an event on.
    pub(super) fn cut_from(&mut self, seq: u64) {
        self.blocks.retain(|block| match (&block.kind, &block.key) {
            (Kind::Checkpoint(it), _) => it.made_at < seq,
            (_, Key::Log(at, _)) => *at < seq,
            _ => true,
        });
        self.bounds.retain(|bound| bound.made_at < seq);
        let is_kept = |key: &Key| !matches!(key, Key::Log(at, _) if *at >= seq);
        self.calls.retain(|_, key| is_kept(key));
        self.children.retain(|_, key| is_kept(key));
        for block in &mut self.blocks {
            if let Kind::Child(child) = &mut block.kind {
                child.cut_from(seq);
                block.version += 1;
            }
        }
        for sum in self.runs.values_mut() {
            sum.costs.retain(|(at, _)| *at < seq);
            sum.began.take_if(|(at, ..)| *at >= seq);
            sum.first_token.take_if(|(at, _)| *at >= seq);
            sum.reason.take_if(|(at, _)| *at >= seq);
        }
        self.open.reset();
    }

    /// Behind which event the window begins, where it does not hold everything.
    pub(super) fn window_behind(&self) -> Option<u64> {
        self.bounds.iter().map(|bound| bound.behind).max()
    }
}
