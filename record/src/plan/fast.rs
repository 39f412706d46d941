//! Fast uprobes: since Linux 6.18 a breakpoint on a 5-byte nop of a 64-bit program becomes a call, which costs a quarter
//! less than a trap.
//!
//! The call pushes onto the program's stack, where it overwrites the red zone: the 128 bytes below the stack pointer that
//! functions without calls may use (System V ABI, 3.2.2). Such a function computes wrong results from then on (seen on Linux
//! 6.18). So nothing is planted on a 5-byte nop of a function that uses its red zone, and a breakpoint moves from a
//! 1-byte nop to the 5-byte nop behind it only where the function is seen not to.

use std::io;
use std::sync::OnceLock;

use usdtrec_format::{Arch, Site};

use super::frame::{Frames, RedZone};

const NOP: u8 = 0x90;
const NOP5: [u8; 5] = [0x0f, 0x1f, 0x44, 0x00, 0x00];

/// What the kernel would make of a site's breakpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fast {
    /// A trap, as ever.
    No,
    /// A call.
    Here,
    /// A call, if the breakpoint is moved by one byte.
    NextByte,
}

impl Fast {
    /// Looks at a site's bytes in its file.
    pub(crate) fn of(content: &[u8], arch: Option<Arch>, site: &Site) -> Self {
        if arch != Some(Arch::X86_64) || !kernel_has_it() {
            return Self::No;
        }
        let bytes = site
            .offset
            .and_then(|offset| content.get(usize::try_from(offset).ok()?..));
        match bytes {
            Some(bytes) if bytes.starts_with(&NOP5) => Self::Here,
            Some([NOP, next @ ..]) if next.starts_with(&NOP5) => Self::NextByte,
            _ => Self::No,
        }
    }
}

/// Why a site must not be planted, if the call would damage its function.
pub(crate) fn damage(content: &[u8], arch: Option<Arch>, site: &Site) -> Option<String> {
    let is_damaged = Fast::of(content, arch, site) == Fast::Here
        && Frames::of(content, arch).red_zone(site.pc) == RedZone::Used;
    is_damaged.then(|| {
        format!(
            "this kernel's fast uprobes would overwrite what its function keeps below the stack pointer (address {:#x})",
            site.pc
        )
    })
}

/// Bytes by which a site's breakpoint is moved to be fast: 0 or 1.
pub(crate) fn distance(content: &[u8], arch: Option<Arch>, site: &Site) -> u8 {
    let may_move = Fast::of(content, arch, site) == Fast::NextByte
        && Frames::of(content, arch).red_zone(site.pc) == RedZone::Spared;
    may_move.into()
}

/// Whether the kernel has fast uprobes: it has the system call that the calls lead to, which only they may use.
fn kernel_has_it() -> bool {
    static HAS_IT: OnceLock<bool> = OnceLock::new();
    *HAS_IT.get_or_init(|| {
        if !cfg!(target_arch = "x86_64") {
            return false;
        }
        /// `arch/x86/entry/syscalls/syscall_64.tbl`
        const SYS_UPROBE: libc::c_long = 336;
        // SAFETY: it has no arguments; from outside of the kernel's own trampolines it does nothing and fails.
        let result = unsafe { libc::syscall(SYS_UPROBE) };
        let error = io::Error::last_os_error().raw_os_error();
        result == -1 && matches!(error, Some(libc::ENXIO | libc::EPROTO))
    })
}
