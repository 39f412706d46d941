//! Hits of this program's own probes, and what each costs the thread that passes it.

use std::time::Instant;

use crate::cli::HitKind;
use crate::probes::{self, Request};

/// Hits that are timed.
const HITS: u32 = 5_000;
/// Hits before: those that load code and texts into caches.
const FIRST: u32 = 500;

/// Passes the probe, and prints what a hit took.
pub(super) fn print(kind: HitKind) {
    let request = Request {
        id: 1,
        worker: 0,
        retries: 0,
    };
    let pass = || match kind {
        HitKind::Number => probes::gc_start(0),
        HitKind::Texts => probes::request_start(&request, c"GET", c"/search?q=usdt"),
    };
    for _ in 0..FIRST {
        pass();
    }
    let begun = Instant::now();
    for _ in 0..HITS {
        pass();
    }
    println!("{}", begun.elapsed().as_nanos() / u128::from(HITS));
}
