//! An event for each long wait: what the program at switches writes when a thread is back on a CPU, and the sample that is made of it.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 8 | the time, ns |
//! | 8 | 8 | when the thread left its CPU, ns |
//! | 16 | 8 | from when on it could run again, ns |
//! | 24 | 8 | its ids ([`IDS`]) |
//! | 32 | 8 | address of its next instruction in user space |
//! | 40 | 4 | what it was before it could run: the offset of one of the sums |
//! | 44 | 4 | the CPU |
//! | 48 | 4 | number of its system call; none has the largest number |
//! | 52 | 4 | the byte of its registers that says whether it runs a 32-bit program; all bits if the kernel does not give them |
//!
//! The records have rings of their own. They wake nobody: each wakeup is a switch. A record that wakes nobody keeps the kernel from waking the reader for later
//! ones of its ring, so that those of hits have other rings.
//!
//! The event is an invented tracepoint, whose period is the time in ns. Its name is that of perf's event for such times.

use std::borrow::Cow;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use syscalls::Sysno;
use usdtrec_format::Arch;
use usdtrec_format::perf::{
    Attr, EventAttr, RawRecord, RecordType, SampleType, TracepointField, TracepointFormat,
};
use usdtrec_kernel::bpf::features::trials::has_task_registers;
use usdtrec_kernel::bpf::insn::{Assembler, Helper, If, Label, Map, Op, Reg, Width};
use usdtrec_kernel::bpf::rings::{CpuRings, Left, Sizes};

use super::element::{IDS, STATE, sum};
use crate::engine::bpf::contract::own_instruction_pointer;
use crate::engine::bpf::control;
use crate::engine::bpf::plan::FIRST_TYPE;
use crate::engine::numbers::{u32_at, u64_at};

/// Name of the event, and of its system.
const NAME: &str = "offcpu-time";
const SYSTEM: &str = "offcpu";
/// `common_type` of its samples: the number before those of probes.
const TYPE: u16 = FIRST_TYPE as u16 - 1;

/// Size of each ring, bytes: maximum and minimum, and the sum of all rings unless that is below the minimum.
const RING_BYTES: usize = 1 << 20;
const MIN_RING_BYTES: usize = 64 << 10;
const RINGS_BYTES: usize = 16 << 20;

/// Size of a record, bytes, and offsets in it.
const RECORD_BYTES: i64 = 56;
const TIME: i16 = 0;
const LEFT_AT: i16 = 8;
const WOKEN_AT: i16 = 16;
const IDS_AT: i16 = 24;
const INSTRUCTION: i16 = 32;
const REASON: i16 = 40;
const CPU: i16 = 44;
const CALL: i16 = 48;
const MODE: i16 = 52;

/// Stack slots: the CPU, and the times until the record is there.
const CPU_SLOT: i16 = -8;
const LEFT_SLOT: i16 = -16;
const WOKEN_SLOT: i16 = -24;

/// `BPF_RB_NO_WAKEUP`.
const NO_WAKEUP: i64 = 1;

/// Where the kernel saves the number of a thread's system call, and what says which numbers they are: offsets in `struct pt_regs`, which tracers see.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallRegisters {
    pub(super) call: i16,
    pub(super) mode: i16,
    /// The bits of that byte, and what they are of programs whose numbers are those of this machine.
    mode_bits: u32,
    pub(super) own_mode: u32,
}

impl CallRegisters {
    /// `None` if this machine's are not known (`arch/x86/include/asm/ptrace.h`, `arch/arm64/include/asm/ptrace.h`).
    pub(super) const fn of(arch: Option<Arch>) -> Option<Self> {
        match arch {
            // `orig_ax`; `cs`, which is `__USER_CS` and not `__USER32_CS`.
            Some(Arch::X86_64) => Some(Self {
                call: 120,
                mode: 136,
                mode_bits: 0xff,
                own_mode: 0x33,
            }),
            // `syscallno`; `pstate` with `PSR_MODE32_BIT`.
            Some(Arch::Aarch64) => Some(Self {
                call: 280,
                mode: 264,
                mode_bits: 0x10,
                own_mode: 0,
            }),
            _ => None,
        }
    }
}

/// Which waits are written, and with what.
#[derive(Clone, Copy, Debug)]
pub(super) struct WrittenWaits {
    /// Time of the shortest ones, ns.
    pub(super) least: u64,
    /// `None` if the kernel does not give them.
    pub(super) registers: Option<CallRegisters>,
}

impl WrittenWaits {
    /// Of a time on, as this kernel can.
    pub(super) fn new(least: u64) -> Self {
        let registers = CallRegisters::of(Arch::host());
        Self {
            least,
            registers: registers.filter(|_| has_task_registers()),
        }
    }

