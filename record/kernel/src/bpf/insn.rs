//! An assembler for BPF instructions (Documentation/bpf/standardization/instruction-set.rst).
//!
//! An instruction is 8 bytes: opcode 1, destination register 4 bits and source register 4 bits, offset 2, immediate 4.
//! Loading a 64-bit immediate takes two.

use std::os::fd::{AsRawFd, BorrowedFd};

/// A register. `R0` has the result of a call, `R1` to `R5` have its arguments and are not preserved, and `R10` is the end of the 512 bytes
/// of stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "names of registers")]
pub enum Reg {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6 = 6,
    R7,
    R8,
    R9,
    R10,
}

/// Width of a load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "1, 2, 4 and 8 bytes")]
pub enum Width {
    Byte,
    Half,
    Word,
    Double,
}

/// 64-bit arithmetic operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "names of operations")]
pub enum Op {
    Add = 0x00,
    Sub = 0x10,
    Multiply = 0x20,
    Or = 0x40,
    And = 0x50,
    Xor = 0xa0,
    ShiftLeft = 0x60,
    ShiftRight = 0x70,
    ShiftRightSigned = 0xc0,
}

/// Conditions of jumps; 64-bit comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "names of conditions")]
pub enum If {
    Equal = 0x10,
    NotEqual = 0x50,
    Above = 0x20,
    AtLeast = 0x30,
    Below = 0xa0,
    AtMost = 0xb0,
    AboveSigned = 0x60,
    AtLeastSigned = 0x70,
    BelowSigned = 0xc0,
    AtMostSigned = 0xd0,
}

/// Functions of the kernel (`enum bpf_func_id`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[expect(missing_docs, reason = "names of functions")]
pub enum Helper {
    MapLookup = 1,
    MapUpdate = 2,
    MapDelete = 3,
    KtimeNs = 5,
    CpuId = 8,
    PidTgid = 14,
    UidGid = 15,
    Comm = 16,
    CurrentTask = 35,
    ReadUser = 112,
    ReadKernel = 113,
    ReadUserStr = 114,
    RingOutput = 130,
    RingReserve = 131,
    RingSubmit = 132,
    RingDiscard = 133,
    RingQuery = 134,
    CgroupId = 80,
    NamespaceIds = 120,
    AncestorCgroupId = 123,
    ReadKernelStr = 115,
    CopyFromUser = 148,
    CurrentTaskBtf = 158,
    AttachCookie = 174,
    TaskPtRegs = 175,
    FindVma = 180,
    Loop = 181,
}

/// Maps that programs use. Their descriptors are filled in before loading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Map {
    /// The array of the rings of records, by CPU.
    Rings,
    /// The words that are shared with the recorder.
    Control,
    /// The control map of the first part, which has the words of the whole recording.
    FirstControl,
    /// The processes or threads that are recorded.
    Tracked,
    /// The ids of the control groups that are recorded.
    Groups,
    /// Names and paths of later ones.
    GroupNames,
    /// The executables that are recorded: the addresses of their inodes.
    Executables,
    /// The processes that are held until probes are attached to them.
    Held,
    /// How many stacks were taken, by site and thread.
    StackRates,
    /// The ring that wakes the thread that attaches them.
    Calls,
    /// The files at whose mappings no process is held.
    KnownFiles,
    /// The numbers of the files that are watched, by the addresses of their inodes.
    WatchedInodes,
    /// The words of these files.
    WatchedFiles,
    /// The processes that map them without executing them.
    Readers,
    /// The processes that execute them.
    Executing,
    /// Where processes have their thread contexts.
    ThreadContexts,
    /// The number of hits of each group.
    HitGroups,
    /// The numbers of each group.
    GroupNumbers,
    /// The different stacks of hits.
    Stacks,
    /// The counts of the buckets of durations, by group.
    DurationBuckets,
    /// Where programs make the keys of groups.
    KeySlots,
    /// The open spans.
    Spans,
    /// Zeros that new ones are copied from.
    SpanZeros,
    /// How long threads have waited, by thread.
    WaitSums,
    /// How many threads of that map have ids with the same low bits, and zeros that new elements are copied from.
    WaitGate,
}

