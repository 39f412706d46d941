//! The traced workload: a server that answers invented requests and collects its garbage.

use std::ffi::CStr;
use std::time::{Duration, Instant};

use crate::probes::{self, Request};

/// How long the workload runs.
const DURATION: Duration = Duration::from_secs(2);
/// Number of requests between two garbage collections.
const GC_EVERY: u64 = 50;

/// Methods and URLs; frequent ones are repeated.
const ROUTES: [(&CStr, &CStr); 8] = [
    (c"GET", c"/"),
    (c"GET", c"/"),
    (c"GET", c"/search?q=usdt"),
    (c"GET", c"/items/17"),
    (c"GET", c"/items/42"),
    (c"POST", c"/items"),
    (c"PUT", c"/items/42"),
    (c"GET", c"/favicon.ico"),
];

/// Runs the workload. Returns the number of requests that it answered.
pub(super) fn run() -> u64 {
    let begin = Instant::now();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut id = 0;
    while begin.elapsed() < DURATION {
        id += 1;
        serve(id, &mut random);
        if id % GC_EVERY == 0 {
            collect(id / GC_EVERY, &mut random);
        }
    }
    id
}

/// Answers one request in half a millisecond or more.
fn serve(id: u64, random: &mut Random) {
    let request = Request {
        id,
        worker: (id % 4) as u8,
        retries: u16::from(random.below(20) == 0),
    };
    let (method, url) = ROUTES[random.below(8) as usize];
    let begin = Instant::now();
    probes::request_start(&request, method, url);
    let slow = if random.below(50) == 0 { 4000 } else { 0 };
    std::thread::sleep(Duration::from_micros(400 + random.below(600) + slow));
    let (status, bytes) = match random.below(100) {
        0 => (-104, 0),
        1..4 => (500, 180),
        4..12 => (404, 512),
        _ => (200, 800 + random.below(60_000)),
    };
    let latency_ms = begin.elapsed().as_micros() as f64 / 1e3;
    probes::request_done(&request, status, bytes, latency_ms);
}

/// Collects garbage: every fifth time the old generation, too.
fn collect(count: u64, random: &mut Random) {
    let generation = u8::from(count.is_multiple_of(5));
    probes::gc_start(generation);
    let factor = 1 + 4 * u64::from(generation);
    std::thread::sleep(Duration::from_micros(factor * (300 + random.below(200))));
    let freed = 1000 + random.below(9000) as u32;
    let in_use = 0.25 + random.below(50) as f32 / 100.0;
    probes::gc_done(generation, freed, -64 * i64::from(freed), in_use);
}

/// A pseudo-random generator (xorshift64*) with a fixed seed, so that every run has the same requests.
struct Random(u64);

impl Random {
    /// A number in `0..end`; `end` must not be 0.
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % end
    }
}