    /// Writes a record of the wait that ends, if it was long enough. `R1`: when the thread left its CPU; `R3`: from when on it could run; `R6`: the context,
    /// whose argument `next` is the task; `R7`: its element; `R8`: the time. All others are lost.
    pub(super) fn write(self, asm: &mut Assembler, next: i16) {
        let [lost, done] = [(); 2].map(|()| asm.label());
        self.reserve(asm, lost, done);
        // record->TIME = now; record->LEFT_AT = LEFT_SLOT; record->WOKEN_AT = WOKEN_SLOT; record->IDS_AT = sums->IDS;
        asm.store(Width::Double, Reg::R9, TIME, Reg::R8);
        for (from, slot, at) in [
            (Reg::R10, LEFT_SLOT, LEFT_AT),
            (Reg::R10, WOKEN_SLOT, WOKEN_AT),
            (Reg::R7, IDS, IDS_AT),
        ] {
            asm.load(Width::Double, Reg::R1, from, slot);
            asm.store(Width::Double, Reg::R9, at, Reg::R1);
        }
        // record->REASON = sums->STATE; record->CPU = CPU_SLOT;
        for (from, slot, at) in [(Reg::R7, STATE, REASON), (Reg::R10, CPU_SLOT, CPU)] {
            asm.load(Width::Word, Reg::R1, from, slot);
            asm.store(Width::Word, Reg::R9, at, Reg::R1);
        }
        self.write_registers(asm, next);
        // bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP); goto done; lost: Control[LOST_WAITS]++; done:
        asm.copy(Reg::R1, Reg::R9);
        asm.set(Reg::R2, NO_WAKEUP);
        asm.call(Helper::RingSubmit);
        asm.jump(done);
        asm.place(lost);
        asm.count(control::LOST_WAITS);
        asm.place(done);
    }

    /// `R9` = a record; jumps to `done` if none is to be written, and to `lost` if there is no room.
    fn reserve(self, asm: &mut Assembler, lost: Label, done: Label) {
        // if (now - left < least) goto done; LEFT_SLOT = left; WOKEN_SLOT = woken;
        asm.copy(Reg::R4, Reg::R8);
        asm.op(Op::Sub, Reg::R4, Reg::R1);
        asm.set(Reg::R5, self.least.cast_signed());
        asm.jump_if_reg(If::Below, Reg::R4, Reg::R5, done);
        asm.store(Width::Double, Reg::R10, LEFT_SLOT, Reg::R1);
        asm.store(Width::Double, Reg::R10, WOKEN_SLOT, Reg::R3);
        // if (!Control[ENABLED]) goto done;
        asm.load_control(control::ENABLED);
        asm.jump_if(If::Equal, Reg::R1, 0, done);
        // The first hit of the thread is still going on.
        // if (!sums->IDS) goto done;
        asm.load(Width::Double, Reg::R1, Reg::R7, IDS);
        asm.jump_if(If::Equal, Reg::R1, 0, done);
        // CPU_SLOT = bpf_get_smp_processor_id(); ring = bpf_map_lookup_elem(&Rings, &CPU_SLOT); if (!ring) goto lost;
        asm.call(Helper::CpuId);
        asm.store(Width::Word, Reg::R10, CPU_SLOT, Reg::R0);
        asm.call_map(Helper::MapLookup, Map::Rings, CPU_SLOT);
        asm.jump_if(If::Equal, Reg::R0, 0, lost);
        // record = bpf_ringbuf_reserve(ring, RECORD_BYTES, 0); if (!record) goto lost;
        asm.copy(Reg::R1, Reg::R0);
        asm.set(Reg::R2, RECORD_BYTES);
        asm.set(Reg::R3, 0);
        asm.call(Helper::RingReserve);
        asm.jump_if(If::Equal, Reg::R0, 0, lost);
        asm.copy(Reg::R9, Reg::R0);
    }

    /// Writes where the thread is in its program.
    fn write_registers(self, asm: &mut Assembler, next: i16) {
        let Some(CallRegisters { call, mode, .. }) = self.registers else {
            // record->INSTRUCTION = 0; record->CALL = -1; record->MODE = -1;
            asm.store_value(Width::Double, Reg::R9, INSTRUCTION, 0);
            asm.store_value(Width::Word, Reg::R9, CALL, -1);
            asm.store_value(Width::Word, Reg::R9, MODE, -1);
            return;
        };
        // regs = bpf_task_pt_regs(ctx->next);
        asm.load(Width::Double, Reg::R1, Reg::R6, next);
        asm.call(Helper::TaskPtRegs);
        // record->INSTRUCTION = PT_REGS_IP(regs); record->CALL = regs->call; record->MODE = (u8)regs->mode;
        asm.load(Width::Double, Reg::R1, Reg::R0, own_instruction_pointer());
        asm.store(Width::Double, Reg::R9, INSTRUCTION, Reg::R1);
        for (width, register, at) in [(Width::Word, call, CALL), (Width::Byte, mode, MODE)] {
            asm.load(width, Reg::R1, Reg::R0, register);
            asm.store(Width::Word, Reg::R9, at, Reg::R1);
        }
    }
}