/// A position in the program, as a target of jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(usize);

/// A function of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Index of its first word.
    pub start: usize,
    /// How it is checked.
    pub kind: FunctionKind,
}

/// How the verifier checks a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FunctionKind {
    /// With its caller, at each call.
    Static,
    /// Once, for any arguments: so many 64-bit numbers, 0 to 2. Callers know nothing of its result.
    Global {
        /// Number of arguments.
        arguments: u8,
    },
    /// As [`Global`](Self::Global): the address of so many bytes, which may be 0, and two 64-bit numbers.
    WithMemory {
        /// Length of the memory, bytes.
        bytes: u32,
    },
}

/// An assembled program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Code {
    /// Instructions as 64-bit words in the machine's byte order.
    pub words: Vec<u64>,
    /// Indexes of the first words of map loads, with the map.
    pub maps: Vec<(usize, Map)>,
    /// Its functions, the main function first; empty if it is the only one.
    pub functions: Vec<Function>,
    /// Whether it calls helpers that may sleep.
    pub sleeps: bool,
}

/// The instructions so far.
#[derive(Debug, Default)]
pub struct Assembler {
    code: Code,
    labels: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
    /// Indexes of words that call a function of the program or load its address.
    calls: Vec<(usize, Label)>,
    /// The stack slot of the current task's ids, if they are not those that the kernel gives.
    ids: Option<i16>,
}

/// Classes and modes of opcodes.
/// For updates of maps: only keys that are not in the map (`BPF_NOEXIST`).
pub const IS_NEW: i64 = 1;

const LD_IMM64: u8 = 0x18;
const LDX: u8 = 0x61;
const ST: u8 = 0x62;
const STX: u8 = 0x63;
const ATOMIC: u8 = 0xc3;
const ALU64: u8 = 0x07;
const ALU32: u8 = 0x04;
const MOV: u8 = 0xb0;
const JUMP: u8 = 0x05;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// The operand is a register, not the immediate.
const FROM_REG: u8 = 0x08;
/// `BPF_PSEUDO_MAP_FD`, `BPF_PSEUDO_MAP_VALUE`: the meaning of the immediate of a 64-bit load.
const PSEUDO_MAP: u8 = 1;
const PSEUDO_MAP_VALUE: u8 = 2;
/// `BPF_PSEUDO_CALL`: a call of a function of the program.
const PSEUDO_CALL: u8 = 1;
/// `BPF_PSEUDO_KFUNC_CALL`: a call of a function of the kernel by its type.
const PSEUDO_KFUNC_CALL: u8 = 2;
/// `BPF_PSEUDO_FUNC`: a 64-bit load of the address of a function of the program.
const PSEUDO_FUNCTION: u8 = 4;

impl Width {
    /// The width of `bytes` bytes: 1, 2, 4 or 8; other numbers are 8.
    pub const fn from_bytes(bytes: u8) -> Self {
        match bytes {
            1 => Self::Byte,
            2 => Self::Half,
            4 => Self::Word,
            _ => Self::Double,
        }
    }

    const fn bits(self) -> u8 {
        match self {
            Self::Word => 0x00,
            Self::Half => 0x08,
            Self::Byte => 0x10,
            Self::Double => 0x18,
        }
    }
}

impl Assembler {
    /// `to = *(from + offset)`, zero-extended.
    pub fn load(&mut self, width: Width, to: Reg, from: Reg, offset: i16) {
        self.push(LDX | width.bits(), to as u8, from as u8, offset, 0);
    }

    /// `*(to + offset) = from`.
    pub fn store(&mut self, width: Width, to: Reg, offset: i16, from: Reg) {
        self.push(STX | width.bits(), to as u8, from as u8, offset, 0);
    }

