//! A probe of the test program.

use std::ffi::CString;

pub(super) const PROVIDER: &str = "usdtrec_unit_tests";

/// The arguments of the probe: a signed number of 16 bits and the address of a text.
#[cfg(target_arch = "x86_64")]
macro_rules! operands {
    () => {
        "-2@%{number:x} 8@%{text:r}"
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! operands {
    () => {
        "-2@{number:x} 8@{text:x}"
    };
}

/// Hits the probe.
#[inline(never)]
pub(super) fn hit(number: i16, text: &str) {
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
            concat!(".asciz \"", operands!(), "\""),
            "6: .balign 4",
            ".popsection",
            number = in(reg) number,
            text = in(reg) text.as_ptr(),
            options(readonly, nostack, preserves_flags)
        );
    }
}
