//! Machine architectures as data: registers in all numberings, ELF header, stack, addresses, nops, syntax of operands.
//!
//! Each architecture has one table, in its file, with the sources of its facts. All other code uses [`Arch`].

mod aarch64;
mod architecture;
mod arm;
mod breakpoint;
mod i386;
mod known;
mod ppc64le;
mod riscv64;
mod s390x;
mod table;
mod x86_64;
mod x86_nop;

use std::ops::RangeInclusive;
use std::sync::LazyLock;

pub use known::{Arch, Register, Uprobes};

use architecture::{Architecture, ElfHeader, Nops, ThreadStorage};
pub(crate) use known::{BareNumber, BareSymbol, MemoryForm, RegisterPrefix, Syntax};
pub(crate) use table::{RegisterPart, Table};

/// The registers of the architectures, in the order of [`Arch`]'s variants.
static TABLES: LazyLock<[Table; 7]> =
    LazyLock::new(|| Arch::ALL.map(|arch| Table::new(arch.architecture())));

impl Arch {
    /// The architecture of an ELF file's header, if it is one of those known here.
    ///
    /// `e_machine` is the ELF header's field (elf.h `EM_*`).
    #[must_use]
    pub fn from_elf(e_machine: u16, class64: bool, big_endian: bool) -> Option<Self> {
        let header = ElfHeader {
            machine: e_machine,
            class64,
            big_endian,
        };
        let mut all = Self::ALL.into_iter();
        all.find(|arch| arch.architecture().elf == header)
    }

