//! `script` and `report` beside perf's, on the same run's events.

use std::process::Command;

use crate::ROUNDS;
use crate::common::{Lab, Perf};
use crate::recording::Recorded;
use crate::table::{head, median, row, times};
use crate::timed::run;

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
                rates.push(recorded.events as f64 / run(command()).seconds);
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
