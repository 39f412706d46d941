//! Where the time goes: one thread, one stage more each time.

use std::time::Instant;

use usdtrec_format::trace::{BlockReader, Trace};

use crate::common::Lab;
use crate::table::{head, median, row};
use crate::timed::run;
use crate::{ROUNDS, Recorded, limits};

/// Measures and prints.
pub(crate) fn show(lab: &Lab, recorded: &Recorded) {
    let blocks = blocks(recorded);
    let bytes: usize = blocks.iter().map(Vec::len).sum();
    let events = recorded.events as f64;
    let copying = limits::copying();
    println!(
        "One thread, {:.0} bytes of records an event; copying memory: {:.1} GB/s.\n",
        bytes as f64 / events,
        copying / 1e9
    );
    head(&[
        "What is done",
        "ns an event",
        "more than before",
        "GB of records a second",
    ]);
    let question = |arguments: &'static [&'static str]| {
        let times = (0..ROUNDS).map(|_| {
            let mut command = lab.command(arguments);
            command.arg("-i").arg(&recorded.file);
            command.env("RAYON_NUM_THREADS", "1");
            run(command).seconds
        });
        median(&times.collect::<Vec<f64>>())
    };
    let stages = [
        ("copying the records (limit)", bytes as f64 / copying),
        (
            "zstd alone, frames in memory (limit)",
            limits::inflating(&blocks),
        ),
        (
            "reading, checking and inflating the file's chunks",
            inflating(recorded),
        ),
        (
            "and decoding one argument of half of them, in any order: `report --sort arg2`",
            question(&["report", "--sort", "arg2"]),
        ),
        (
            "and decoding all arguments, summed up: `report -e request*`, without spans",
            question(&["report", "-e", "sdt_requests:request__start"]),
        ),
        (
            "in the order of time, spans matched: `report --span request`",
            question(&["report", "--span", "request"]),
        ),
        (
            "in the order of time, as text: `script`",
            question(&["script"]),
        ),
        (
            "in the order of time, as JSON: `script --format json`",
            question(&["script", "--format", "json"]),
        ),
    ];
    let mut before = 0.0;
    for (what, seconds) in stages {
        row(&[
            what.to_owned(),
            format!("{:.1}", seconds / events * 1e9),
            format!("{:+.1}", (seconds - before) / events * 1e9),
            format!("{:.1}", bytes as f64 / seconds / 1e9),
        ]);
        before = seconds;
    }
    println!();
}

/// The records of all chunks.
fn blocks(recorded: &Recorded) -> Vec<Vec<u8>> {
    let trace = Trace::open(&recorded.file).expect("a trace");
    let mut reader = BlockReader::new();
    let blocks = trace.blocks().iter();
    let blocks = blocks.map(|block| reader.read(&trace, block).expect("a block").to_vec());
    blocks.collect()
}

/// Seconds that reading all chunks takes, without looking at what is in them.
fn inflating(recorded: &Recorded) -> f64 {
    let times = (0..ROUNDS).map(|_| {
        let begin = Instant::now();
        let trace = Trace::open(&recorded.file).expect("a trace");
        let mut reader = BlockReader::new();
        for block in trace.blocks() {
            std::hint::black_box(reader.read(&trace, block).expect("a block"));
        }
        begin.elapsed().as_secs_f64()
    });
    median(&times.collect::<Vec<f64>>())
}
