//! The key of a group: what the hits of one group have in common, as the program writes it.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 4 | process, if it is a key |
//! | 4 | 4 | thread, if it is a key |
//! | 8 | 4 | user, if it is a key |
//! | 16 | 16 | name of the thread, if it is a key |
//! | 32 | | raw part ([`RawLayout`](usdtrec_format::RawLayout)), whose `common_type` says of which event it is, with the arguments that are keys; addresses of texts are 0 |
//! | after it | | room for the texts |
//!
//! All that is not written is 0, so that equal hits have equal keys.

use super::super::insn::{Assembler, Helper, Op, Reg, Width};
use crate::aggregation::{AggregateKey, Aggregation};
use crate::error::RecordError;
use crate::kernel_error::BpfRefusal;

/// Offsets in a key.
pub(super) const PID: u32 = 0;
pub(super) const TID: u32 = 4;
pub(super) const UID: u32 = 8;
pub(super) const COMM: u32 = 16;
pub(super) const COMM_BYTES: u32 = 16;
pub(super) const RAW: u32 = 32;

/// Maximum size of a key, bytes. Older kernels refuse maps whose keys have more than 512.
const MAX_BYTES: usize = 2048;
/// Size of a key if no probe is known when the recording begins, bytes.
const BYTES: usize = 496;

/// How programs group hits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine::bpf) struct Grouping {
    pub(in crate::engine::bpf) aggregation: Aggregation,
    /// Size of a key, bytes, a multiple of 8.
    pub(in crate::engine::bpf) bytes: u32,
}

impl Grouping {
    /// How hits of events with keys of these sizes are grouped, and those of events that are added if their keys are not longer; `None` if they
    /// are only counted.
    ///
    /// # Errors
    /// [`BpfRefusal::LongKeys`].
    pub(in crate::engine::bpf) fn new(
        aggregation: &Aggregation,
        longest: Option<usize>,
    ) -> Result<Option<Self>, RecordError> {
        let all = Self {
            aggregation: aggregation.clone(),
            bytes: longest.map_or(BYTES, |bytes| bytes.min(MAX_BYTES)) as u32,
        };
        if aggregation.by.is_empty() {
            return Ok(None);
        }
        all.check(longest)?;
        Ok(Some(all))
    }

    /// Checks that keys of this size are not too long.
    ///
    /// # Errors
    /// [`BpfRefusal::LongKeys`].
    pub(in crate::engine::bpf) fn check(&self, longest: Option<usize>) -> Result<(), RecordError> {
        match longest.is_some_and(|bytes| bytes > self.bytes as usize) {
            true => Err(RecordError::NoBpf(BpfRefusal::LongKeys)),
            false => Ok(()),
        }
    }

    /// Writes what is known of the thread to the key that begins at an offset from `R7`.
    pub(super) fn put_thread(&self, asm: &mut Assembler, start: i16) {
        let at = |offset: u32| start + offset as i16;
        for key in &self.aggregation.by {
            match key {
                AggregateKey::Pid => {
                    asm.thread_and_process();
                    asm.op_value(Op::ShiftRight, Reg::R0, 32);
                    asm.store(Width::Word, Reg::R7, at(PID), Reg::R0);
                }
                AggregateKey::Tid => {
                    asm.thread_and_process();
                    asm.store(Width::Word, Reg::R7, at(TID), Reg::R0);
                }
                AggregateKey::Uid => {
                    asm.call(Helper::UidGid);
                    asm.store(Width::Word, Reg::R7, at(UID), Reg::R0);
                }
                AggregateKey::Comm => {
                    asm.address(Reg::R1, Reg::R7, at(COMM).into());
                    asm.set(Reg::R2, COMM_BYTES.into());
                    asm.call(Helper::Comm);
                }
                AggregateKey::Argument(_) => {}
            }
        }
    }
}
