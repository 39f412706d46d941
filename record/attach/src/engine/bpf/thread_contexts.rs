//! Where processes have their thread contexts: a map that the recorder fills.
//!
//! Programs on the start of a process, `execve` and `exit` keep it right: a child has the variable where its parent has it, and so from its first hit on; after
//! `execve` and the end of a process, nothing is known, so that no hit is read with what was known of another program.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use usdtrec_kernel::bpf::features::RunningKernel;
use usdtrec_kernel::bpf::features::Tracepoint;
use usdtrec_kernel::bpf::features::members::Members;
use usdtrec_kernel::bpf::insn::{Assembler, Code, Helper, If, Map, Reg, Width};
use usdtrec_kernel::bpf::preemption;
use usdtrec_kernel::bpf::sys::{self, MapKind};

use super::kernel_objects::TracepointProgram;
use super::processes::follow::{ended, leave, members, missing};

/// Maximum number of processes with a variable at a time.
const MAX_PROCESSES: u32 = 16_384;

const KEY: i16 = -4;
const CHILD: i16 = -8;
const LOCATION: i16 = -48;
const IDS: i16 = -56;

/// Where the threads of a process have a thread-local variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariableLocation {
    /// Distance from the thread pointer, or from the start of the module's block.
    pub offset: i64,
    /// The block, if the distance is from its start.
    pub block: Option<ModuleBlock>,
}

/// Where the dynamic thread vector has the address of the block of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModuleBlock {
    /// Where the pointer to the vector is, from the thread pointer, bytes.
    pub vector: i64,
    /// Number of the module, from 1 on: a shorter vector has no block.
    pub module: u64,
    /// Offset of the word with the address in the vector, bytes.
    pub entry: u64,
    /// Offset of the vector's length, bytes.
    pub length: i64,
}

impl VariableLocation {
    /// Words of a value in the map.
    const WORDS: usize = 5;
    /// Offset of [`ModuleBlock::entry`] in a value in the map; 0 without a block.
    pub(super) const ENTRY: i16 = 0;
    /// Offset of [`Self::offset`].
    pub(super) const OFFSET: i16 = 8;
    /// Offset of [`ModuleBlock::length`].
    pub(super) const LENGTH: i16 = 16;
    /// Offset of [`ModuleBlock::module`].
    pub(super) const MODULE: i16 = 24;
    /// Offset of [`ModuleBlock::vector`].
    pub(super) const VECTOR: i16 = 32;

    fn words(self) -> [u64; Self::WORDS] {
        let offset = self.offset.cast_unsigned();
        match self.block {
            None => [0, offset, 0, 0, 0],
            Some(block) => [
                block.entry,
                offset,
                block.length.cast_unsigned(),
                block.module,
                block.vector.cast_unsigned(),
            ],
        }
    }
}

/// The map of the locations of the variable, by process.
#[derive(Clone, Debug)]
pub struct VariableLocations(Arc<OwnedFd>);

impl VariableLocations {
    /// Says where a process has the variable.
    ///
    /// # Errors
    /// The errors of bpf(2): `E2BIG` with too many processes.
    pub fn set(&self, pid: i32, location: VariableLocation) -> io::Result<()> {
        sys::put(self.0.as_fd(), pid.cast_unsigned(), location.words())
    }

    /// Says that it is not known where a process has the variable.
    pub fn remove(&self, pid: i32) {
        // What is not there cannot be removed.
        let _ = sys::remove(self.0.as_fd(), pid.cast_unsigned());
    }
}

/// The map, and the links of the programs that keep it right.
#[derive(Debug)]
pub(super) struct ThreadContexts {
    pub(super) locations: VariableLocations,
    _links: Vec<OwnedFd>,
}

impl ThreadContexts {
    pub(super) fn new(kernel: RunningKernel<'_>) -> io::Result<Self> {
        let btf = kernel.btf.ok_or_else(missing)?;
        let members = members(btf, kernel)?;
        let map = sys::create_map_of::<u32, [u64; VariableLocation::WORDS]>(
            MapKind::Hash,
            MAX_PROCESSES,
        )?;
        let mut links = Vec::new();
        for (tracepoint, code) in [
            (Tracepoint::NewTask, started(members)),
            (Tracepoint::Exec, executed(members)),
            (Tracepoint::Exit, ended(members)),
        ] {
            let tracepoint = tracepoint.id(btf).ok_or_else(missing)?;
            links.push(TracepointProgram::attach(tracepoint, code, |_| map.as_fd())?.link);
        }
        Ok(Self {
            locations: VariableLocations(Arc::new(map)),
            _links: links,
        })
    }
}

impl AsFd for ThreadContexts {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.locations.0.as_fd()
    }
}

/// [`Tracepoint::NewTask`]: a child has the variable where its parent has it, or nothing is known of it.
fn started(members: Members) -> Option<Code> {
    let mut asm = Assembler::default();
    let (out, unknown) = (asm.label(), asm.label());
    // ctx = r1; KEY = bpf_get_current_pid_tgid() >> 32; CHILD = child->tgid;
    asm.copy(Reg::R6, Reg::R1);
    members.use_ids(&mut asm, IDS, out);
    asm.store_process(KEY);
    members.child_id(&mut asm, IDS, out);
    asm.store(Width::Word, Reg::R10, CHILD, Reg::R3);
    // location = bpf_map_lookup_elem(&ThreadContexts, &KEY); if (!location) goto unknown;
    asm.call_map(Helper::MapLookup, Map::ThreadContexts, KEY);
    asm.jump_if(If::Equal, Reg::R0, 0, unknown);
    // LOCATION = *location; bpf_map_update_elem(&ThreadContexts, &CHILD, &LOCATION, BPF_ANY); goto out;
    for word in (0..VariableLocation::WORDS as i16).map(|word| 8 * word) {
        asm.load(Width::Double, Reg::R1, Reg::R0, word);
        asm.store(Width::Double, Reg::R10, LOCATION + word, Reg::R1);
    }
    asm.update_map(Map::ThreadContexts, CHILD, LOCATION);
    asm.jump(out);
    // unknown: bpf_map_delete_elem(&ThreadContexts, &CHILD);
    asm.place(unknown);
    asm.call_map(Helper::MapDelete, Map::ThreadContexts, CHILD);
    asm.place(out);
    leave(asm)
}

/// `sched_process_exec(task)`: another program has the variable elsewhere, or has none.
fn executed(members: Members) -> Option<Code> {
    let mut asm = Assembler::default();
    let out = asm.label();
    // bpf_preempt_disable(); KEY = bpf_get_current_pid_tgid() >> 32; bpf_map_delete_elem(&ThreadContexts, &KEY);
    preemption::disable(&mut asm, members.preemption);
    members.use_ids(&mut asm, IDS, out);
    asm.store_process(KEY);
    asm.call_map(Helper::MapDelete, Map::ThreadContexts, KEY);
    // out: bpf_preempt_enable(); return 0;
    asm.place(out);
    preemption::enable(&mut asm, members.preemption);
    leave(asm)
}
