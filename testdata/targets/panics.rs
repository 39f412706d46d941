//! Calls at random in threads: nested, and left by panics that a caller catches. Probes are as Rust's crate `probe` makes them.
//!
//!     panics SEED CALLS THREADS
//!
//! Prints `KIND RETURNED LEFT` for each kind of call.
#![allow(unsafe_code)]

use std::arch::asm;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

const KINDS: usize = 5;

macro_rules! probe {
    ($name:literal, $($value:expr),+) => {
        unsafe {
            asm!(
                "990:    nop",
                "        .pushsection .note.stapsdt, \"?\", \"note\"",
                "        .balign 4",
                "        .4byte 992f-991f, 994f-993f, 3",
                "991:    .asciz \"stapsdt\"",
                "992:    .balign 4",
                "993:    .8byte 990b",
                "        .8byte _.stapsdt.base",
                "        .8byte 0",
                "        .asciz \"panics\"",
                concat!("        .asciz \"", $name, "\""),
                "        .asciz \"-8@{} -8@{} -8@{}\"",
                "994:    .balign 4",
                "        .popsection",
                ".ifndef _.stapsdt.base",
                "        .pushsection .stapsdt.base, \"aGR\", \"progbits\", .stapsdt.base, comdat",
                "        .weak _.stapsdt.base",
                "        .hidden _.stapsdt.base",
                "_.stapsdt.base: .space 1",
                "        .size _.stapsdt.base, 1",
                "        .popsection",
                ".endif",
                $(in(reg) $value as isize,)+
                options(att_syntax, readonly, nostack, preserves_flags),
            );
        }
    };
}

static NEXT: AtomicU64 = AtomicU64::new(1);
static RETURNED: [AtomicU64; KINDS] = [const { AtomicU64::new(0) }; KINDS];
static LEFT: [AtomicU64; KINDS] = [const { AtomicU64::new(0) }; KINDS];

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % end
    }
}

/// Counts the call as left unless it is told that it has returned.
struct Kind(usize, bool);

impl Drop for Kind {
    fn drop(&mut self) {
        let counts = if self.1 { &RETURNED } else { &LEFT };
        counts[self.0].fetch_add(1, Ordering::Relaxed);
    }
}

#[inline(never)]
fn call(numbers: &mut Numbers, depth: u64) {
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut kind = Kind(numbers.below(KINDS as u64) as usize, false);
    probe!("call__start", kind.0, id, depth);
    for _ in 0..numbers.below(4) {
        if depth == 6 {
            break;
        }
        if numbers.below(3) == 0 {
            let _ = catch_unwind(AssertUnwindSafe(|| call(numbers, depth + 1)));
        } else {
            call(numbers, depth + 1);
        }
    }
    if numbers.below(9) == 0 {
        resume_unwind(Box::new(()));
    }
    let status = numbers.below(3);
    probe!("call__done", kind.0, id, status);
    kind.1 = true;
}

fn main() {
    let mut words = std::env::args().skip(1).map(|word| word.parse::<u64>().unwrap());
    let (seed, calls, threads) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let mut numbers = Numbers(seed * 1000 + thread);
                for _ in 0..calls {
                    let _ = catch_unwind(AssertUnwindSafe(|| call(&mut numbers, 1)));
                }
            });
        }
    });
    for kind in 0..KINDS {
        let count_of = |counts: &[AtomicU64]| counts[kind].load(Ordering::Relaxed);
        println!("{kind} {} {}", count_of(&RETURNED), count_of(&LEFT));
    }
}
