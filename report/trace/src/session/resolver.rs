//! What a thread that shows samples keeps between them: buffers, and answers that mostly stay the same.
//!
//! Callers are looked up in their calls. Chains by frame pointers, and those of perf, have return addresses; the
//! function at one is another if the call does not return. So the byte before it is looked up, but not of what a
//! signal's handler returns to, nor of what a signal interrupted. Shown addresses are those in the file. A chain that
//! ends at a frame pointer of 0 in a named function that has callers says so.

use std::sync::Arc;

use usdtrec_format::perf::{ChainCut, Sample};
use usdtrec_format::{Missing, Value};

use crate::added::added_argument::AddedValues;
use crate::address_cache::{AddressCache, TimedAddress, TimedAnswer};
use crate::calls::paths::CallPath;
use crate::process::cgroups::{CgroupSpan, RecordedFacts};
use crate::process::comm::CommSpan;
use crate::process::names::NameId;
use crate::process::process_field::{ProcessFacts, ProcessField, ProcessValue};
use crate::process::{Dso, DsoId, Mapping};
use crate::session::TraceSession;
use crate::session::events::EventSite;
use crate::session::hit_context::HitContext;
use crate::session::ids::SampleTarget;
use crate::session::string_place::StringPlace;
use crate::symbols::Symbol;
use crate::symbols::known_inlining::FoundInlining;
use crate::symbols::perf_map::MadePlace;
use crate::unwind::CallChains;
use crate::unwind::chain_address::{ChainAddress, FrameKind, is_outermost};
use crate::unwind::cut::StackCut;
use crate::unwind::stack::StackPart;

/// Most places that are kept; then the memory is started anew.
const PLACES: usize = 1 << 16;
/// Threads whose names are kept.
const NAMES: usize = 256;

/// Decodes samples and finds where they hit. One a thread.
#[derive(Debug)]
pub struct Resolver<'s> {
    session: &'s TraceSession,
    /// Of each site, made when first needed.
    values: Vec<SiteValues>,
    places: AddressCache<CodeLocation>,
    strings: AddressCache<Option<StringPlace>>,
    names: Vec<(i32, CommSpan)>,
    /// Control groups and programs of some processes.
    cgroups: Vec<(i32, CgroupSpan)>,
    /// Made when first needed.
    chains: Option<StackChains<'s>>,
    /// Buffers.
    addresses: Vec<ChainAddress>,
    parts: Vec<StackPart>,
    /// Of the sample at hand, where it is requested.
    path: Option<CallPath>,
    /// What the sample at hand gets besides its own arguments.
    added: Option<Arc<AddedValues>>,
}

/// Values of the arguments of a site.
#[derive(Clone, Debug, Default)]
struct SiteValues {
    values: Vec<Value>,
    /// What the added ones at the end are; `None` if that is nothing, or they are not yet there.
    added: Option<Arc<AddedValues>>,
}

impl SiteValues {
    /// Makes the buffer, and sets the values of arguments that were added.
    #[inline]
    fn prepare(&mut self, site: &EventSite, added: Option<&Arc<AddedValues>>) -> &mut [Value] {
        let own = site.decoder.len();
        let places = &site.added.places;
        if places.is_empty() {
            if self.values.len() != own {
                self.values = site.decoder.values();
            }
            return &mut self.values;
        }
        let all = site.added.first + places.len();
        let is_new = self.values.len() != all;
        if is_new || !are_same(self.added.as_ref(), added) {
            self.set_added(site, added.cloned(), is_new);
        }
        self.values.get_mut(..own).unwrap_or_default()
    }

    #[cold]
    fn set_added(&mut self, site: &EventSite, added: Option<Arc<AddedValues>>, is_new: bool) {
        let first = site.added.first;
        if is_new {
            let reason = "the site has fewer arguments".to_owned();
            self.values = site.decoder.values();
            self.values
                .resize(first, Value::Missing(Missing::Operand(reason)));
        }
        self.values.truncate(first);
        let value = |place: &_| match &added {
            Some(added) => added.value(*place),
            None => Value::Missing(Missing::Absent),
        };
        self.values.extend(site.added.places.iter().map(value));
        self.added = added;
    }
}

