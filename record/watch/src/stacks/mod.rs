//! Callers of hits, found while recording: from the copies of stacks in samples, by unwind tables.
//!
//! A sample is unwound when the process records up to its time are known: those that are later wait for the end of the pass over the rings.
//!
//! With `-g` a program copies the registers and some stack into the ring, without faulting. The recorder unwinds them
//! and writes a call chain in their place: files stay small, and no reader needs the binaries to find callers.
//! `bpf_get_stack` takes three times as long as the copy and needs frame pointers. Those are needed with `--call-graph
//! fp`, too, for which the program follows them in a loop of its own.
//!
//! * A pass over the rings begins with the process records. So what a process had mapped is known at the time of each
//!   hit, also of one that has ended.
//! * Addresses are those of the last byte of the call, as perf shows callers that it unwinds.
//! * perf discards a chain with an unknown marker, so the reason of a cut is a number of `PERF_CONTEXT_USER` at the end
//!   (`format/src/perf/callchain.rs`).
//! * Where perf events copied arguments, too, copies are written as `perf record --call-graph dwarf` writes them. Mappings
//!   without code are recorded then, because perf reads unwind tables through them.

mod copied;
mod cut_stacks;
mod files;
mod rewrite;
mod tables;

use std::ops::Range;
use std::sync::Arc as Shared;

use foldhash::HashMap;
use usdtrec_attach::engine::{Attached, StackUse};
use usdtrec_attach::plan::call_graph::{CallGraph, CallGraphMethod};
use usdtrec_attach::select::probe::PlannedProbe;
use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_format::perf::{Attr, ChainCut, RecordType, Sample, SampleLayout, SampleType};
use usdtrec_format::{Arch, CapturePlan};
use usdtrec_kernel::trace_clock;
use usdtrec_unwind::{
    KnownStacks, MappedCode, ProcessCode, RegisterPlaces, Registers, StackCopy, StackEnd,
    StackFrame, Unwinder, column,
};

pub use self::cut_stacks::{CutCause, CutStacks};
pub use self::tables::FileElsewhere;

use self::copied::CopiedFunctions;
use self::files::{FoundMapping, UnwoundFiles};
use self::rewrite::{Callers, rewrite};
use crate::batch::{Batch, Record, RecordBuffer};
use crate::process_table::{KnownProcess, MapsVersion, ProcessTable, RecordedProcesses};
use crate::stage::Stage;

/// Replaces copies of stacks by the callers.
#[derive(Debug)]
pub struct StackUnwinder {
    /// The events whose samples have copies.
    events: Vec<CopiedEvent>,
    /// What is known of each sample id.
    ids: HashMap<u64, CopiedId>,
    arch: Arch,
    graph: CallGraph,
    limit: usize,
    /// Column of the stack pointer in unwind tables.
    sp: Option<u16>,
    unwinder: Unwinder,
    processes: RecordedProcesses,
    files: UnwoundFiles,
    copied: CopiedFunctions,
    known_stacks: KnownStacks<StackKey, KnownStack>,
    /// Process records up to this time are known, ns.
    known: u64,
    /// Samples that are later.
    held: RecordBuffer,
    out: RecordBuffer,
    frames: Vec<StackFrame>,
    addresses: Vec<u64>,
}

/// An event whose samples have copies.
#[derive(Debug)]
struct CopiedEvent {
    stacks: CutStacks,
    layout: SampleLayout,
    places: RegisterPlaces,
    /// Whether the registers are written: arguments are in them.
    keeps_registers: bool,
}

/// A sample id whose samples have copies.
#[derive(Clone, Copy, Debug, Default)]
struct CopiedId {
    /// Index of its event.
    event: usize,
    /// What its stacks have needed in this pass.
    used: StackUse,
}

/// Where a stack may come again: what its callers depend on besides registers and copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct StackKey {
    /// The sample id.
    id: u64,
    pid: i32,
    version: MapsVersion,
}

/// A stack that was unwound.
#[derive(Debug)]
struct KnownStack {
    addresses: Box<[u64]>,
    /// Why the callers are cut; `None` if they are not.
    cut: Option<ChainCut>,
    /// The stack pointer after the last frame.
    outermost: Option<u64>,
}

impl KnownStack {
    /// Words in memory.
    const fn words(&self) -> usize {
        size_of::<Self>() / size_of::<u64>() + self.addresses.len()
    }
}

