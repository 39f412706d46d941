//! A probe in functions that are inlined into each other, also through the standard library.
#![allow(unsafe_code)]

use std::arch::asm;
use std::hint::black_box;

#[inline(always)]
fn hit(value: u64) {
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
            "        .asciz \"inlined\"",
            "        .asciz \"hit\"",
            "        .asciz \"8@{}\"",
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
            in(reg) value,
            options(att_syntax, readonly, nostack, preserves_flags),
        );
    }
}

struct Counter(u64);

impl Counter {
    #[inline(always)]
    fn add(&mut self, value: u64) {
        self.0 += black_box(value);
        hit(value);
    }
}

#[inline(never)]
fn first(counter: &mut Counter, values: &[u64]) {
    values.iter().filter(|value| **value > 1).for_each(|value| counter.add(*value));
    black_box(counter);
}

#[inline(always)]
fn calls<T: Copy + Into<u64>>(counter: &mut Counter, value: T) {
    first(counter, &[value.into(), black_box(7)]);
    black_box(());
}

#[inline(never)]
fn second(counter: &mut Counter) {
    calls(counter, 3_u32);
    counter.add(4);
}

fn main() {
    let mut counter = Counter(0);
    second(&mut counter);
    first(&mut counter, &[1, 2]);
    println!("{}", counter.0);
}