/// Whether two are the same values.
#[inline]
fn are_same(one: Option<&Arc<AddedValues>>, other: Option<&Arc<AddedValues>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
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
pub struct StackPlace {
    /// The file.
    pub file: DsoId,
    /// Offset of an instruction of the frame in the file, bytes: of a caller, of its call.
    pub instruction: u64,
}

/// Frames of a hit with its caller.
const WITH_CALLER: usize = 2;

/// The file and the function at an address.
#[derive(Clone, Debug)]
pub struct CodeLocation {
    /// The file; `None` if no file is mapped there.
    pub file: Option<DsoId>,
    /// Offset of the address in the file, bytes.
    offset: u64,
    /// Offset of an instruction of the frame, bytes: of a caller, of its call.
    instruction: u64,
    /// The function that has this instruction.
    pub symbol: Option<Symbol>,
    /// Whether the next frame is that of code which a signal interrupted.
    returns_to_interrupted: bool,
    /// If no file is there, but code that the process made at run time may be.
    made: Option<MadePlace>,
    /// What is inlined there; `None` until it is looked up.
    inlining: Option<MaybeInlining>,
}

/// `None` if nothing is known.
type MaybeInlining = Option<Arc<FoundInlining>>;

impl<'s> Resolver<'s> {
    /// A resolver with empty caches.
    pub fn new(session: &'s TraceSession) -> Self {
        Self {
            session,
            values: vec![SiteValues::default(); session.events.sites.len()],
            places: AddressCache::new(PLACES),
            strings: AddressCache::new(PLACES),
            // They hold no time.
            names: vec![(0, CommSpan::default()); NAMES],
            cgroups: vec![(0, CgroupSpan::default()); NAMES],
            chains: None,
            addresses: Vec::new(),
            parts: Vec::new(),
            path: None,
            added: None,
        }
    }

    /// Says what is known of the next sample from others.
    #[inline]
    pub fn set_context(&mut self, context: HitContext<'_>) {
        self.path = context.path;
        if !are_same(self.added.as_ref(), context.added) {
            self.added = context.added.cloned();
        }
    }

    /// The functions of the script that the thread of the sample at hand is in; `None` if they are not known.
    #[inline]
    pub const fn path(&self) -> Option<CallPath> {
        self.path
    }

    /// What a thread, or a process by its main thread, is called at a time; `None` if the trace does not say.
    #[inline]
    pub fn name(&mut self, tid: i32, time: u64) -> Option<NameId> {
        self.comm(tid, time).name
    }

    /// The name of a thread at a time, and which process of its pid a main thread belongs to.
    #[inline]
    pub fn comm(&mut self, tid: i32, time: u64) -> CommSpan {
        let Some((known, span)) = self.names.get_mut(tid as usize % NAMES) else {
            return self.session.processes.comm(tid, time);
        };
        if *known != tid || !(span.from..span.until).contains(&time) {
            *known = tid;
            *span = self.session.processes.comm(tid, time);
        }
        *span
    }

    /// What is recorded of a process at a time.
    #[inline]
    fn cgroup(&mut self, pid: i32, time: u64) -> RecordedFacts {
        let processes = &self.session.processes;
        let Some((known, span)) = self.cgroups.get_mut(pid as usize % NAMES) else {
            return processes.cgroup(pid, time).facts;
        };
        if *known != pid || !(span.from..span.until).contains(&time) {
            *known = pid;
            *span = processes.cgroup(pid, time);
        }
        span.facts
    }

    /// What the trace says of the process of a sample.
    #[inline]
    pub fn process(&mut self, sample: &Sample<'_>) -> ProcessFacts {
        let recorded = self.cgroup(sample.pid, sample.time);
        self.session.facts_of(sample, recorded)
    }

    /// A field about the process of a sample; else what is shown in its place.
    pub fn process_value(
        &mut self,
        field: &ProcessField,
        sample: &Sample<'_>,
    ) -> Result<ProcessValue<'s>, &'static str> {
        let process = self.process(sample);
        self.session.process_value(field, &process)
    }

    /// The trace that it is of.
    pub const fn session(&self) -> &'s TraceSession {
        self.session
    }

    /// Number of arguments of a site.
    pub fn argument_count(&self, site: usize) -> usize {
        let site = self.session.events.sites.get(site);
        site.map_or(0, |site| match site.added.places.len() {
            0 => site.decoder.len(),
            added => site.added.first + added,
        })
    }

    /// The arguments of a sample of a site.
    #[inline]
    pub fn values(&mut self, site: usize, sample: &Sample<'_>) -> &[Value] {
        self.each_string(site, sample, |_| {});
        self.decoded(site)
    }

    /// Decodes the arguments of a sample of a site, and calls `each` with those of their strings that were not read at the hit, and are in files.
    #[inline]
    pub fn each_string(
        &mut self,
        site: usize,
        sample: &Sample<'_>,
        mut each: impl FnMut(&StringPlace),
    ) {
        let session = self.session;
        let (Some(values), Some(of)) = (self.values.get_mut(site), session.events.sites.get(site))
        else {
            return;
        };
        let own = values.prepare(of, self.added.as_ref());
        of.decoder.decode(sample, own);
        for &argument in &of.unread_arguments {
            if let Some(place) = self.add_string(site, argument, sample) {
                each(place);
            }
        }
    }

    /// Replaces a decoded address by the string there, if that was not read at the hit, and is in a file.
    fn add_string(
        &mut self,
        site: usize,
        argument: usize,
        sample: &Sample<'_>,
    ) -> Option<&StringPlace> {
        let session = self.session;
        let values = &mut self.values.get_mut(site)?.values;
        let decoder = &session.events.sites.get(site)?.decoder;
        let string = decoder.unread_string(argument, sample, values)?;
        let at = TimedAddress {
            pid: sample.pid,
            address: string.address,
            time: sample.time,
        };
        let place = self
            .strings
            .get(at, || StringPlace::find(session, at, string.limit));
        let place = place.as_ref()?;
        *values.get_mut(argument)? = Value::String(place.value(&string)?);
        Some(place)
    }

    /// One argument of a sample of a site. What [`decoded`](Self::decoded) gives is not of this sample then.
    #[inline]
    pub fn value(&mut self, site: usize, place: usize, sample: &Sample<'_>) -> Option<&Value> {
        let values = self.values.get_mut(site)?;
        let of = self.session.events.sites.get(site)?;
        let own = values.prepare(of, self.added.as_ref());
        of.decoder.decode_one(place, sample, own);
        if of.unread_arguments.contains(&place) {
            self.add_string(site, place, sample);
        }
        self.decoded(site).get(place)
    }

    /// The arguments of the site's sample that [`values`](Self::values) were asked of last.
    #[inline]
    pub fn decoded(&self, site: usize) -> &[Value] {
        self.values
            .get(site)
            .map_or(&[], |site| site.values.as_slice())
    }

    /// Where a sample hit.
    pub fn place(&mut self, sample: &Sample<'_>) -> &CodeLocation {
        self.place_of(sample, ChainAddress::hit(sample))
    }

    /// The file and the function of a frame of a sample.
    pub fn place_of(&mut self, sample: &Sample<'_>, frame: ChainAddress) -> &CodeLocation {
        self.known_place(sample, frame)
    }

    fn known_place(&mut self, sample: &Sample<'_>, frame: ChainAddress) -> &mut CodeLocation {
        let session = self.session;
        let at = TimedAddress {
            pid: sample.pid,
            address: frame.address,
            time: sample.time,
        };
        // Callers are other places than what is hit at their addresses.
        let key = TimedAddress {
            pid: match frame.kind {
                FrameKind::Hit => at.pid,
                FrameKind::Caller => !at.pid,
            },
            ..at
        };
        self.places
            .get(key, || CodeLocation::find(session, at, frame.kind))
    }

    /// Says which frames of a chain are of interrupted code, leaves out what is no frame, and completes the reason why it is cut.
    pub fn settle_chain(
        &mut self,
        target: SampleTarget,
        sample: &Sample<'_>,
        chain: &mut Vec<ChainAddress>,
        cut: Option<StackCut>,
    ) -> Option<StackCut> {
        for number in 1..chain.len() {
            if let Some(&frame) = chain.get(number)
                && frame.kind == FrameKind::Caller
                && self.place_of(sample, frame).returns_to_interrupted
                && let Some(interrupted) = chain.get_mut(number + 1)
            {
                interrupted.kind = FrameKind::Hit;
            }
        }
        let cut = match self.session.has_call_chains(target) {
            true => self.end_at_code(sample, chain, cut),
            false => cut,
        };
        let last = *chain.last()?;
        if cut.is_some() || !self.session.follows_frame_pointers(target) {
            return cut;
        }
        let symbol = self.place_of(sample, last).symbol.as_ref();
        let is_outermost = symbol.is_none_or(|symbol| is_outermost(&symbol.name));
        (!is_outermost).then_some(StackCut::NoFramePointer)
    }

    /// Leaves out last frames where no code is: the frame pointer was data. Whether it led to memory that can be read is chance, too.
    fn end_at_code(
        &mut self,
        sample: &Sample<'_>,
        chain: &mut Vec<ChainAddress>,
        cut: Option<StackCut>,
    ) -> Option<StackCut> {
        /// The first address of kernels.
        const KERNEL: u64 = 1 << 63;
        const NO_FRAME: StackCut = StackCut::Recorded(ChainCut::NoFrame);
        let knows_mappings = self
            .place_of(sample, ChainAddress::hit(sample))
            .file
            .is_some();
        let frames = chain.len();
        while knows_mappings
            && chain.len() > 1
            && let Some(last) = chain.last()
            && last.address < KERNEL
            && self.place_of(sample, *last).is_nowhere()
        {
            chain.pop();
        }
        match cut {
            _ if chain.len() < frames => Some(NO_FRAME),
            Some(StackCut::Recorded(ChainCut::Unreadable)) => Some(NO_FRAME),
            cut => cut,
        }
    }
}

