//! Call chains: those that were recorded, and those of samples that have registers and a copy of the stack
//! (`perf record --call-graph dwarf`).

pub mod chain_address;
pub mod cut;
pub mod known_cut;
pub mod stack;
pub(crate) mod tables;

use usdtrec_format::Arch;
use usdtrec_format::perf::{Attr, ChainCut, Sample, SampleType, chain_entries};
use usdtrec_unwind::{
    KnownStacks, MappedCode, ProcessCode, RegisterPlaces, StackCopy, StackFrame, Unwinder,
};

use crate::address_cache::{AddressCache, TimedAddress, TimedAnswer};
use crate::process::{DsoId, Mapping};
use crate::session::TraceSession;
use crate::session::ids::SampleTarget;
use crate::unwind::chain_address::{ChainAddress, FrameKind};
use crate::unwind::cut::{LastFrame, StackCut};
use crate::unwind::known_cut::arch_of;

/// Frames that are unwound at most if nothing is said: perf's `PERF_MAX_STACK_DEPTH`.
const USUAL_LIMIT: usize = 127;
/// Addresses whose code is kept.
const CODES: usize = 1 << 14;

/// What a process has at an address.
#[derive(Clone, Copy, Debug)]
struct FoundCode<'s> {
    /// The file that is mapped there.
    file: Option<DsoId>,
    /// Its code.
    code: Option<MappedCode<'s>>,
}

impl<'s> FoundCode<'s> {
    /// The code at an address that is mapped; `None` if it is data.
    fn code(session: &'s TraceSession, mapping: Mapping, address: u64) -> Option<MappedCode<'s>> {
        let file = session.mappings().file(mapping.dso)?;
        if file.is_data {
            return None;
        }
        // Memory with a build-id is that of a program without a name (memfd_create(2)).
        if file.build_id.is_none() && file.is_for_code() {
            return Some(MappedCode::Made);
        }
        let offset = mapping.file_offset(address);
        let code = session.unwind_tables().code(mapping.dso, offset);
        Some(code.map_or(MappedCode::Unknown, MappedCode::File))
    }

    fn find(session: &'s TraceSession, at: TimedAddress) -> TimedAnswer<Self> {
        let mappings = session.mappings();
        let mapping = mappings.mapping(at.pid, at.address, at.time);
        TimedAnswer {
            from: at.time,
            until: mappings.mappings_until(at.pid, at.time),
            answer: Self {
                file: mapping.map(|mapping| mapping.dso),
                code: mapping.and_then(|mapping| Self::code(session, mapping, at.address)),
            },
        }
    }
}

/// Where a stack may come again: what its callers depend on besides registers and copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct StackKey {
    /// Number of the event, whose samples have the same registers.
    event: u32,
    pid: i32,
    /// The next time at which the process maps something else, ns: the same as long as it does not.
    until: u64,
    /// Frames that are found at most.
    limit: usize,
}

/// What was found of a stack.
#[derive(Debug)]
struct KnownStack {
    addresses: Box<[ChainAddress]>,
    cut: Option<StackCut>,
}

impl KnownStack {
    /// Words in memory.
    const fn words(&self) -> usize {
        let bytes = size_of::<Self>() + size_of::<ChainAddress>() * self.addresses.len();
        bytes / size_of::<u64>()
    }
}

/// The code of a sample's process.
struct SampledCode<'c, 's> {
    session: &'s TraceSession,
    codes: &'c mut AddressCache<FoundCode<'s>>,
    pid: i32,
    /// ns.
    time: u64,
}

impl<'s> SampledCode<'_, 's> {
    fn find(&mut self, address: u64) -> FoundCode<'s> {
        let session = self.session;
        let at = TimedAddress {
            pid: self.pid,
            address,
            time: self.time,
        };
        *self.codes.get(at, || FoundCode::find(session, at))
    }
}

