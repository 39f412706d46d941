//! How much memory answers take, of a long recording and of a short one.

use crate::Recorded;
use crate::common::Lab;
use crate::table::{head, row};
use crate::timed::run;

/// Asks the same of both, once.
pub(crate) fn show(lab: &Lab, short: &Recorded, long: &Recorded) {
    println!(
        "The same of {} events, {:.0} MB; once.\n",
        long.events,
        long.file.metadata().expect("a file").len() as f64 / 1e6
    );
    head(&[
        "Question",
        "seconds",
        "events/s",
        "peak memory",
        "of the short file",
    ]);
    let questions: [&[&str]; 7] = [
        &["report"],
        &["report", "--sort", "comm,arg2"],
        // As many groups as there are requests: beyond the bound they are only counted.
        &["report", "--sort", "arg1", "--top", "10"],
        &["report", "--span", "request", "--by", "arg2"],
        &["report", "--heatmap", "span:request"],
        &["script"],
        &["script", "--format", "json"],
    ];
    for question in questions {
        let ask = |recorded: &Recorded| {
            let mut command = lab.command(question);
            command.arg("-i").arg(&recorded.file);
            run(command)
        };
        let (long_taken, short_taken) = (ask(long), ask(short));
        row(&[
            format!("`{}`", question.join(" ")),
            format!("{:.1}", long_taken.seconds),
            format!("{:.1} M", long.events as f64 / long_taken.seconds / 1e6),
            format!("{} MiB", long_taken.memory >> 20),
            format!("{} MiB", short_taken.memory >> 20),
        ]);
    }
    println!();
}
