//! Samples (`PERF_RECORD_SAMPLE`): one hit.

use super::Attr;

/// Where the parts of a sample stand, worked out once for an attr.
#[derive(Clone, Debug)]
pub struct SampleLayout {}

/// One sample, its parts borrowed from the record. What the attr does not sample is 0, empty or `None`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample<'a> {
    /// Event id (`IDENTIFIER`, else `ID`).
    pub id: u64,
    /// Instruction pointer.
    pub ip: u64,
    /// Process id; -1 when not known.
    pub pid: i32,
    /// Thread id.
    pub tid: i32,
    /// Time, ns of the trace's clock.
    pub time: u64,
    /// CPU.
    pub cpu: u32,
    /// Period.
    pub period: u64,
    /// Call chain: addresses and context markers, 8 bytes each.
    pub callchain: &'a [u8],
    /// Raw data of a tracepoint.
    pub raw: &'a [u8],
    /// `perf_sample_regs_abi`: 0 none, 1 32-bit, 2 64-bit.
    pub regs_abi: u64,
    /// The registers of the attr's mask in ascending bit order, 8 bytes each.
    pub regs: &'a [u8],
    /// Stack bytes from the stack pointer upwards, as many as were really copied (`dyn_size`).
    pub stack: &'a [u8],
}

impl SampleLayout {
    /// The layout of an attr's samples.
    #[must_use]
    pub fn new(_attr: &Attr) -> Self {
        todo!()
    }

    /// Takes a sample's body (behind the record header) apart. `None` if it is shorter than the attr asks for.
    #[must_use]
    pub fn parse<'a>(&self, _body: &'a [u8]) -> Option<Sample<'a>> {
        todo!()
    }
}