    /// `*(to + offset) = value`, sign-extended.
    pub fn store_value(&mut self, width: Width, to: Reg, offset: i16, value: i32) {
        self.push(ST | width.bits(), to as u8, 0, offset, value);
    }

    /// `*(to + offset) += from`, atomically.
    pub fn atomic_add(&mut self, to: Reg, offset: i16, from: Reg) {
        self.atomic(Width::Double, to, from, offset, 0);
    }

    /// The same with 4 bytes.
    pub fn atomic_add_word(&mut self, to: Reg, offset: i16, from: Reg) {
        self.atomic(Width::Word, to, from, offset, 0);
    }

    /// Adds 1 to the word at an address, atomically. `R2` is lost.
    pub fn increment(&mut self, at: Reg) {
        // __sync_fetch_and_add((u64 *)at, 1);
        self.set(Reg::R2, 1);
        self.atomic_add(at, 0, Reg::R2);
    }

    /// Adds 1 to the word at an offset of the control map. `R1` and `R2` are lost.
    pub fn count(&mut self, offset: u32) {
        // __sync_fetch_and_add((u64 *)(Control + offset), 1);
        self.set_map_value(Reg::R1, Map::Control, offset);
        self.increment(Reg::R1);
    }

    /// `R1` = the word at an offset of the control map.
    pub fn load_control(&mut self, offset: u32) {
        // r1 = *(u64 *)(Control + offset);
        self.set_map_value(Reg::R1, Map::Control, offset);
        self.load(Width::Double, Reg::R1, Reg::R1, 0);
    }

    /// The same as [`atomic_add`](Self::atomic_add), and `from` = what was there before.
    pub fn atomic_fetch_add(&mut self, to: Reg, offset: i16, from: Reg) {
        const FETCH: i32 = 1;
        self.atomic(Width::Double, to, from, offset, FETCH);
    }

    /// If `*(to + offset)` is `R0`, it becomes `from`, in one step. `R0` = what was there before.
    pub fn compare_exchange(&mut self, to: Reg, offset: i16, from: Reg) {
        const COMPARE_EXCHANGE: i32 = 0xf1;
        self.atomic(Width::Double, to, from, offset, COMPARE_EXCHANGE);
    }

    /// `pointer` = the pointer at an offset of the structure that it points to; jumps to `missing` if it is null.
    pub fn follow(&mut self, pointer: Reg, offset: u32, missing: Label) {
        // pointer = *(void **)(pointer + offset); if (!pointer) goto missing;
        self.op_value(Op::Add, pointer, offset.cast_signed());
        self.load(Width::Double, pointer, pointer, 0);
        self.jump_if(If::Equal, pointer, 0, missing);
    }

    /// `to = from`.
    pub fn copy(&mut self, to: Reg, from: Reg) {
        self.push(ALU64 | MOV | FROM_REG, to as u8, from as u8, 0, 0);
    }

    /// Clears the upper 32 bits.
    pub fn cut_to_32(&mut self, reg: Reg) {
        self.push(ALU32 | MOV | FROM_REG, reg as u8, reg as u8, 0, 0);
    }

    /// `to = value`, in one instruction if it fits.
    pub fn set(&mut self, to: Reg, value: i64) {
        match i32::try_from(value) {
            Ok(value) => self.push(ALU64 | MOV, to as u8, 0, 0, value),
            Err(_) => self.wide(to, 0, value as u32, (value >> 32) as u32),
        }
    }

    /// `to = from + offset`.
    pub fn address(&mut self, to: Reg, from: Reg, offset: i32) {
        self.copy(to, from);
        self.op_value(Op::Add, to, offset);
    }

    /// `reg` = its value without the `unused` highest bits, sign-extended or zero-extended.
    pub fn extend(&mut self, reg: Reg, unused: i32, signed: bool) {
        // reg = signed ? (s64)(reg << unused) >> unused : reg << unused >> unused;
        self.op_value(Op::ShiftLeft, reg, unused);
        let back = if signed {
            Op::ShiftRightSigned
        } else {
            Op::ShiftRight
        };
        self.op_value(back, reg, unused);
    }