impl<'s> Resolver<'s> {
    /// The stack of a sample, the innermost frame first; at its end, why it is cut.
    pub fn stack(&mut self, target: SampleTarget, sample: &Sample<'_>) -> &[StackPart] {
        self.find_chain(target, sample, |chains| &mut chains.all)
    }

    /// The frame above that of the hit, or why it is not known; `None` if the hit's is the outermost one.
    pub fn caller(&mut self, target: SampleTarget, sample: &Sample<'_>) -> Option<StackPart> {
        let parts = self.find_chain(target, sample, |chains| &mut chains.callers);
        parts.get(WITH_CALLER - 1).copied()
    }

    /// Calls `each` with each frame of a sample's stack, and of the hit, and `each_made` with those where code may be that was made at run time.
    pub fn each_place(
        &mut self,
        target: SampleTarget,
        sample: &Sample<'_>,
        mut each: impl FnMut(StackPlace),
        mut each_made: impl FnMut(MadePlace),
    ) {
        let (addresses, _) = self.chain(target, sample, |chains| &mut chains.all);
        let frames = addresses.iter().copied();
        for frame in frames.chain([ChainAddress::hit(sample)]) {
            let place = self.place_of(sample, frame);
            if let Some(file) = place.file {
                each(StackPlace {
                    file,
                    instruction: place.instruction,
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
        target: SampleTarget,
        sample: &Sample<'_>,
        choose: impl for<'c> FnOnce(&'c mut StackChains<'s>) -> &'c mut CallChains<'s>,
    ) -> &'r [StackPart] {
        let mut parts = std::mem::take(&mut self.parts);
        parts.clear();
        let (addresses, cut) = self.chain(target, sample, choose);
        for &frame in &addresses {
            self.put_frames(sample, frame, &mut parts);
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
        target: SampleTarget,
        sample: &Sample<'_>,
        choose: impl for<'c> FnOnce(&'c mut StackChains<'s>) -> &'c mut CallChains<'s>,
    ) -> (Vec<ChainAddress>, Option<StackCut>) {
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
            addresses.push(ChainAddress::hit(sample));
        }
        let cut = self.settle_chain(target, sample, &mut addresses, cut);
        (addresses, cut)
    }

    /// The place of a frame, and what is inlined there.
    pub fn inlining(
        &mut self,
        sample: &Sample<'_>,
        frame: ChainAddress,
    ) -> (&CodeLocation, Option<&FoundInlining>) {
        let session = self.session;
        let place = self.known_place(sample, frame);
        let file = place.file;
        let instruction = place.instruction;
        let find = || session.symbols().inlining(file?, instruction);
        place.inlining.get_or_insert_with(find);
        let place = &*place;
        let found = place.inlining.as_ref().and_then(Option::as_deref);
        (place, found)
    }

    /// Where a sample hit, and what is inlined there.
    pub fn inlining_of_hit(
        &mut self,
        sample: &Sample<'_>,
    ) -> (&CodeLocation, Option<&FoundInlining>) {
        self.inlining(sample, ChainAddress::hit(sample))
    }

    /// The innermost function that is inlined where a sample hit; `None` if the function there is not inlined, or inlined ones are not shown.
    pub fn inlined_hit(&mut self, sample: &Sample<'_>) -> Option<StackPart> {
        if !self.session.shows_inlined() {
            return None;
        }
        let (place, found) = self.inlining_of_hit(sample);
        Some(StackPart::Function {
            file: place.file?,
            name: found?.calls.first()?.id,
            inlined: true,
        })
    }

    /// Appends the frames of an address: those of inlined functions, and that of the function that they are in.
    fn put_frames(&mut self, sample: &Sample<'_>, frame: ChainAddress, parts: &mut Vec<StackPart>) {
        if !self.session.shows_inlined() {
            parts.push(self.place_of(sample, frame).frame(frame.address));
            return;
        }
        let (place, found) = self.inlining(sample, frame);
        if let (Some(file), Some(found)) = (place.file, found) {
            parts.extend(found.calls.iter().map(|call| StackPart::Function {
                file,
                name: call.id,
                inlined: true,
            }));
        }
        parts.push(place.frame(frame.address));
    }
}

impl CodeLocation {
    /// Whether neither a file nor a function is known there.
    const fn is_nowhere(&self) -> bool {
        self.file.is_none() && self.symbol.is_none()
    }

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

    fn find(session: &TraceSession, at: TimedAddress, kind: FrameKind) -> TimedAnswer<Self> {
        let TimedAddress { pid, address, time } = at;
        let mappings = session.mappings();
        let mapping = mappings.mapping(pid, kind.instruction(address), time);
        let mapping = mapping.or_else(|| mappings.kernel_mapping(kind.instruction(address)));
        // What handlers of signals return to is not called. It is at a return address, or after what is written of one where stacks are unwound.
        let mut returned = [address, address.wrapping_add(1)].into_iter();
        let returned = returned.find(|&address| {
            let is_return = |mapping: Mapping| {
                session.is_signal_return(mapping.dso, mapping.file_offset(address))
            };
            kind == FrameKind::Caller && mapping.is_some_and(is_return)
        });
        let instruction = match returned {
            Some(_) => address,
            None => kind.instruction(address),
        };
        let symbol = mapping.and_then(|mapping| {
            let offset = mapping.file_offset(instruction);
            session.symbols().find(mapping.dso, offset)
        });
        let is_made = mapping.is_none_or(|mapping| {
            let file = mappings.file(mapping.dso);
            file.is_some_and(Dso::is_for_code)
        });
        let made = is_made.then(|| MadePlace {
            pid,
            began: mappings.began(pid, time),
            address: instruction,
        });
        let mut until = mappings.mappings_until(pid, time);
        let symbol = symbol.or_else(|| {
            let at = made.filter(|_| session.symbols().has_made())?;
            until = until.min(session.symbols().made_until(at, time));
            session.symbols().made(at, time)
        });
        let beyond = address.saturating_sub(instruction);
        let symbol = symbol.map(|symbol| Symbol {
            offset: symbol.offset + beyond,
            ..symbol
        });
        TimedAnswer {
            from: time,
            until,
            answer: Self {
                file: mapping.map(|mapping| mapping.dso),
                offset: mapping.map_or(0, |mapping| mapping.file_offset(address)),
                instruction: mapping.map_or(0, |mapping| mapping.file_offset(instruction)),
                symbol,
                // A frame pointer leads to the caller of what was interrupted.
                returns_to_interrupted: returned.is_some_and(|returned| returned != address),
                made,
                inlining: None,
            },
        }
    }
}
