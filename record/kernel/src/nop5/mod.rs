//! Sites on a 5-byte nop, which some kernels replace by a call.
//!
//! Since Linux 6.18 (x86-64) the first hit of a breakpoint on a 5-byte nop of a 64-bit program replaces the nop by a call to a page that
//! the kernel maps into the process ("optimized uprobes", `arch/x86/kernel/uprobes.c`). A call costs a quarter less than a trap, but can
//! harm the program, as tests on real kernels show:
//!
//! * A child that is forked after the first hit inherits the call, but not the page: its first hit ends in SIGSEGV
//!   (6.18 to 7.1).
//! * The call stays in the program when the breakpoint is taken away, and the kernel crashes when the recorder is killed
//!   (6.18.15, 6.19.14, 7.0.13).
//! * The call pushes a return address onto the program's stack, over the 128 bytes below the stack pointer that functions
//!   without calls may use (System V ABI, 3.2.2).
//!
//! From 7.2 on the kernel makes no calls, although it still has the system call that the calls lead to. Therefore a 5-byte nop is attached
//! to only after a trial on a process of our own has shown a trap there. The user cannot force it, because a crash of the kernel affects
//! more than the traced program.

mod trial;
pub mod verdict;

use std::io;
use std::sync::OnceLock;

use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_format::{Arch, Site};

pub use self::verdict::TrialError;
pub use trial::{TRIAL_VERB, trial};
use verdict::Verdict;
pub use verdict::{Nop5Danger, TrialFaults};

/// Why a site must not be attached to on this kernel, even if the user forces it; `None` if it may.
pub fn danger(file: &ObjectFile, site: &Site) -> Option<Nop5Danger> {
    // A site that cannot be read is not known to be safe.
    let code = file
        .bytes_at(site.offset?, MAX_INSTRUCTION_BYTES)
        .unwrap_or_else(|_| NOP5.to_vec());
    if file.arch() != Some(Arch::X86_64) || !is_five_byte_nop(&code) {
        return None;
    }
    match verdict() {
        Verdict::NoCalls | Verdict::Sound => None,
        Verdict::Unsound(danger) => Some(danger.clone()),
    }
}

/// Whether a trial has shown that 5-byte nops are safe on this kernel.
pub fn was_tried_and_sound() -> bool {
    VERDICT.get() == Some(&Verdict::Sound)
}

static VERDICT: OnceLock<Verdict> = OnceLock::new();

/// The verdict for this kernel. The first call runs the trial.
fn verdict() -> &'static Verdict {
    VERDICT.get_or_init(|| {
        if kernel_may_call() {
            trial::run()
        } else {
            Verdict::NoCalls
        }
    })
}

/// Length of the longest instruction, rounded up, bytes.
const MAX_INSTRUCTION_BYTES: usize = 16;

/// The 5-byte nop that compilers write.
const NOP5: [u8; 5] = [0x0f, 0x1f, 0x44, 0x00, 0x00];

/// Whether the kernel may replace the first instruction of 64-bit code by a call: it has 5 bytes and does nothing (`can_optimize` and
/// `insn_is_nop` in the kernel). Every jump and `lea` of 5 bytes is included: the user must force those anyway.
fn is_five_byte_nop(code: &[u8]) -> bool {
    let instruction = Decoder::new(64, code, DecoderOptions::NONE).decode();
    let is_nop = matches!(
        instruction.mnemonic(),
        Mnemonic::Nop | Mnemonic::Jmp | Mnemonic::Lea
    );
    instruction.len() == NOP5.len() && is_nop
}

/// Whether the kernel has the system call that the calls lead to, and that only they may use. 7.2 and later have it, too.
fn kernel_may_call() -> bool {
    if Arch::host() != Some(Arch::X86_64) {
        return false;
    }
    /// `arch/x86/entry/syscalls/syscall_64.tbl`
    const SYS_UPROBE: libc::c_long = 336;
    // SAFETY: it has no arguments; from outside of the kernel's own trampolines it does nothing and fails.
    let result = unsafe { libc::syscall(SYS_UPROBE) };
    let error = io::Error::last_os_error().raw_os_error();
    result == -1 && matches!(error, Some(libc::ENXIO | libc::EPROTO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_byte_nops_are_seen() {
        for code in [
            &b"\x0f\x1f\x44\x00\x00"[..],
            b"\x0f\x1f\x44\x00\x00\xc3",
            b"\x66\x0f\x1f\x40\x00",
            b"\x66\x66\x66\x66\x90",
            b"\xe9\x00\x00\x00\x00",
        ] {
            assert!(is_five_byte_nop(code), "{code:02x?}");
        }
    }

    #[test]
    fn other_nops_are_not() {
        for code in [
            &b"\x90"[..],
            b"\x90\x0f\x1f\x44\x00\x00",
            b"\x0f\x1f\x40\x00",
            b"\x66\x0f\x1f\x44\x00\x00",
            b"\x0f\x1f\x44\x00",
            b"",
        ] {
            assert!(!is_five_byte_nop(code), "{code:02x?}");
        }
    }
}
