//! Questions beside what one does with stock perf.

use std::process::Command;

use crate::common::{Lab, Perf};
use crate::table::{head, median, row, times};
use crate::timed::run;
use crate::{ROUNDS, Recorded};

/// Spans as one gets them from perf's text: the time from each `request__start` to the next `request__done` of its thread.
const AWK: &str = r#"perf script -i "$0" -F tid,time,event 2>/dev/null | awk '
    { sub(":", "", $2) }
    /request__start/ { begin[$1] = $2 }
    /request__done/ && $1 in begin { printf "%.0f\n", ($2 - begin[$1]) * 1e9; delete begin[$1] }
' | sort -n | awk '{ t[NR] = $1 } END { print NR, t[int(NR*.5)], t[int(NR*.9)], t[int(NR*.99)], t[NR] }'"#;

/// A question, and how stock perf is asked the same.
type Question<'a> = (&'a [&'a str], Option<(&'a str, &'a dyn Fn() -> Command)>);

/// Measures and prints.
pub(crate) fn compare(lab: &Lab, perf: &Perf<'_>, recorded: &Recorded) {
    println!(
        "{} events of two threads in one compressed file of {:.1} MB; results to /dev/null.\n",
        recorded.events,
        recorded.file.metadata().expect("a file").len() as f64 / 1e6
    );
    head(&[
        "Question",
        "events/s",
        "on one CPU",
        "growth",
        "with stock perf",
        "events/s",
        "beside perf",
    ]);
    let ours = |arguments: &[&str], threads: &str| {
        let mut command = lab.command(arguments);
        command.arg("-i").arg(&recorded.file);
        command.env("RAYON_NUM_THREADS", threads);
        command
    };
    let theirs = |arguments: &[&str]| {
        let mut command = perf.command(arguments);
        command.arg("-i").arg(&recorded.file);
        command
    };
    let awk = || {
        let mut command = Command::new("sh");
        command.arg("-c").arg(AWK).arg(&recorded.file);
        command
    };
    let convert = || {
        let mut command = perf.command(["data", "convert", "--force", "--to-json", "/dev/null"]);
        command.arg("-i").arg(&recorded.file);
        command
    };
    let sort = ["report", "--stdio", "-s", "comm,arg2"];
    let script = || theirs(&["script"]);
    let report = || theirs(&sort);
    let questions: [Question<'_>; 7] = [
        (&["script"], Some(("`script`", &script))),
        (
            &["script", "--format", "json"],
            Some(("`data convert --to-json`", &convert)),
        ),
        (
            &["report", "--sort", "comm,arg2"],
            Some(("`report -s comm,arg2`", &report)),
        ),
        (
            &["report", "--span", "request"],
            Some(("`script \\| awk \\| sort \\| awk`", &awk)),
        ),
        (&["report"], None),
        (&["report", "--hist", "arg2"], None),
        (&["script", "-F", "+span"], None),
    ];
    for (question, perfs) in questions {
        let mut rates: [Vec<f64>; 3] = Default::default();
        for _ in 0..ROUNDS {
            let rate = |command| recorded.events as f64 / run(command).seconds;
            rates[0].push(rate(ours(question, "0")));
            rates[1].push(rate(ours(question, "1")));
            if let Some((_, command)) = perfs {
                rates[2].push(rate(command()));
            }
        }
        let [all, one] = [0, 1].map(|place| median(&rates[place]));
        let mut cells = vec![
            format!("`{}`", question.join(" ")),
            format!("{:.1} M", all / 1e6),
            format!("{:.1} M", one / 1e6),
            times(all, one),
        ];
        match perfs {
            Some((name, _)) => {
                let perf = median(&rates[2]);
                cells.push(name.to_owned());
                cells.push(format!("{:.2} M", perf / 1e6));
                cells.push(times(all, perf));
            }
            None => cells.extend([const { String::new() }; 3]),
        }
        row(&cells);
    }
    println!();
}
