//! The losses of a file while it is written.

use std::collections::BTreeMap;

use super::Loss;
use super::index::LOSS;

/// Losses by event and sample id.
#[derive(Clone, Debug, Default)]
pub(crate) struct LossCounts {
    by_id: BTreeMap<(usize, u64), u64>,
    /// Whether anything was reported, be it that nothing was lost.
    counted: bool,
}

impl LossCounts {
    /// Adds losses that have not been reported yet; there may be none.
    pub(crate) fn add(&mut self, losses: &[Loss]) {
        self.counted = true;
        for loss in losses {
            let sum = self.by_id.entry((loss.event, loss.id)).or_default();
            *sum = sum.saturating_add(loss.lost);
        }
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Loss> {
        let losses = self.by_id.iter();
        losses
            .map(|(&(event, id), &lost)| Loss { event, id, lost })
            .collect()
    }

    /// Those of each event, without ids, if losses are counted and all of these fit into so many bytes.
    pub(crate) fn by_event(&self, room: usize) -> Option<Vec<Loss>> {
        let mut by_event: Vec<Loss> = Vec::new();
        for (&(event, _), &lost) in self.by_id.iter().filter(|(_, lost)| **lost > 0) {
            match by_event.last_mut() {
                Some(last) if last.event == event => last.lost = last.lost.saturating_add(lost),
                _ => by_event.push(Loss { event, id: 0, lost }),
            }
        }
        (self.counted && by_event.len() * LOSS <= room).then_some(by_event)
    }
}
