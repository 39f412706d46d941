//! The crate's tests against files, made by hand and damaged.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "what does not hold in a test is a failed test"
)]

mod check;
mod common;
mod elf;