/// What events of waits are made with.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine::bpf) struct EventSettings<'a> {
    /// Time of the shortest waits, ns.
    pub(in crate::engine::bpf) least: u64,
    /// Their sample id.
    pub(in crate::engine::bpf) id: u64,
    /// The CPUs that get a ring of their own.
    pub(in crate::engine::bpf) cpus: &'a [u32],
    /// The control map of the first part.
    pub(in crate::engine::bpf) control: BorrowedFd<'a>,
}

/// The rings of the records, and what samples are made with.
#[derive(Debug)]
pub(in crate::engine::bpf) struct WaitEvents {
    rings: CpuRings,
    control: OwnedFd,
    id: u64,
    /// Number of samples so far.
    made: u64,
}

impl WaitEvents {
    /// Creates the rings. Programs find them after [`wait_until_filled`](Self::wait_until_filled).
    pub(super) fn new(settings: &EventSettings<'_>) -> io::Result<Self> {
        let EventSettings {
            id, cpus, control, ..
        } = *settings;
        let bytes = (RINGS_BYTES / cpus.len().max(1)).clamp(MIN_RING_BYTES, RING_BYTES);
        let bytes = (1 << bytes.ilog2()).max(rustix::param::page_size());
        Ok(Self {
            rings: CpuRings::new(Sizes { cpus, bytes })?,
            control: control.try_clone_to_owned()?,
            id,
            made: 0,
        })
    }

    pub(super) fn rings(&self) -> BorrowedFd<'_> {
        self.rings.array()
    }

    pub(super) fn control(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }

    /// Waits until programs find the rings.
    pub(in crate::engine::bpf) fn wait_until_filled(&mut self) -> io::Result<()> {
        self.rings.wait_until_filled()
    }

    /// Number of samples so far.
    pub(in crate::engine::bpf) const fn made(&self) -> u64 {
        self.made
    }

    /// Appends a sample for each record that is there now. Calls `appended` after each.
    pub(in crate::engine::bpf) fn drain(
        &mut self,
        out: &mut Vec<u8>,
        mut appended: impl FnMut(&mut Vec<u8>),
    ) -> Left {
        let Self {
            rings, id, made, ..
        } = self;
        rings.drain(|record| {
            *made += u64::from(put_sample(record, *id, out).is_some());
            appended(out);
        })
    }

    /// The event. `metadata` is the attr of the session's other events.
    pub(in crate::engine::bpf) fn event(&self, metadata: &Attr) -> WaitEvent {
        let attr = Attr {
            kind: Attr::TRACEPOINT,
            config: TYPE.into(),
            sample_period: 1,
            sample_type: metadata.sample_type | SampleType::PERIOD | SampleType::RAW,
            sample_regs_user: 0,
            sample_stack_user: 0,
            ..metadata.clone()
        };
        WaitEvent {
            event: EventAttr {
                attr,
                name: format!("{SYSTEM}:{NAME}"),
                ids: vec![self.id],
            },
            format: format(),
        }
    }
}

/// The event of waits, for the trace.
#[derive(Clone, Debug)]
pub struct WaitEvent {
    /// The event.
    pub event: EventAttr,
    /// The format of its samples' raw parts.
    pub format: TracepointFormat,
}

/// Numbers in the raw part, 8 bytes each from this offset on; after them the locations of the strings, and the strings.
const NUMBERS: [&str; 2] = ["ns", "runnable"];
const NUMBERS_AT: u16 = 8;
const STRINGS: [&str; 3] = ["state", "syscall", "wait"];
const LOCATIONS_AT: u16 = NUMBERS_AT + 8 * NUMBERS.len() as u16;
const STRINGS_AT: u16 = LOCATIONS_AT + 4 * STRINGS.len() as u16;

