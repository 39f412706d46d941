//! A probe as Rust's crate `probe` makes it: all arguments are cast to `isize`, and the note calls them signed.
#![allow(unsafe_code)]

use std::arch::asm;
use std::hint::black_box;

#[inline(never)]
fn hash(key: u64, delta: i64, count: usize) {
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
            "        .asciz \"signs\"",
            "        .asciz \"hash\"",
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
            in(reg) key as isize,
            in(reg) delta as isize,
            in(reg) count as isize,
            options(att_syntax, readonly, nostack, preserves_flags),
        );
    }
}

fn main() {
    for number in 0..3 {
        let (key, delta, count) = (u64::MAX - number, -5 - number as i64, usize::MAX - 7);
        println!("{key} {delta} {count}");
        hash(black_box(key), black_box(delta), black_box(count));
    }
}