impl<'s> ProcessCode<'s> for &mut SampledCode<'_, 's> {
    fn at(&mut self, address: u64) -> Option<MappedCode<'s>> {
        self.find(address).code
    }

    fn is_maker(&mut self) -> bool {
        self.session.mappings().is_maker(self.pid, self.time)
    }
}

/// Finds the call chains of samples. One a thread.
#[derive(Debug)]
pub struct CallChains<'s> {
    session: &'s TraceSession,
    /// Frames that are shown at most, if it is said.
    limit: Option<usize>,
    arch: Option<Arch>,
    /// For each event whose stacks are to be unwound, the registers of its samples.
    places: Vec<Option<RegisterPlaces>>,
    /// `None` if stacks of the recording host's architecture are not unwound.
    unwinder: Option<Unwinder>,
    codes: AddressCache<FoundCode<'s>>,
    known_stacks: Option<KnownStacks<StackKey, KnownStack>>,
    frames: Vec<StackFrame>,
}

impl<'s> CallChains<'s> {
    /// Call chains of a trace, of at most so many frames each; `None`: of as many as is usual.
    pub fn new(session: &'s TraceSession, limit: Option<usize>) -> Self {
        let arch = arch_of(&session.info().machine);
        let places = session.events().events.iter().map(|event| {
            let places = |arch| RegisterPlaces::from_attr(&event.attr, arch);
            has_stack(&event.attr).then(|| arch.map(places).unwrap_or_default())
        });
        let places: Vec<Option<RegisterPlaces>> = places.collect();
        let unwinds = places.iter().any(Option::is_some);
        Self {
            session,
            limit,
            arch,
            places,
            unwinder: arch.filter(|_| unwinds).and_then(Unwinder::new),
            codes: AddressCache::new(CODES),
            known_stacks: arch.filter(|_| unwinds).and_then(KnownStacks::new),
            frames: Vec::new(),
        }
    }

    /// Appends the addresses of a sample's call chain, the innermost first; of callers that are unwound, that of the last byte of the call, as perf
    /// does. Returns why it is cut; `None` if it is not, as far as is known.
    pub fn find(
        &mut self,
        target: SampleTarget,
        sample: &Sample<'_>,
        addresses: &mut Vec<ChainAddress>,
    ) -> Option<StackCut> {
        let limit = self.limit.unwrap_or(usize::MAX);
        let before = addresses.len();
        let deferred = sample
            .deferred_cookie()
            .map(|cookie| self.session.deferred_chains().find(sample, cookie));
        let of_user = deferred.flatten().unwrap_or_default();
        let entries = sample.chain().chain(chain_entries(of_user));
        let recorded = entries.map(|entry| ChainAddress {
            address: entry.address,
            kind: match entry.is_first {
                true => FrameKind::Hit,
                false => FrameKind::Caller,
            },
        });
        addresses.extend(recorded.take(limit.saturating_add(1)));
        let recorded = addresses.len() - before;
        if recorded > limit {
            addresses.truncate(before.saturating_add(limit));
            return Some(StackCut::Limit(limit));
        }
        if deferred == Some(None) {
            return Some(StackCut::NotDeferred);
        }
        let event = self.places.get(target.event as usize);
        let is_copied = event.is_some_and(Option::is_some);
        // Nothing is copied where no stack was taken.
        if !is_copied || sample.chain_cut() == Some(ChainCut::Rate) {
            let cut = sample.chain_cut()?;
            return Some(self.recorded(cut, sample, addresses.get(before..).unwrap_or_default()));
        }
        let limit = self.limit.unwrap_or(USUAL_LIMIT).saturating_sub(recorded);
        self.unwind(target, sample, limit, addresses)
    }

    /// Why the recorder cut a chain.
    fn recorded(&self, cut: ChainCut, sample: &Sample<'_>, frames: &[ChainAddress]) -> StackCut {
        let last = frames.last().map_or(sample.ip, |last| last.address);
        let mapping = self
            .session
            .mappings()
            .mapping(sample.pid, last, sample.time);
        StackCut::recorded(cut, frames.len(), mapping.map(|mapping| mapping.dso))
    }