    /// `to = map`, as calls take it.
    pub fn set_map(&mut self, to: Reg, map: Map) {
        self.code.maps.push((self.code.words.len(), map));
        self.wide(to, PSEUDO_MAP, 0, 0);
    }

    /// `to = address of byte `offset` in the map's only value`.
    pub fn set_map_value(&mut self, to: Reg, map: Map, offset: u32) {
        self.code.maps.push((self.code.words.len(), map));
        self.wide(to, PSEUDO_MAP_VALUE, 0, offset);
    }

    /// `to = to OP from`.
    pub fn op(&mut self, op: Op, to: Reg, from: Reg) {
        self.push(ALU64 | FROM_REG | op as u8, to as u8, from as u8, 0, 0);
    }

    /// `to = to OP value`, the value sign-extended.
    pub fn op_value(&mut self, op: Op, to: Reg, value: i32) {
        self.push(ALU64 | op as u8, to as u8, 0, 0, value);
    }

    /// `to += value`, through `spare` if the value does not fit into an instruction.
    pub fn add(&mut self, to: Reg, value: i64, spare: Reg) {
        match i32::try_from(value) {
            Ok(0) => {}
            Ok(value) => self.op_value(Op::Add, to, value),
            Err(_) => {
                self.set(spare, value);
                self.op(Op::Add, to, spare);
            }
        }
    }

    /// Calls a function of the kernel.
    pub fn call(&mut self, helper: Helper) {
        self.code.sleeps |= helper == Helper::CopyFromUser;
        self.push(CALL, 0, 0, 0, helper as i32);
    }

    /// Calls a function of the kernel on a map and the key in a stack slot.
    pub fn call_map(&mut self, helper: Helper, map: Map, key: i16) {
        // r0 = helper(&map, &key);
        self.set_map(Reg::R1, map);
        self.address(Reg::R2, Reg::R10, key.into());
        self.call(helper);
    }

    /// Stores the value in a stack slot in a map, with the key in another one.
    pub fn update_map(&mut self, map: Map, key: i16, value: i16) {
        // r0 = bpf_map_update_elem(&map, &key, &value, BPF_ANY);
        self.set_map(Reg::R1, map);
        self.address(Reg::R2, Reg::R10, key.into());
        self.address(Reg::R3, Reg::R10, value.into());
        self.set(Reg::R4, 0);
        self.call(Helper::MapUpdate);
    }

    /// From here on, ids of the current task are those in a stack slot of 8 bytes.
    pub const fn use_ids(&mut self, slot: i16) {
        self.ids = Some(slot);
    }

    /// `R0` = the ids of the current thread, and in the upper half, process.
    pub fn thread_and_process(&mut self) {
        // r0 = slot ? *(u64 *)slot : bpf_get_current_pid_tgid();
        match self.ids {
            Some(slot) => self.load(Width::Double, Reg::R0, Reg::R10, slot),
            None => self.call(Helper::PidTgid),
        }
    }

    /// Stores the id of the current process in a stack slot of 4 bytes.
    pub fn store_process(&mut self, slot: i16) {
        // *(u32 *)slot = bpf_get_current_pid_tgid() >> 32;
        self.thread_and_process();
        self.op_value(Op::ShiftRight, Reg::R0, 32);
        self.store(Width::Word, Reg::R10, slot, Reg::R0);
    }

    /// Calls a function of the kernel that is not among the helpers, by its type in the kernel's BTF.
    pub fn call_kernel(&mut self, function: u32) {
        self.push(CALL, 0, PSEUDO_KFUNC_CALL, 0, function.cast_signed());
    }

    /// Calls a function of the program.
    pub fn call_function(&mut self, function: Label) {
        self.calls.push((self.code.words.len(), function));
        self.push(CALL, 0, PSEUDO_CALL, 0, 0);
    }

    /// `to = address of a function of the program`.
    pub fn set_function(&mut self, to: Reg, function: Label) {
        self.calls.push((self.code.words.len(), function));
        self.wide(to, PSEUDO_FUNCTION, 0, 0);
    }

