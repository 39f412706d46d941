//! Hits of this program's own probes, and what each costs the thread that passes it.

use std::time::Instant;

use crate::cli::HitKind;
use crate::probes::{self, Request};

/// Hits that are timed together, and how often: the least time is that without others on the CPU.
const HITS: u32 = 250;
const ROUNDS: u32 = 20;
/// Hits before: those that load code and strings into caches.
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
        HitKind::Strings => probes::request_start(&request, c"GET", c"/search?q=usdt"),
    };
    for _ in 0..FIRST {
        pass();
    }
    let rounds = (0..ROUNDS).map(|_| {
        let begun = Instant::now();
        for _ in 0..HITS {
            pass();
        }
        begun.elapsed()
    });
    let least = rounds.min().unwrap_or_default();
    println!("{}", least.as_nanos() / u128::from(HITS));
}
