//! Hints of the views, in options and command lines.

use usdtrec_report::{Hint, HintWords, NextQuestion};

use crate::shell::word;

/// The words for hints.
pub(crate) const HINTS: HintWords = HintWords(words);

fn words(hint: &Hint<'_>) -> String {
    let words = match hint {
        Hint::MoreGroups => "--top",
        Hint::GroupKeys => "--by",
        Hint::Filter => "--filter",
        Hint::FewerSpans => "choose fewer events with -e or --span",
        Hint::SmallChanges => "--percent-limit 0 shows them",
        Hint::AllFigures => "--all shows them",
        Hint::NotCompared { all: false } => "--all says why",
        Hint::NotCompared { all: true } => "--format json says why",
        Hint::Symbols => {
            "install its debug symbols (Debian: package NAME-dbgsym or NAME-dbg, Fedora: NAME-debuginfo), or build it with -g and without strip"
        }
        Hint::RecordedFile => "add the recorded file with usdtrec buildid-cache --add FILE",
        Hint::RuntimeCode => {
            "it has names if the process writes /tmp/perf-PID.map or a jitdump: node --perf-basic-prof --interpreted-frames-native-stack, \
             java with jcmd PID Compiler.perfmap, python -X perf, ruby --yjit --yjit-perf; and all its callers with java -XX:+PreserveFramePointer"
        }
        // Verbs that read a trace take --key with --span alone.
        Hint::SpanKey { span, name } => {
            return format!("--span {} --key {} matches them", word(span), word(name));
        }
        Hint::Record { pids } => return record(pids),
        Hint::Next { question, trace } => return command_line(question, trace),
        _ => "",
    };
    words.to_owned()
}

fn record(pids: &[i32]) -> String {
    let list: Vec<String> = pids.iter().map(i32::to_string).collect();
    let what = if pids.len() == 1 { "it" } else { "them" };
    format!("record {what} with: -p {}", list.join(","))
}

/// The command line that answers a question to the trace that these options name.
fn command_line(question: &NextQuestion, trace: &str) -> String {
    let report = |options: String| format!("usdtrec report{trace} {options}");
    match question {
        NextQuestion::SlowGroups { span, by } => {
            let (span, by) = (word(span), word(by));
            report(format!("--span {span} --by {by} --order p99"))
        }
        NextQuestion::Durations { span } => report(format!("--hist span:{}", word(span))),
        NextQuestion::DurationsOverTime { span } => {
            report(format!("--heatmap span:{}", word(span)))
        }
        NextQuestion::Values { event, argument } => {
            let (event, argument) = (word(event), word(argument));
            report(format!("-e {event} --sort {argument}"))
        }
        NextQuestion::Processes => report("--sort comm,event".to_owned()),
        NextQuestion::Rate { interval } => report(format!("--rate {}", time(*interval))),
        NextQuestion::Events { event } => {
            let event = word(event);
            format!("usdtrec script{trace} -e {event} --time 0%-1%")
        }
    }
}

/// A time in the largest unit of options in which it is a whole number.
fn time(nanoseconds: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "us")];
    let mut units = units.into_iter();
    match units.find(|(unit, _)| nanoseconds.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{}{name}", nanoseconds / unit),
        None => format!("{nanoseconds}ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_name_the_trace_and_spans() {
        let rate = NextQuestion::Rate {
            interval: 20_000_000,
        };
        let line = |trace| command_line(&rate, trace);
        assert_eq!(line(""), "usdtrec report --rate 20ms");
        assert_eq!(line(" -i 'a b'"), "usdtrec report -i 'a b' --rate 20ms");
        let key = Hint::SpanKey {
            span: "app:request",
            name: "tid,arg1",
        };
        let matched = "--span app:request --key tid,arg1 matches them";
        assert_eq!(words(&key), matched);
        assert_eq!(time(1500), "1500ns");
        assert_eq!(time(50_000_000_000), "50s");
    }
}
