//! The instructions that the kernel puts in the place of a probe site.

use super::known::Arch;

/// `UPROBE_SWBP_INSN` of x86: `int3`.
const X86: &[u8] = &[0xcc];
/// `UPROBE_SWBP_INSN` of arm64 (`BRK64_OPCODE_UPROBES`): `brk #5`, in the order of memory.
const AARCH64: &[u8] = &[0xa0, 0x00, 0x20, 0xd4];

/// Since Linux 6.18 a 5-byte nop may become a call, and since 7.2 a 10-byte nop a `lea` that skips the red zone, with a call after it
/// (`arch/x86/kernel/uprobes.c`).
const CALL: u8 = 0xe8;
const SKIP_RED_ZONE: &[u8] = &[0x48, 0x8d, 0x64, 0x24, 0x80, CALL];

impl Arch {
    /// The breakpoint of a kernel's uprobe; `None` where uprobes are not known here.
    #[must_use]
    pub const fn breakpoint(self) -> Option<&'static [u8]> {
        match self {
            Self::X86_64 | Self::I386 => Some(X86),
            Self::Aarch64 => Some(AARCH64),
            _ => None,
        }
    }

    /// Whether code begins with a breakpoint of a uprobe.
    #[must_use]
    pub fn is_breakpoint(self, code: &[u8]) -> bool {
        self.breakpoint()
            .is_some_and(|breakpoint| code.starts_with(breakpoint))
    }

    /// Whether a uprobe is attached at a site, by the bytes in the file and those in memory.
    #[must_use]
    pub fn is_planted(self, in_file: &[u8], in_memory: &[u8]) -> bool {
        if self.breakpoint().is_none() || self.is_breakpoint(in_memory) {
            return true;
        }
        // Where the first bytes differ the kernel has replaced a nop, or something else has changed the code.
        let is_call = in_memory.first() == Some(&CALL) || in_memory.starts_with(SKIP_RED_ZONE);
        self == Self::X86_64 && is_call && in_file.first() != in_memory.first()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breakpoints_and_calls_are_planted() {
        let nop = b"\x90\x48\x89\xe5";
        let nop5 = b"\x0f\x1f\x44\x00\x00";
        for (arch, in_file, in_memory, is_planted) in [
            (Arch::X86_64, &nop[..], &b"\xcc\x48\x89\xe5"[..], true),
            (Arch::X86_64, nop, nop, false),
            (Arch::X86_64, nop, b"", false),
            (Arch::X86_64, nop5, b"\xe8\x01\x02\x03\x04", true),
            (Arch::X86_64, nop5, b"\xcc\x1f\x44\x00\x00", true),
            (
                Arch::X86_64,
                b"\xe8\x01\x02\x03\x04",
                b"\xe8\x01\x02\x03\x04",
                false,
            ),
            (
                Arch::X86_64,
                nop5,
                b"\x48\x8d\x64\x24\x80\xe8\x00\x00\x00\x00",
                true,
            ),
            (Arch::I386, nop5, b"\xe8\x01\x02\x03\x04", false),
            (
                Arch::Aarch64,
                b"\x1f\x20\x03\xd5",
                b"\xa0\x00\x20\xd4",
                true,
            ),
            (
                Arch::Aarch64,
                b"\x1f\x20\x03\xd5",
                b"\x00\x00\x20\xd4",
                false,
            ),
        ] {
            assert_eq!(
                arch.is_planted(in_file, in_memory),
                is_planted,
                "{arch:?} {in_memory:x?}"
            );
        }
    }
}
