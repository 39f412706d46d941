//! `script` and `report` beside perf's, on the same run's events.

use std::process::{Command, Stdio};
use std::time::Instant;

use crate::ROUNDS;
use crate::common::{Lab, Perf};
use crate::recording::Recorded;
use crate::table::{head, median, row, times};

/// Measures and prints.
pub(crate) fn compare(lab: &Lab, perf: &Perf<'_>, recorded: &Recorded) {
    println!("Reading {} events, text to /dev/null.\n", recorded.events);
    head(&[
        "Events per second",
        "usdtrec, its file",
        "perf, its file",
        "perf, its file with `-z`",
        "perf, our file",
        "beside perf",
    ]);
    for (verb, options) in [("script", &[][..]), ("report", &["--stdio"][..])] {
        let ours = || {
            let mut command = lab.command([verb]);
            command.arg("-i").arg(&recorded.ours);
            command
        };
        let theirs = |file| {
            let mut command = perf.command([verb]);
            command.arg("-i").arg(file).args(options);
            command
        };
        let commands: [&dyn Fn() -> Command; 4] = [
            &ours,
            &|| theirs(&recorded.theirs),
            &|| theirs(&recorded.theirs_compressed),
            &|| theirs(&recorded.ours),
        ];
        let mut rates: [Vec<f64>; 4] = Default::default();
        for _ in 0..ROUNDS {
            for (command, rates) in commands.iter().zip(&mut rates) {
                rates.push(recorded.events as f64 / seconds(command()));
            }
        }
        let rates = rates.map(|rates| median(&rates));
        let mut cells = vec![format!("`{verb}`")];
        cells.extend(rates.iter().map(|rate| format!("{:.2} M", rate / 1e6)));
        cells.push(times(rates[0], rates[1]));
        row(&cells);
    }
    println!();
}

/// Runs a command, its output thrown away; seconds that it took.
fn seconds(mut command: Command) -> f64 {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let begin = Instant::now();
    let status = command.status().expect("a program");
    let seconds = begin.elapsed().as_secs_f64();
    assert!(status.success(), "{command:?}: {status}");
    seconds
}