    /// Appends the addresses of the stack that was copied.
    fn unwind(
        &mut self,
        target: SampleTarget,
        sample: &Sample<'_>,
        limit: usize,
        addresses: &mut Vec<ChainAddress>,
    ) -> Option<StackCut> {
        /// `PERF_SAMPLE_REGS_ABI_32`, `PERF_SAMPLE_REGS_ABI_64`.
        const ABI: [u64; 2] = [1, 2];
        let places = self.places.get(target.event as usize)?.as_ref()?;
        let (Some(unwinder), Some(arch)) = (&mut self.unwinder, self.arch) else {
            return Some(StackCut::Machine);
        };
        match sample.regs_abi {
            abi if abi == ABI[1] => {}
            abi if abi == ABI[0] => return Some(StackCut::Program32),
            _ => return Some(StackCut::NoRegisters),
        }
        let hit = places.read(sample);
        let sp = usdtrec_unwind::column(arch, arch.stack_pointer());
        let Some(start) = sp.and_then(|sp| hit.get(sp)) else {
            return Some(StackCut::NoRegisters);
        };
        let stack = StackCopy {
            start,
            bytes: sample.stack,
        };
        let session = self.session;
        let key = StackKey {
            event: target.event,
            pid: sample.pid,
            until: session.mappings().mappings_until(sample.pid, sample.time),
            limit,
        };
        let known = self.known_stacks.as_ref();
        if let Some(known) = known.and_then(|known| known.get(key, &hit, stack)) {
            addresses.extend_from_slice(&known.addresses);
            return known.cut;
        }
        let mut code = SampledCode {
            session,
            codes: &mut self.codes,
            pid: sample.pid,
            time: sample.time,
        };
        self.frames.clear();
        let end = unwinder.unwind(&hit, stack, &mut code, limit, &mut self.frames);
        let last = self.frames.last();
        let last = last.and_then(|frame| code.find(frame.code()).file);
        let before = addresses.len();
        addresses.extend(self.frames.iter().map(|frame| ChainAddress {
            address: frame.code(),
            kind: match frame.is_return {
                true => FrameKind::Caller,
                false => FrameKind::Hit,
            },
        }));
        let last = LastFrame {
            file: last,
            wrong: last.and_then(|file| session.unwind_tables().wrong(file)),
            copied: sample.stack.len(),
            limit: self.limit.unwrap_or(USUAL_LIMIT),
        };
        let cut = StackCut::from_end(end, last);
        if let (Some(known), Some(followed)) = (&mut self.known_stacks, unwinder.followed()) {
            let found = KnownStack {
                addresses: addresses.get(before..).unwrap_or_default().into(),
                cut,
            };
            let words = found.words();
            known.put(key, &hit, stack, followed, (found, words));
        }
        cut
    }
}

/// Whether samples of an event have a copy of the stack that is to be unwound: perf asks the kernel for the callers in the kernel only then. Without
/// callers, the copy is for the arguments.
fn has_stack(attr: &Attr) -> bool {
    let parts = SampleType::CALLCHAIN | SampleType::REGS_USER | SampleType::STACK_USER;
    attr.sample_type.0 & parts.0 == parts.0 && attr.flags & Attr::EXCLUDE_CALLCHAIN_USER != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_for_arguments_are_no_stack_to_unwind() {
        let mut attr = Attr {
            sample_type: SampleType::CALLCHAIN | SampleType::REGS_USER | SampleType::STACK_USER,
            flags: Attr::EXCLUDE_CALLCHAIN_USER,
            ..Attr::default()
        };
        assert!(has_stack(&attr));
        attr.flags = 0;
        assert!(!has_stack(&attr));
        attr.flags = Attr::EXCLUDE_CALLCHAIN_USER;
        attr.sample_type = SampleType::REGS_USER | SampleType::STACK_USER;
        assert!(!has_stack(&attr));
    }
}
