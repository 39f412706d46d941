//! What this kernel's programs and links can do, by its version or by trying.

use std::sync::OnceLock;

use super::insn::{Assembler, Helper, Reg};
use super::sys::{self, ProgramKind};

/// Whether the kernel is this version or a later one.
pub(super) fn is_since(major: u32, minor: u32) -> bool {
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    let mut numbers = release
        .split(|letter: char| !letter.is_ascii_digit())
        .map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(first)), Some(Ok(second))) => (first, second) >= (major, minor),
        _ => false,
    }
}

/// Whether a link for a process is one for all its threads: from Linux 6.10 on. Before, it was one for its first thread.
pub(super) fn tells_processes() -> bool {
    is_since(6, 11)
}

/// Whether programs can ask which site was hit (`bpf_get_attach_cookie`, Linux 5.15).
pub(super) fn has_cookies() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        let mut asm = Assembler::default();
        asm.call(Helper::AttachCookie);
        asm.set(Reg::R0, 0);
        asm.exit();
        let Some(code) = asm.finish() else {
            return true;
        };
        let program = sys::Program {
            kind: ProgramKind::Kprobe,
            words: &code.words,
            functions: &[],
            flags: 0,
            expected_attach: 0,
            attach_kind: 0,
        };
        // 5.10 says `invalid func unknown#174`. Another reason comes again with the programs themselves.
        !matches!(sys::load(&program), Err(refusal) if refusal.log.contains("unknown"))
    })
}