/// How far a stack was unwound.
#[derive(Clone, Copy)]
struct Unwound {
    /// Why the callers are cut; `None` if they are not.
    cut: Option<ChainCut>,
    /// The stack pointer after the last frame.
    outermost: Option<u64>,
}

/// The code of a sample's process.
#[derive(Clone, Copy)]
struct SampledCode<'m> {
    table: &'m ProcessTable,
    files: &'m UnwoundFiles,
    copied: &'m CopiedFunctions,
    pid: i32,
    time: u64,
    /// The file of the last frame that has one.
    file: Option<FoundMapping<'m>>,
}

impl<'m> SampledCode<'m> {
    fn find(self, address: u64) -> Option<FoundMapping<'m>> {
        self.files.find(self.table, self.pid, address, self.time)
    }
}

impl<'m> ProcessCode<'m> for SampledCode<'m> {
    fn at(&mut self, address: u64) -> Option<MappedCode<'m>> {
        let found = self.find(address).filter(|found| found.is_executable)?;
        Some(match found.file.code(found.place, found.offset) {
            MappedCode::Made => {
                let called = self.file;
                let copied = self.copied.code(found.place, address, |known| {
                    called.and_then(|called| called.file.original(called.place, known))
                });
                copied.map_or(MappedCode::Made, MappedCode::File)
            }
            code => {
                self.file = Some(found);
                code
            }
        })
    }

    fn is_maker(&mut self) -> bool {
        let process = self.table.at(self.pid, self.time);
        process.is_some_and(KnownProcess::is_maker)
    }
}

/// Whether arguments are decoded from sampled registers.
const fn keeps_registers(plan: &CapturePlan) -> bool {
    plan.raw.is_none() && plan.registers != 0
}

/// The files of recorded probes, which are open.
fn files(probes: &[Shared<PlannedProbe>]) -> Vec<Shared<ObjectFile>> {
    let mut files: Vec<Shared<ObjectFile>> = Vec::new();
    for probe in probes {
        if !files.iter().any(|file| Shared::ptr_eq(file, probe.file())) {
            files.push(probe.file().clone());
        }
    }
    files
}

impl StackUnwinder {
    /// `None` if nothing is to be unwound. `processes` has the mappings.
    pub fn for_attached(
        attached: &Attached,
        graph: Option<CallGraph>,
        processes: &RecordedProcesses,
    ) -> Option<Self> {
        let graph = graph.filter(|graph| graph.unwinds())?;
        let arch = Arch::host()?;
        let mut unwinder = Self {
            events: Vec::new(),
            ids: HashMap::default(),
            arch,
            graph,
            limit: graph.frames.into(),
            sp: column(arch, arch.stack_pointer()),
            unwinder: Unwinder::new(arch)?,
            processes: processes.clone(),
            files: UnwoundFiles::new(),
            copied: CopiedFunctions::new(arch),
            known_stacks: KnownStacks::new(arch)?,
            known: 0,
            held: RecordBuffer::default(),
            out: RecordBuffer::default(),
            frames: Vec::new(),
            addresses: Vec::new(),
        };
        unwinder.add(attached, &(0..attached.probes.len()));
        Some(unwinder)
    }

    /// Takes attached probes, by their indexes in [`Attached::probes`].
    pub fn add(&mut self, attached: &Attached, probes: &Range<usize>) {
        let planned = attached.probes.get(probes.clone()).unwrap_or_default();
        let attrs = attached.attrs.get(probes.clone()).unwrap_or_default();
        self.files.add_open(files(planned));
        let graph = self.graph;
        let is_unwound = |probe: &PlannedProbe| !graph.keeps_copy(&probe.plan);
        let of_probes = planned.iter().zip(attrs);
        for (probe, of_trace) in of_probes.filter(|(probe, _)| is_unwound(probe)) {
            let attr = &of_trace.attr.attr;
            let copied = CopiedId {
                event: self.events.len(),
                used: StackUse::default(),
            };
            self.ids
                .extend(of_trace.attr.ids.iter().map(|id| (*id, copied)));
            self.events.push(CopiedEvent {
                stacks: CutStacks {
                    event: of_trace.attr.name.clone(),
                    cut: 0,
                    stacks: 0,
                    cause: match graph.method {
                        CallGraphMethod::Copy { bytes } => CutCause::AskedFor(bytes),
                        _ => CutCause::Chosen(0),
                    },
                },
                layout: SampleLayout::new(attr),
                places: RegisterPlaces::from_attr(attr, self.arch),
                keeps_registers: keeps_registers(&probe.plan),
            });
        }
    }

