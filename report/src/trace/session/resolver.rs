//! What a thread that shows samples keeps between them: buffers, and answers that mostly stay the same.

use std::sync::Arc;

use usdtrec_format::Value;
use usdtrec_format::perf::Sample;

use crate::trace::address_cache::{AddressCache, TimedAddress, TimedAnswer};
use crate::trace::calls::paths::CallPath;
use crate::trace::process::cgroups::CgroupSpan;
use crate::trace::process::comm::{CommSpan, ProcessNumber};
use crate::trace::process::names::{EscapedName, NameId};
use crate::trace::process::{Dso, DsoId};
use crate::trace::session::TraceSession;
use crate::trace::session::ids::Target;
use crate::trace::symbols::Symbol;
use crate::trace::symbols::known_inlining::FoundInlining;
use crate::trace::symbols::perf_map::MadePlace;
use crate::trace::unwind::CallChains;
use crate::trace::unwind::cut::StackCut;
use crate::trace::unwind::stack::StackPart;

/// Most places that are remembered; then the memory is started anew.
const PLACES: usize = 1 << 16;
/// Threads whose names are remembered.
const NAMES: usize = 256;

/// Decodes samples and finds where they hit. One a thread.
#[derive(Debug)]
pub(crate) struct Resolver<'s> {
    session: &'s TraceSession,
    /// Values of each site's arguments, made when first needed.
    values: Vec<Vec<Value>>,
    places: AddressCache<Place>,
    names: Vec<(i32, CommSpan)>,
    /// Control groups of some processes.
    cgroups: Vec<(i32, CgroupSpan)>,
    /// Made when first needed.
    chains: Option<StackChains<'s>>,
    /// Buffers.
    addresses: Vec<u64>,
    parts: Vec<StackPart>,
    /// Of the sample at hand, where it is requested.
    path: Option<CallPath>,
}

/// Where call chains come from.
#[derive(Debug)]
struct StackChains<'s> {
    all: CallChains<'s>,
    /// Of hits with their callers alone.
    callers: CallChains<'s>,
}

/// A frame in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StackPlace {
    pub(crate) file: DsoId,
    /// Offset of its address in the file, bytes.
    pub(crate) offset: u64,
    /// Offset of an instruction whose line is that of the frame, bytes.
    pub(crate) instruction: u64,
}

/// Frames of a hit with its caller.
const WITH_CALLER: usize = 2;

/// The file and the function at an address.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) file: Option<DsoId>,
    /// Offset of the address in the file, bytes.
    offset: u64,
    pub(crate) symbol: Option<Symbol>,
    /// If no file is there, but code that the process made at run time may be.
    made: Option<MadePlace>,
    /// What is inlined there, if the code at the address was hit, and if it called a function; `None` until it is looked up.
    inlining: [Option<MaybeInlining>; 2],
}

/// `None` if nothing is known.
type MaybeInlining = Option<Arc<FoundInlining>>;

/// What an address in a stack is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// Of the instruction with the probe.
    Hit,
    /// Of a caller: within the call, or after it.
    Caller,
}

impl FrameKind {
    /// That of an address by its number in a stack, from the innermost.
    pub(crate) const fn of(number: usize) -> Self {
        match number {
            0 => Self::Hit,
            _ => Self::Caller,
        }
    }

    /// The offset of an instruction of which a file offset in a stack says the address.
    const fn instruction(self, offset: u64) -> u64 {
        match self {
            Self::Hit => offset,
            // An address after the call may be another function's, or another line's.
            Self::Caller => offset.saturating_sub(1),
        }
    }
}

/// A span that holds no time.
const NEVER: CommSpan = CommSpan {
    name: None,
    process: ProcessNumber::UNKNOWN,
    from: 0,
    until: 0,
};

/// A control group for no time.
const NOWHERE: CgroupSpan = CgroupSpan {
    path: None,
    from: 0,
    until: 0,
};

impl<'s> Resolver<'s> {
    pub(crate) fn new(session: &'s TraceSession) -> Self {
        Self {
            session,
            values: vec![Vec::new(); session.events.sites.len()],
            places: AddressCache::new(PLACES),
            names: vec![(0, NEVER); NAMES],
            cgroups: vec![(0, NOWHERE); NAMES],
            chains: None,
            addresses: Vec::new(),
            parts: Vec::new(),
            path: None,
        }
    }

    /// Says which functions of the script the thread of the next sample is in.
    #[inline]
    pub(crate) const fn set_path(&mut self, path: Option<CallPath>) {
        self.path = path;
    }

    /// The functions of the script that the thread of the sample at hand is in; `None` if they are not known.
    #[inline]
    pub(crate) const fn path(&self) -> Option<CallPath> {
        self.path
    }

    /// What a thread, or a process by its main thread, is called at a time; `None` if the trace does not say.
    #[inline]
    pub(crate) fn name(&mut self, tid: i32, time: u64) -> Option<NameId> {
        self.comm(tid, time).name
    }

