//! Records of lost samples.

use super::Loss;
use crate::perf::{LostSamples, SampleId, SampleType};

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
