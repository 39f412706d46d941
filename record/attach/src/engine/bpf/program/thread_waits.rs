//! How long the thread of a hit has waited ([`ThreadWaits`]).
//!
//! The hit happens on a CPU, so that its sums stay as they are, unless the program is preempted between two of them.

use usdtrec_format::ThreadWaits;
use usdtrec_kernel::bpf::insn::{Reg, Width};

use super::super::wait_sums::element::sums_of_current;
use super::builder::Program;

impl Program<'_> {
    /// Writes the sums of the thread at an offset of the layout.
    pub(super) fn thread_waits(&mut self, at: u16) {
        let words = || (at..at + ThreadWaits::BYTES).step_by(8);
        let [unknown, end] = [(); 2].map(|()| self.asm.label());
        // sums = sums_of_current(); if (!sums) goto unknown;
        sums_of_current(&mut self.asm, self.common.recorder, unknown);
        // memcpy(raw->waits, sums, ThreadWaits::BYTES); goto end;
        for word in words() {
            let offset = (word - at).cast_signed();
            self.asm.load(Width::Double, Reg::R1, Reg::R0, offset);
            self.put(Width::Double, word, Reg::R1);
        }
        self.asm.jump(end);
        // unknown: memset(raw->waits, 0xff, ThreadWaits::BYTES);
        self.asm.place(unknown);
        for word in words() {
            // `ThreadWaits::UNKNOWN`, sign-extended.
            self.put_value(Width::Double, word, -1);
        }
        self.asm.place(end);
    }
}

const _: () = assert!(ThreadWaits::UNKNOWN.cast_signed() == -1);
