//! `buildid-cache --add` and `list` beside perf's, on the library with the most probes.

use std::time::Instant;

use crate::ROUNDS;
use crate::common::{Finished, Lab, Perf, need_tool};
use crate::table::{head, median, row, times};

/// 517 probes at Debian 12.
const LIBRARY: &str = "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so";

/// Measures and prints.
pub(crate) fn compare() {
    need_tool(LIBRARY);
    let mut seconds: [Vec<f64>; 4] = Default::default();
    for _ in 0..ROUNDS {
        // A fresh cache for each.
        let (ours, theirs) = (Lab::new(), Lab::new());
        let perf = Perf::new(&theirs);
        let add = ["buildid-cache", "--add", LIBRARY];
        seconds[0].push(timed(|| ours.usdtrec(add)));
        seconds[1].push(timed(|| perf.run(add)));
        seconds[2].push(timed(|| ours.usdtrec(["list"])));
        seconds[3].push(timed(|| perf.run(["list", "sdt"])));
    }
    let milliseconds = seconds.map(|seconds| median(&seconds) * 1e3);
    println!("libjvm.so of OpenJDK 17, into an empty cache and out of it.\n");
    head(&["Milliseconds", "usdtrec", "perf", "faster"]);
    for (what, pair) in ["`buildid-cache --add`", "`list` beside `perf list sdt`"]
        .iter()
        .zip(milliseconds.chunks(2))
    {
        row(&[
            (*what).to_owned(),
            format!("{:.1}", pair[0]),
            format!("{:.1}", pair[1]),
            times(pair[1], pair[0]),
        ]);
    }
}

fn timed(action: impl FnOnce() -> Finished) -> f64 {
    let begin = Instant::now();
    let finished = action();
    let seconds = begin.elapsed().as_secs_f64();
    finished.success();
    seconds
}