    /// The architecture that this program was compiled for, if it is one of those known here.
    #[must_use]
    pub fn host() -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|arch| {
            let Architecture { rust_name, elf, .. } = arch.architecture();
            *rust_name == std::env::consts::ARCH && elf.big_endian == cfg!(target_endian = "big")
        })
    }

    /// The architecture of the 64-bit kernel that runs programs of this one: [`Arch::X86_64`] for [`Arch::I386`],
    /// [`Arch::Aarch64`] for [`Arch::Arm`], for others their own.
    #[must_use]
    pub const fn kernel(self) -> Self {
        self.architecture().kernel
    }

    /// The name in messages and traces: `x86_64`, `i386`, `aarch64`, `arm`, `ppc64le`, `s390x`, `riscv64`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.architecture().name
    }

    /// Bytes of a pointer: 4 or 8.
    #[must_use]
    pub const fn pointer_size(self) -> u8 {
        if self.architecture().elf.class64 {
            8
        } else {
            4
        }
    }

    /// Whether the lowest address of a number has its highest byte.
    #[must_use]
    pub const fn is_big_endian(self) -> bool {
        self.architecture().elf.big_endian
    }

    /// Number of bits of a user-space address, for programs that do not request more from the kernel.
    #[must_use]
    pub const fn address_bits(self) -> u8 {
        self.architecture().address_bits
    }

    /// The bits of a return address that its authentication code may take; `None` where there are no such codes.
    #[must_use]
    pub fn pointer_authentication_bits(self) -> Option<RangeInclusive<u8>> {
        self.architecture().pointer_authentication.clone()
    }

    /// Whether the kernel ignores the highest byte of a user-space address, so that programs may keep a tag there.
    #[must_use]
    pub const fn ignores_top_byte(self) -> bool {
        self.architecture().top_byte_ignored
    }

    /// How programs of this architecture can be traced with probes on a machine with the kernel of `host`.
    #[must_use]
    pub fn uprobes_on(self, host: Self) -> Uprobes {
        let Architecture {
            kernel, uprobes, ..
        } = self.architecture();
        if *kernel == host {
            *uprobes
        } else {
            Uprobes::None
        }
    }

    /// Bytes below the stack pointer that functions may use without moving it.
    #[must_use]
    pub fn red_zone(self) -> u64 {
        self.architecture().red_zone.into()
    }

    /// The segment register that operands address thread-local storage by, where they do.
    #[must_use]
    pub fn thread_segment(self) -> Option<&'static str> {
        self.thread_storage().map(|thread| thread.segment)
    }

    /// The relocation (in small letters) of a symbol's offset from the base of thread-local storage, where operands have one.
    #[must_use]
    pub fn thread_relocation(self) -> Option<&'static str> {
        self.thread_storage().map(|thread| thread.relocation)
    }

    fn thread_storage(self) -> Option<&'static ThreadStorage> {
        self.architecture().thread.as_ref()
    }

    /// The register's name as the JSON form and messages give it, without a prefix (`rax`, `r11`, `x0`).
    #[must_use]
    pub fn register_name(self, register: Register) -> &'static str {
        self.table().info(register).name
    }

    /// The register of this name (without a prefix), or the one that the name is a part of (`rax` for `ah`).
    #[must_use]
    pub fn register(self, name: &str) -> Option<Register> {
        self.table().name(name).map(|part| part.register)
    }

    /// The full width of a register, bytes; 0 for one that the architecture does not have.
    #[must_use]
    pub fn register_bytes(self, register: Register) -> u8 {
        self.table().info(register).bytes
    }

    /// The bit of `PERF_SAMPLE_REGS_USER` that samples this register
    /// (`arch/*/include/uapi/asm/perf_regs.h`); `None` where perf cannot (`%xmm0`).
    ///
    /// For [`Arch::I386`] the numbers are those of x86, which the two share.
    #[must_use]
    pub fn perf_register(self, register: Register) -> Option<u8> {
        self.table().info(register).perf
    }

    /// DWARF's number of a register, as the architecture's ABI has it; `None` where it has none (`xzr`).
    #[must_use]
    pub fn dwarf_register(self, register: Register) -> Option<u16> {
        self.table().info(register).dwarf
    }

    /// Offset of a register of a user program, bytes, in the kernel's `struct pt_regs` (that of [`kernel`](Self::kernel));
    /// `None` for a register that is not in there (`%xmm0`).
    #[must_use]
    pub fn pt_regs_offset(self, register: Register) -> Option<u16> {
        self.table().info(register).pt_regs
    }

    /// The kernel's name of a register in fetch arguments (Documentation/trace/uprobetracer.rst), without `%`; `None` where they
    /// cannot have it. For [`Arch::Arm`] it is the name in 32-bit kernels; for [`Arch::I386`] both kernels have the same.
    #[must_use]
    pub fn fetch_name(self, register: Register) -> Option<&'static str> {
        self.table().info(register).fetch
    }

    /// The stack pointer.
    #[must_use]
    pub fn stack_pointer(self) -> Register {
        self.table().stack_pointer
    }

    /// The register conventionally used as frame pointer (`rbp`, `ebp`, `x29`, …), if there is one.
    #[must_use]
    pub fn frame_pointer(self) -> Option<Register> {
        Some(self.table().frame_pointer)
    }

    /// The register in which a call puts the return address (`x30`); `None` where it is pushed (x86).
    #[must_use]
    pub fn return_register(self) -> Option<Register> {
        self.table().return_register
    }

    /// Whether code begins with an instruction that does nothing, as that of a probe site does.
    #[must_use]
    pub fn is_nop(self, code: &[u8]) -> bool {
        let Architecture { nops, elf, .. } = self.architecture();
        match nops {
            Nops::Listed(nops) => nops.iter().any(|nop| code.starts_with(nop)),
            Nops::X86 => x86_nop::is_nop(code, elf.class64),
        }
    }

    /// A prefix of the instruction at the start of code to which the kernel attaches no probe, in any process; `None` without one.
    #[must_use]
    pub fn unplanted_prefix(self, code: &[u8]) -> Option<u8> {
        let Architecture { nops, elf, .. } = self.architecture();
        match nops {
            Nops::Listed(_) => None,
            Nops::X86 => x86_nop::unplanted_prefix(code, elf.class64),
        }
    }

    /// The architecture's table.
    const fn architecture(self) -> &'static Architecture {
        match self {
            Self::X86_64 => &x86_64::X86_64,
            Self::I386 => &i386::I386,
            Self::Aarch64 => &aarch64::AARCH64,
            Self::Arm => &arm::ARM,
            Self::Ppc64le => &ppc64le::PPC64LE,
            Self::S390x => &s390x::S390X,
            Self::Riscv64 => &riscv64::RISCV64,
        }
    }

    /// The architecture's registers by their names.
    pub(crate) fn table(self) -> &'static Table {
        &TABLES[self as usize]
    }
}