    /// The attr of an event with this plan, whose copies are replaced.
    pub fn written(mut attr: Attr, plan: &CapturePlan) -> Attr {
        let mut parts = attr.sample_type.0 & !SampleType::STACK_USER.0;
        if !keeps_registers(plan) {
            parts &= !SampleType::REGS_USER.0;
            attr.sample_regs_user = 0;
        }
        attr.sample_type = SampleType(parts);
        attr.sample_stack_user = 0;
        attr.flags &= !Attr::EXCLUDE_CALLCHAIN_USER;
        attr
    }

    /// The files of stacks that are not those at their paths.
    pub fn files_elsewhere(&self) -> Vec<FileElsewhere> {
        self.files.elsewhere()
    }

    /// The stacks of each event name of which some were cut because more of the stack was needed than was copied, the most first.
    pub fn cut_stacks(&self) -> Vec<CutStacks> {
        CutStacks::by_event(self.events.iter().map(|event| event.stacks.clone()))
    }

    /// Before process records are drained that are in a ring already: the time up to which they are known then.
    #[must_use]
    pub fn now() -> u64 {
        trace_clock::now()
    }

    /// All process records up to a time are known.
    pub fn know(&mut self, until: u64) {
        self.known = until;
        self.processes.know(until);
    }

    /// Appends a sample with its callers, or holds it.
    fn sample(&mut self, table: &ProcessTable, record: Record<'_>, out: &mut RecordBuffer) {
        let parts = record.sample().and_then(|head| {
            let event = self.events.get(self.ids.get(&head.id)?.event)?;
            Some((head.id, event, event.layout.parse(record.body())?))
        });
        let Some((id, event, sample)) = parts else {
            return out.push(record);
        };
        if sample.time > self.known {
            return self.held.push(record);
        }
        let hit = event.places.read(&sample);
        self.addresses.clear();
        let keeps_registers = event.keeps_registers;
        let cut = if sample.chain_cut() == Some(ChainCut::Rate) {
            self.addresses.push(sample.ip);
            Some(ChainCut::Rate)
        } else {
            let unwound = self.unwind(table, id, &sample, &hit);
            self.count(id, &sample, &hit, unwound);
            unwound.cut
        };
        let callers = Callers {
            addresses: &self.addresses,
            cut,
            keeps_registers,
        };
        out.replace(record, |bytes| {
            rewrite(record.bytes, &sample, callers, bytes);
        });
    }

    /// What the stacks of each sample id have needed since the last call, bytes.
    pub fn take_used(&mut self) -> impl Iterator<Item = (u64, StackUse)> {
        let ids = self.ids.iter_mut();
        let used = ids.map(|(id, copied)| (*id, std::mem::take(&mut copied.used)));
        used.filter(|(_, used)| !used.is_empty())
    }

    /// Counts what the stack of a sample has needed.
    fn count(&mut self, id: u64, sample: &Sample<'_>, hit: &Registers, unwound: Unwound) {
        let Some(copied) = self.ids.get_mut(&id) else {
            return;
        };
        let is_cut = unwound.cut == Some(ChainCut::CopyEnds);
        let room = sample.stack.len() as u32;
        if let Some(CopiedEvent { stacks, .. }) = self.events.get_mut(copied.event) {
            stacks.stacks += 1;
            if is_cut {
                stacks.cut += 1;
                if let CutCause::Chosen(most) = &mut stacks.cause {
                    *most = room.max(*most);
                }
            }
        }
        if is_cut {
            return copied.used.count_cut(room);
        }
        let start = self.sp.and_then(|sp| hit.get(sp));
        let needed = start.zip(unwound.outermost).and_then(|(start, outermost)| {
            let needed = u32::try_from(outermost.checked_sub(start)?).ok()?;
            (needed <= room).then_some(needed)
        });
        // What a signal interrupted may be on another stack.
        copied.used.count(needed.unwrap_or(room));
    }