    /// The name of a thread at a time, and which process of its pid a main thread belongs to.
    #[inline]
    pub(crate) fn comm(&mut self, tid: i32, time: u64) -> CommSpan {
        let Some((known, span)) = self.names.get_mut(tid as usize % NAMES) else {
            return self.session.processes.comm(tid, time);
        };
        if *known != tid || !(span.from..span.until).contains(&time) {
            *known = tid;
            *span = self.session.processes.comm(tid, time);
        }
        *span
    }

    /// The control group of a process at a time; `None` if the trace does not say.
    #[inline]
    pub(crate) fn cgroup(&mut self, pid: i32, time: u64) -> Option<NameId> {
        let processes = &self.session.processes;
        let Some((known, span)) = self.cgroups.get_mut(pid as usize % NAMES) else {
            return processes.cgroup(pid, time).path;
        };
        if *known != pid || !(span.from..span.until).contains(&time) {
            *known = pid;
            *span = processes.cgroup(pid, time);
        }
        span.path
    }

    /// Its path.
    pub(crate) fn cgroup_path(&mut self, pid: i32, time: u64) -> Option<EscapedName<'s>> {
        let id = self.cgroup(pid, time)?;
        self.session.processes.cgroup_path(id)
    }

    pub(crate) const fn session(&self) -> &'s TraceSession {
        self.session
    }

    /// Number of arguments of a site.
    pub(crate) fn argument_count(&self, site: usize) -> usize {
        let site = self.session.events.sites.get(site);
        site.map_or(0, |site| site.decoder.len())
    }

    /// The arguments of a sample of a site.
    #[inline]
    pub(crate) fn values(&mut self, site: usize, sample: &Sample<'_>) -> &[Value] {
        let Some(values) = self.values.get_mut(site) else {
            return &[];
        };
        let decoder = &self.session.events.sites[site].decoder;
        if values.len() != decoder.len() {
            *values = decoder.values();
        }
        decoder.decode(sample, values);
        values
    }

    /// One argument of a sample of a site. What [`decoded`](Self::decoded) gives is not of this sample then.
    #[inline]
    pub(crate) fn value(
        &mut self,
        site: usize,
        place: usize,
        sample: &Sample<'_>,
    ) -> Option<&Value> {
        let values = self.values.get_mut(site)?;
        let decoder = &self.session.events.sites[site].decoder;
        if values.len() != decoder.len() {
            *values = decoder.values();
        }
        decoder.decode_one(place, sample, values);
        values.get(place)
    }

    /// The arguments of the site's sample that [`values`](Self::values) were asked of last.
    #[inline]
    pub(crate) fn decoded(&self, site: usize) -> &[Value] {
        self.values.get(site).map_or(&[], Vec::as_slice)
    }

    /// Where a sample hit.
    pub(crate) fn place(&mut self, sample: &Sample<'_>) -> &Place {
        self.place_of(sample, sample.ip)
    }

    /// The file and the function at an address in the process of a sample, at its time.
    pub(crate) fn place_of(&mut self, sample: &Sample<'_>, address: u64) -> &Place {
        self.known_place(sample, address)
    }

    fn known_place(&mut self, sample: &Sample<'_>, address: u64) -> &mut Place {
        let session = self.session;
        let at = TimedAddress {
            pid: sample.pid,
            address,
            time: sample.time,
        };
        self.places.get(at, || Place::find(session, at))
    }
}

impl<'s> Resolver<'s> {
    /// The stack of a sample, the innermost frame first; at its end, why it is cut.
    pub(crate) fn stack(&mut self, target: Target, sample: &Sample<'_>) -> &[StackPart] {
        self.find_chain(target, sample, |chains| &mut chains.all)
    }

    /// The frame above that of the hit, or why it is not known; `None` if the hit's is the outermost one.
    pub(crate) fn caller(&mut self, target: Target, sample: &Sample<'_>) -> Option<StackPart> {
        let parts = self.find_chain(target, sample, |chains| &mut chains.callers);
        parts.get(WITH_CALLER - 1).copied()
    }

    /// Calls `each` with each frame of a sample's stack, and of the hit, and `each_made` with those where code may be that was made at run time.
    pub(crate) fn each_place(
        &mut self,
        target: Target,
        sample: &Sample<'_>,
        mut each: impl FnMut(StackPlace),
        mut each_made: impl FnMut(MadePlace),
    ) {
        let (addresses, _) = self.chain(target, sample, |chains| &mut chains.all);
        let frames = addresses.iter().enumerate();
        for (number, &address) in frames.chain([(0, &sample.ip)]) {
            let place = self.place_of(sample, address);
            if let Some(file) = place.file {
                let offset = place.offset;
                let instruction = FrameKind::of(number).instruction(offset);
                each(StackPlace {
                    file,
                    offset,
                    instruction,
                });
            }
            if let Some(made) = place.made {
                each_made(made);
            }
        }
        self.addresses = addresses;
    }

