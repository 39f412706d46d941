//! How long it takes to plant many probes and to let go of them: `record -a -- true`, from start to end.

use std::path::Path;
use std::time::Instant;

use crate::common::{Finished, Lab, Perf, need_tool};
use crate::table::{head, row};

/// 517 probes at Debian 12.
const LIBRARY: &str = "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so";
/// As many as perf can be waited for.
const THEIRS: usize = 50;

/// Measures and prints; once each, for letting go of perf's takes long.
pub(crate) fn compare(perf: &Perf<'_>) {
    need_tool(LIBRARY);
    let lab = Lab::new();
    let event = format!("hotspot*:*@{LIBRARY}");
    let ours = timed(|| lab.usdtrec(["record", "-a", "-e", &event, "--", "true"]));
    let all = lab.usdtrec(["list", "--file", LIBRARY]).success().stdout;
    let names = all
        .lines()
        .filter_map(|line| line.trim().strip_prefix("sdt_hotspot:"));
    let names = names.filter_map(|rest| rest.split_whitespace().next());
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    let of_all = |line: &&str| line.trim().starts_with("sdt_hotspot");
    let count = all.lines().filter(of_all).count();
    names.truncate(THEIRS);
    let theirs = {
        let _probes = perf.plant(Path::new(LIBRARY), "hotspot", &names);
        timed(|| {
            perf.run([
                "record",
                "-q",
                "-a",
                "-o",
                "/dev/null",
                "-e",
                "sdt_hotspot:*",
                "--",
                "true",
            ])
        })
    };
    println!("Probes of libjvm.so attached and detached, system-wide; seconds.\n");
    head(&["", "probes", "seconds"]);
    row(&[
        "`usdtrec record`".to_owned(),
        count.to_string(),
        format!("{ours:.2}"),
    ]);
    row(&[
        "`perf record`, its events made before".to_owned(),
        names.len().to_string(),
        format!("{theirs:.2}"),
    ]);
    println!();
}

fn timed(action: impl FnOnce() -> Finished) -> f64 {
    let begin = Instant::now();
    let finished = action();
    let seconds = begin.elapsed().as_secs_f64();
    finished.success();
    seconds
}
