//! A probe of the test program.

use std::ffi::CString;

pub(in crate::engine::bpf::tests) const PROVIDER: &str = "usdtrec_unit_tests";

/// Hits the probe. Its arguments are a signed number of 16 bits, whose register has other bits above them, and the address of a text. The
/// names of registers have a `%`, as on x86.
#[inline(never)]
pub(in crate::engine::bpf::tests) fn hit(number: i16, text: &str) {
    let text = CString::new(text).unwrap();
    // SAFETY: the only instruction is a nop; the note is in a section that the program does not load.
    unsafe {
        std::arch::asm!(
            "2: nop",
            ".pushsection .note.stapsdt, \"?\", \"note\"",
            ".balign 4",
            ".4byte 4f - 3f, 6f - 5f, 3",
            "3: .asciz \"stapsdt\"",
            "4: .balign 4",
            "5: .8byte 2b, 0, 0",
            ".asciz \"usdtrec_unit_tests\"",
            ".asciz \"hit\"",
            ".asciz \"-2@%{number} 8@%{text}\"",
            "6: .balign 4",
            ".popsection",
            number = in(reg) i64::from(number) ^ 0x5a_0000,
            text = in(reg) text.as_ptr(),
            options(readonly, nostack, preserves_flags)
        );
    }
}
