//! Recordings made by hand, of spans whose latencies have a known distribution.

use std::ops::Range;

use usdtrec_report::diff::{self, DiffOptions};
use usdtrec_report::{EventSelection, Format};

use crate::support::{DONE, HIT, Hit, Recorded, Recording};
use crate::{Found, add, head, row};

/// Length of a recording, ns.
const LENGTH: f64 = 10e9;
/// Steps in which load changes.
const STEPS: usize = 200;
/// How much a twentieth of a recording resembles the next.
const CORRELATION: f64 = 0.7;
/// The standard deviation of what load makes of the logarithms of latencies and of pauses.
const DEVIATION: f64 = 0.2;

/// Distributions of latencies, the mean or the lower mode of which is some 100 µs.
#[derive(Clone, Copy, Debug)]
enum Latency {
    Exponential,
    Lognormal,
    Bimodal,
    Pareto,
    Narrow,
}

/// What is recorded.
#[derive(Clone, Copy, Debug)]
struct Work {
    latency: Latency,
    spans: usize,
    /// What latencies are multiplied with.
    scale: f64,
    /// What the rate is multiplied with.
    rate: f64,
    /// Whether load comes and goes.
    is_loaded: bool,
}

/// `splitmix64`.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((word ^ (word >> 31)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    fn normal(&mut self) -> f64 {
        (2.0 * self.exponential()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// ns.
    fn latency(&mut self, of: Latency) -> f64 {
        1e5 * match of {
            Latency::Exponential => self.exponential(),
            Latency::Lognormal => self.normal().exp(),
            Latency::Bimodal if self.uniform() < 0.5 => 1.0 + 0.1 * self.normal(),
            Latency::Bimodal => 10.0 + 0.5 * self.normal(),
            Latency::Pareto => self.uniform().powf(-1.0 / 1.5),
            Latency::Narrow => 1.0 + 0.1 * self.uniform(),
        }
    }

    /// The load at each step.
    fn load(&mut self) -> Vec<f64> {
        let correlation = CORRELATION.powf(20.0 / STEPS as f64);
        let mut state = self.normal();
        let step = |_| {
            state = correlation * state + (1.0 - correlation * correlation).sqrt() * self.normal();
            (DEVIATION * state).exp()
        };
        (0..STEPS).map(step).collect()
    }
}

impl Work {
    fn record(self, random: &mut Random) -> Recorded {
        let load = match self.is_loaded {
            true => random.load(),
            false => vec![1.0; STEPS],
        };
        let mut recording = Recording::usual();
        let (mut time, mut hits) = (0.0, Vec::new());
        loop {
            let step = |time: f64| load[((time / LENGTH * STEPS as f64) as usize).min(STEPS - 1)];
            time += random.exponential() * LENGTH / (self.spans as f64 * self.rate) * step(time);
            if time >= LENGTH {
                break;
            }
            let latency = random.latency(self.latency).max(0.0) * self.scale * step(time);
            let begin = Hit {
                // Threads of their own: spans are as independent as the latencies.
                tid: 1000 + (hits.len() / 2) as i32,
                time: HIT.time + time as u64,
                ..HIT
            };
            let end = Hit {
                id: DONE,
                time: begin.time + latency as u64 + 1,
                ..begin
            };
            hits.extend([begin, end]);
        }
        hits.sort_by_key(|hit| hit.time);
        hits.into_iter().for_each(|hit| recording.hit(hit));
        recording.recorded(HIT.time, HIT.time + LENGTH as u64);
        recording.finish()
    }
}

/// In how many of the pairs of these seeds each figure is beyond noise.
fn compare(a: Work, b: Work, seeds: Range<usize>) -> Found {
    let options = DiffOptions {
        format: Format::Json,
        ..DiffOptions::default()
    };
    let mut found = Found::default();
    for seed in seeds {
        let mut random = Random(seed as u64 * 1_000_003);
        let (a, b) = (a.record(&mut random), b.record(&mut random));
        let (a, b) = (a.session(), b.session());
        let mut out = Vec::new();
        diff::print(&a, &b, &EventSelection::default(), &options, &mut out).unwrap();
        add(&mut found, &serde_json::from_slice(&out).unwrap());
    }
    found
}

/// Prints the table.
pub(crate) fn run(seeds: Range<usize>) {
    let pairs = seeds.len();
    println!("Pairs of recordings made by hand in which a figure is beyond noise.\n");
    head("");
    let work = Work {
        latency: Latency::Exponential,
        spans: 1500,
        scale: 1.0,
        rate: 1.0,
        is_loaded: false,
    };
    for latency in [
        Latency::Exponential,
        Latency::Lognormal,
        Latency::Bimodal,
        Latency::Pareto,
        Latency::Narrow,
    ] {
        for (is_loaded, load) in [(false, "independent"), (true, "slow load")] {
            let like = Work {
                latency,
                is_loaded,
                ..work
            };
            let name = format!("like, {latency:?}, {load}");
            let found = compare(like, like, seeds.clone());
            row(name, like.spans, pairs, found, "each at most 2%");
        }
    }
    for latency in [Latency::Exponential, Latency::Lognormal] {
        let like = Work { latency, ..work };
        let slower = |spans, scale, bar: &str| {
            let a = Work { spans, ..like };
            let found = compare(a, Work { scale, ..a }, seeds.clone());
            row(format!("{latency:?} ×{scale}"), spans, pairs, found, bar);
        };
        slower(1500, 1.2, "p50: 70%");
        slower(8000, 1.2, "p50: 99%");
        slower(8000, 1.1, "p50: 85%");
        slower(10_000, 1.5, "p90, p99: 95%");
        let more = Work { rate: 1.2, ..like };
        let found = compare(like, more, seeds.clone());
        let name = format!("{latency:?}, rate +20%");
        row(name, like.spans, pairs, found, "rate: 90%");
    }
}
