//! The losses counted while a trace is written, and their records.

use std::collections::BTreeMap;

use super::Loss;
use super::index::LOSS;
use crate::perf::{LostSamples, SampleId, SampleType};

/// Losses by event and sample id.
#[derive(Clone, Debug, Default)]
pub(crate) struct LossCounts {
    by_id: BTreeMap<(usize, u64), u64>,
    /// Whether losses were reported at all, even if there were none.
    counted: bool,
}

impl LossCounts {
    /// Adds losses since the last call. The list may be empty.
    pub(crate) fn add(&mut self, losses: &[Loss]) {
        self.counted = true;
        for loss in losses {
            let sum = self.by_id.entry((loss.event, loss.id)).or_default();
            *sum = sum.saturating_add(loss.lost);
        }
    }

    /// All losses.
    pub(crate) fn all(&self) -> Vec<Loss> {
        let losses = self.by_id.iter();
        losses
            .map(|(&(event, id), &lost)| Loss { event, id, lost })
            .collect()
    }

    /// The losses of each event, without ids; `None` if none were reported, or if they do not fit into `room` bytes.
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

/// Appends a `LOST_SAMPLES` record as perf writes it: with the id, without time and process.
pub(crate) fn put_loss(loss: &Loss, id_type: SampleType, out: &mut Vec<u8>) {
    let lost = LostSamples {
        lost: loss.lost,
        id: SampleId {
            id: loss.id,
            identifier: loss.id,
            ..SampleId::default()
        },
    };
    lost.encode(id_type, out);
}