    /// Finds the callers of a sample.
    fn unwind(
        &mut self,
        table: &ProcessTable,
        id: u64,
        sample: &Sample<'_>,
        hit: &Registers,
    ) -> Unwound {
        /// `PERF_SAMPLE_REGS_ABI_64`.
        const ABI_64: u64 = 2;
        let start = self.sp.and_then(|sp| hit.get(sp));
        let Some(start) = start.filter(|_| sample.regs_abi == ABI_64) else {
            self.addresses.push(sample.ip);
            return Unwound {
                cut: Some(ChainCut::Program32),
                outermost: None,
            };
        };
        let stack = StackCopy {
            start,
            bytes: sample.stack,
        };
        let process = table.at(sample.pid, sample.time);
        let version = process.and_then(|process| process.version(sample.time));
        let key = version.map(|version| StackKey {
            id,
            pid: sample.pid,
            version,
        });
        if let Some(known) = key.and_then(|key| self.known_stacks.get(key, hit, stack)) {
            self.addresses.extend_from_slice(&known.addresses);
            return Unwound {
                cut: known.cut,
                outermost: known.outermost,
            };
        }
        let cut = self.find_callers(table, sample, hit, stack);
        let outermost = self.unwinder.outermost();
        if let (Some(key), Some(followed)) = (key, self.unwinder.followed()) {
            let found = KnownStack {
                addresses: self.addresses.as_slice().into(),
                cut,
                outermost,
            };
            let words = found.words();
            self.known_stacks
                .put(key, hit, stack, followed, (found, words));
        }
        Unwound { cut, outermost }
    }

    /// Finds the callers of a sample by unwind tables. Returns why they are cut.
    fn find_callers(
        &mut self,
        table: &ProcessTable,
        sample: &Sample<'_>,
        hit: &Registers,
        stack: StackCopy<'_>,
    ) -> Option<ChainCut> {
        let code = SampledCode {
            table,
            files: &self.files,
            copied: &self.copied,
            pid: sample.pid,
            time: sample.time,
            file: None,
        };
        self.frames.clear();
        let end = self
            .unwinder
            .unwind(hit, stack, code, self.limit, &mut self.frames);
        let frames = self.frames.iter();
        self.addresses.extend(frames.map(|frame| frame.code()));
        let last = self.addresses.last().copied();
        let last = last.and_then(|address| code.find(address));
        Some(match end {
            StackEnd::Outermost => return None,
            StackEnd::Limit => ChainCut::Limit,
            StackEnd::CopyEnds => ChainCut::CopyEnds,
            StackEnd::NotCopied(_) => ChainCut::NotCopied,
            StackEnd::UnknownRegister(_) => ChainCut::UnknownRegister,
            StackEnd::NotAbove => ChainCut::NotAbove,
            StackEnd::NoFrame => ChainCut::NoFrame,
            StackEnd::OtherStack => ChainCut::OtherStack,
            StackEnd::TooMuchWork => ChainCut::TooMuchWork,
            StackEnd::LongEntry => ChainCut::LongEntry,
            StackEnd::BadEntry | StackEnd::BadExpression => ChainCut::BadEntry,
            StackEnd::NoCode | StackEnd::NoEntry => match last {
                None => ChainCut::NoFile,
                Some(found) => found.file.wrong().unwrap_or(ChainCut::NoEntry),
            },
        })
    }
}

impl Stage for StackUnwinder {
    /// Passes on process records as they are, samples with their callers. Samples that are later than the known process records are held.
    fn take<'a>(&'a mut self, batch: Batch<'a>) -> Batch<'a> {
        let processes = self.processes.clone();
        let table = &processes.table();
        self.files.learn(table);
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        for record in batch.records() {
            match record.kind() == RecordType::SAMPLE {
                true => self.sample(table, record, &mut out),
                false => out.push(record),
            }
        }
        self.out = out;
        self.out.batch()
    }

    /// All process records of the pass are known: passes on the samples that were held.
    fn end_pass(&mut self) -> Option<Batch<'_>> {
        self.known = u64::MAX;
        let processes = self.processes.clone();
        let table = &processes.table();
        let mut held = std::mem::take(&mut self.held);
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        for record in held.batch().records() {
            self.sample(table, record, &mut out);
        }
        // The next pass will hold about as many.
        held.clear();
        (self.held, self.out) = (held, out);
        self.files.trim();
        Some(self.out.batch())
    }
}