pub(super) fn format() -> TracepointFormat {
    let field = |declaration, offset, size| TracepointField {
        declaration,
        offset,
        size,
        signed: false,
    };
    let numbers = (NUMBERS_AT..).step_by(8).zip(NUMBERS);
    let numbers = numbers.map(|(at, name)| field(format!("u64 {name}"), at, 8));
    let strings = (LOCATIONS_AT..).step_by(4).zip(STRINGS);
    let strings = strings.map(|(at, name)| field(format!("__data_loc char[] {name}"), at, 4));
    let printed = NUMBERS.map(|name| (format!("{name}=%llu"), format!("REC->{name}")));
    let printed_strings = STRINGS.map(|name| (format!("{name}=%s"), format!("__get_str({name})")));
    let (print, print_arguments): (Vec<_>, _) = printed.into_iter().chain(printed_strings).unzip();
    TracepointFormat {
        system: SYSTEM.to_owned(),
        name: NAME.to_owned(),
        id: TYPE,
        fields: numbers.chain(strings).collect(),
        print: print.join(" "),
        print_arguments,
    }
}

/// Appends the sample of a record; `None` if that is too short, as no program of ours writes it.
pub(super) fn put_sample(record: &[u8], id: u64, out: &mut Vec<u8>) -> Option<()> {
    let body = Wait::parse(record)?.sample(id);
    let sample = RawRecord {
        kind: RecordType::SAMPLE,
        // `PERF_RECORD_MISC_USER`.
        misc: 2,
        body: &body,
        offset: 0,
    };
    sample.put(out);
    Some(())
}

/// A wait, as the program wrote it.
#[derive(Clone, Copy, Debug)]
struct Wait {
    time: u64,
    left: u64,
    woken: u64,
    ids: u64,
    instruction: u64,
    reason: u32,
    cpu: u32,
    call: u32,
    mode: u32,
}

impl Wait {
    fn parse(record: &[u8]) -> Option<Self> {
        let double = |at: i16| u64_at(record, at as usize);
        let word = |at: i16| u32_at(record, at as usize);
        Some(Self {
            time: double(TIME)?,
            left: double(LEFT_AT)?,
            woken: double(WOKEN_AT)?,
            ids: double(IDS_AT)?,
            instruction: double(INSTRUCTION)?,
            reason: word(REASON)?,
            cpu: word(CPU)?,
            call: word(CALL)?,
            mode: word(MODE)?,
        })
    }

    /// What the thread was before it could run.
    fn state(&self) -> &'static str {
        match i16::try_from(self.reason) {
            Ok(sum::IOWAIT) => "iowait",
            Ok(sum::BLOCKED) => "blocked",
            _ => "runnable",
        }
    }

    /// The system call that the thread is in, empty if it is in none; `None` if that is not known: it may have another machine's numbers.
    fn system_call(&self) -> Option<Cow<'static, str>> {
        let registers = CallRegisters::of(Arch::host())?;
        let has_own = self.mode & registers.mode_bits == registers.own_mode;
        Some(match (has_own, Sysno::new(self.call as usize)) {
            (false, _) => return None,
            (_, Some(call)) => call.name().into(),
            (_, None) if self.call == u32::MAX => "".into(),
            // Of a later kernel.
            _ => format!("syscall_{}", self.call).into(),
        })
    }

    /// The sample, without its header.
    fn sample(&self, id: u64) -> Vec<u8> {
        let ns = self.time.saturating_sub(self.left);
        let runnable = self.time.saturating_sub(self.woken);
        let (state, call) = (self.state(), self.system_call());
        let wait = match (state, call.as_deref()) {
            ("runnable", _) => state,
            (_, None) => "unknown",
            (_, Some("")) => "no system call",
            (_, Some(call)) => call,
        };
        let strings = [state, call.as_deref().unwrap_or_default(), wait];
        let len: usize = strings.iter().map(|string| string.len() + 1).sum();
        let raw_len = usize::from(STRINGS_AT) + len;
        // With its size before it, its length is a multiple of 8.
        let raw_len = (raw_len + 4).next_multiple_of(8) - 4;
        // The thread is in the lower half of `IDS`, the process in the other.
        let ids = self.ids.rotate_left(32);
        let words = [id, self.instruction, ids, self.time, self.cpu.into(), ns];
        let words = words.iter().flat_map(|word| word.to_ne_bytes());
        let mut out: Vec<u8> = words.collect();
        out.extend((raw_len as u32).to_ne_bytes());
        let end = out.len() + raw_len;
        out.extend(u32::from(TYPE).to_ne_bytes());
        out.extend((self.ids as u32).to_ne_bytes());
        out.extend([ns, runnable].iter().flat_map(|word| word.to_ne_bytes()));
        let mut at = usize::from(STRINGS_AT);
        for string in strings {
            let len = string.len() + 1;
            out.extend(((len << 16 | at) as u32).to_ne_bytes());
            at += len;
        }
        out.extend(strings.iter().flat_map(|string| string.bytes().chain([0])));
        out.resize(end, 0);
        out
    }
}
