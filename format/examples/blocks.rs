//! Prints a trace's head and blocks.
#![allow(clippy::unwrap_used)]
use std::path::Path;
use usdtrec_format::perf::Records;
use usdtrec_format::trace::{BlockReader, Trace};
fn main() {
    for path in std::env::args().skip(1) {
        let trace = match Trace::open(Path::new(&path)) {
            Ok(t) => t,
            Err(e) => {
                println!("{path}: {e}");
                continue;
            }
        };
        let mut i = trace.info().clone();
        println!(
            "{path}: {} events, defs {}, losses {:?}, finished {}, {} blocks, time {:?} host {:?} cmd {:?} clock {:?}",
            i.events.len(),
            i.definitions.is_some(),
            trace.losses(),
            trace.is_finished(),
            trace.blocks().len(),
            trace.time(),
            i.hostname,
            i.command,
            i.clock
        );
        for e in &mut i.events {
            println!(
                "   {:?} kind {} ids {} st {:#x} size {}",
                e.name,
                e.attr.kind,
                e.ids.len(),
                e.attr.sample_type.0,
                e.attr.size
            );
        }
        for d in trace.damage() {
            println!("   damage {d} lost {}", d.lost);
        }
        let mut r = BlockReader::new();
        let (mut n, mut s) = (0, 0);
        for b in trace.blocks() {
            match r.read(&trace, b) {
                Ok(bytes) => {
                    for rec in Records::new(bytes) {
                        n += 1;
                        s += u64::from(rec.kind.0 == 9);
                    }
                }
                Err(d) => println!("   ERR {d}"),
            }
            if let Some(c) = r.cut() {
                println!("   cut {c}");
            }
            println!("   {b:?}");
        }
        println!("   {n} records {s} samples");
    }
}