    /// Begins a function here. The code before it must not run into it.
    pub fn function(&mut self, function: Label, kind: FunctionKind) {
        if self.code.functions.is_empty() {
            self.code.functions.push(Function {
                start: 0,
                kind: FunctionKind::Static,
            });
        }
        self.code.functions.push(Function {
            start: self.code.words.len(),
            kind,
        });
        self.place(function);
    }

    /// A new label, which is not placed yet.
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Places a label here.
    pub fn place(&mut self, label: Label) {
        self.labels[label.0] = Some(self.code.words.len());
    }

    /// Jumps.
    pub fn jump(&mut self, to: Label) {
        self.jumps.push((self.code.words.len(), to));
        self.push(JUMP, 0, 0, 0, 0);
    }

    /// Jumps if the comparison of `reg` with a value, which is sign-extended, is true.
    pub fn jump_if(&mut self, when: If, reg: Reg, value: i32, to: Label) {
        self.jumps.push((self.code.words.len(), to));
        self.push(JUMP | when as u8, reg as u8, 0, 0, value);
    }

    /// Jumps if the comparison of `reg` with another register is true.
    pub fn jump_if_reg(&mut self, when: If, reg: Reg, with: Reg, to: Label) {
        self.jumps.push((self.code.words.len(), to));
        let opcode = JUMP | FROM_REG | when as u8;
        self.push(opcode, reg as u8, with as u8, 0, 0);
    }

    /// Ends the program or function with a result.
    pub fn exit_with(&mut self, result: i32) {
        self.set(Reg::R0, result.into());
        self.exit();
    }

    /// Ends the program or function; `R0` is its result.
    pub fn exit(&mut self) {
        self.push(EXIT, 0, 0, 0, 0);
    }

    /// Resolves the jumps. `None` if a jump is too long, or a label was not placed.
    pub fn finish(mut self) -> Option<Code> {
        for (at, Label(label)) in self.jumps {
            let target = self.labels.get(label).copied().flatten()?;
            let distance = i16::try_from(target as i64 - at as i64 - 1).ok()?;
            self.code.words[at] |= u64::from(distance.cast_unsigned()) << 16;
        }
        for (at, Label(label)) in self.calls {
            let target = self.labels.get(label).copied().flatten()?;
            let distance = i32::try_from(target as i64 - at as i64 - 1).ok()?;
            self.code.words[at] |= u64::from(distance.cast_unsigned()) << 32;
        }
        Some(self.code)
    }

    fn atomic(&mut self, width: Width, to: Reg, from: Reg, offset: i16, operation: i32) {
        let opcode = ATOMIC | width.bits();
        self.push(opcode, to as u8, from as u8, offset, operation);
    }

    fn push(&mut self, opcode: u8, to: u8, from: u8, offset: i16, value: i32) {
        self.code.words.push(
            u64::from(opcode)
                | u64::from(from << 4 | to) << 8
                | u64::from(offset.cast_unsigned()) << 16
                | u64::from(value.cast_unsigned()) << 32,
        );
    }

    /// A load of a 64-bit immediate.
    fn wide(&mut self, to: Reg, pseudo: u8, low: u32, high: u32) {
        self.push(LD_IMM64, to as u8, pseudo, 0, low.cast_signed());
        self.push(0, 0, 0, 0, high.cast_signed());
    }
}

impl Code {
    /// Number of words of the main function.
    pub fn main_words(&self) -> usize {
        let other = self.functions.get(1);
        other.map_or(self.words.len(), |function| function.start)
    }

    /// The code with the descriptors of its maps.
    pub fn with_maps<'a>(&self, descriptor: impl Fn(Map) -> BorrowedFd<'a>) -> Self {
        let mut code = self.clone();
        for &(at, map) in &self.maps {
            let descriptor = descriptor(map).as_raw_fd().cast_unsigned();
            code.words[at] |= u64::from(descriptor) << 32;
        }
        code
    }
}