    fn find_chain<'r>(
        &'r mut self,
        target: Target,
        sample: &Sample<'_>,
        choose: impl for<'c> FnOnce(&'c mut StackChains<'s>) -> &'c mut CallChains<'s>,
    ) -> &'r [StackPart] {
        let mut parts = std::mem::take(&mut self.parts);
        parts.clear();
        let (addresses, cut) = self.chain(target, sample, choose);
        for (number, &address) in addresses.iter().enumerate() {
            self.put_frames(sample, address, FrameKind::of(number), &mut parts);
        }
        parts.extend(cut.map(|cut| StackPart::Cut(cut.without_address())));
        self.addresses = addresses;
        self.parts = parts;
        &self.parts
    }
}

impl<'s> Resolver<'s> {
    /// The addresses of a sample's chain, in a buffer that the caller gives back, and why the chain is cut.
    fn chain(
        &mut self,
        target: Target,
        sample: &Sample<'_>,
        choose: impl for<'c> FnOnce(&'c mut StackChains<'s>) -> &'c mut CallChains<'s>,
    ) -> (Vec<u64>, Option<StackCut>) {
        let session = self.session;
        let chains = self.chains.get_or_insert_with(|| StackChains {
            all: CallChains::new(session, None),
            callers: CallChains::new(session, Some(WITH_CALLER)),
        });
        let mut addresses = std::mem::take(&mut self.addresses);
        addresses.clear();
        let cut = choose(chains).find(target, sample, &mut addresses);
        if addresses.is_empty() {
            // Where the hit is, is always known.
            addresses.push(sample.ip);
        }
        (addresses, cut)
    }

    /// The place of an address, and what is inlined there.
    pub(crate) fn inlining(
        &mut self,
        sample: &Sample<'_>,
        address: u64,
        kind: FrameKind,
    ) -> (&Place, Option<&FoundInlining>) {
        let session = self.session;
        let place = self.known_place(sample, address);
        let file = place.file;
        let offset = kind.instruction(place.offset);
        let slot = match kind {
            FrameKind::Hit => 0,
            FrameKind::Caller => 1,
        };
        if let Some(slot) = place.inlining.get_mut(slot) {
            slot.get_or_insert_with(|| session.symbols().inlining(file?, offset));
        }
        let place = &*place;
        let found = place.inlining.get(slot).and_then(Option::as_ref);
        (place, found.and_then(|found| found.as_deref()))
    }

    /// The innermost function that is inlined where a sample hit; `None` if the function there is not inlined, or inlined ones are not shown.
    pub(crate) fn inlined_hit(&mut self, sample: &Sample<'_>) -> Option<StackPart> {
        if !self.session.shows_inlined() {
            return None;
        }
        let (place, found) = self.inlining(sample, sample.ip, FrameKind::Hit);
        Some(StackPart::Function {
            file: place.file?,
            name: found?.calls.first()?.id,
            inlined: true,
        })
    }

    /// Appends the frames of an address: those of inlined functions, and that of the function that they are in.
    fn put_frames(
        &mut self,
        sample: &Sample<'_>,
        address: u64,
        kind: FrameKind,
        parts: &mut Vec<StackPart>,
    ) {
        if !self.session.shows_inlined() {
            parts.push(self.place_of(sample, address).frame(address));
            return;
        }
        let (place, found) = self.inlining(sample, address, kind);
        if let (Some(file), Some(found)) = (place.file, found) {
            parts.extend(found.calls.iter().map(|call| StackPart::Function {
                file,
                name: call.id,
                inlined: true,
            }));
        }
        parts.push(place.frame(address));
    }
}

impl Place {
    /// The frame of the address.
    fn frame(&self, address: u64) -> StackPart {
        match (self.file, &self.symbol) {
            (Some(file), Some(symbol)) => StackPart::Function {
                file,
                name: symbol.id,
                inlined: false,
            },
            (None, Some(symbol)) => StackPart::Made { name: symbol.id },
            (Some(file), None) => StackPart::Offset {
                file,
                offset: self.offset,
            },
            (None, None) => StackPart::Address(address),
        }
    }

    fn find(session: &TraceSession, at: TimedAddress) -> TimedAnswer<Self> {
        let TimedAddress { pid, address, time } = at;
        let mappings = session.mappings();
        let mapping = mappings.mapping(pid, address, time);
        let mapping = mapping.or_else(|| mappings.kernel_mapping(address));
        let symbol = mapping.and_then(|mapping| {
            let offset = mapping.file_offset(address);
            session.symbols().find(mapping.dso, offset)
        });
        let is_made = mapping.is_none_or(|mapping| {
            let file = mappings.file(mapping.dso);
            file.is_some_and(Dso::is_for_code)
        });
        let made = is_made.then(|| MadePlace {
            pid,
            began: mappings.began(pid, time),
            address,
        });
        let mut until = mappings.mappings_until(pid, time);
        let symbol = symbol.or_else(|| {
            let at = made.filter(|_| session.symbols().has_made())?;
            until = until.min(session.symbols().made_until(at, time));
            session.symbols().made(at, time)
        });
        TimedAnswer {
            from: time,
            until,
            answer: Self {
                file: mapping.map(|mapping| mapping.dso),
                offset: mapping.map_or(0, |mapping| mapping.file_offset(address)),
                symbol,
                made,
                inlining: [None, None],
            },
        }
    }
}
