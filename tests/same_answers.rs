//! The same question has the same answer, byte for byte, with any number of threads and from run to run: every view of traces with many
//! groups, strings and ties.

use std::path::Path;

use usdtrec_testing::is_deep;

use crate::common::{Finished, Lab, run, test};
use crate::spans::record_calls;

/// Questions to a trace.
struct Questions {
    /// Command lines. `TRACE` is replaced by the file.
    texts: &'static [&'static str],
    may_be_refused: bool,
}

/// Questions to any trace.
const OF_ANY: Questions = Questions {
    may_be_refused: true,
    texts: &[
        "report",
        "report --format json",
        "report --format csv",
        "report --sort event,comm",
        "report --sort comm,tid --format json",
        "report --sort cpu,pid --format csv",
        "report --sort dso,sym",
        "report --rate 10ms --format json",
        "report --rate 10ms --by comm",
        "script",
        "script --format json",
        "script --format csv",
        "script --format csv-raw",
        "script -F +span",
        "script -F +span --format json",
        "diff TRACE --all",
        "diff TRACE --format json",
        "diff TRACE --format csv",
    ],
};

/// Questions to a recording of testdata/targets/calls.cc.
const OF_CALLS: Questions = Questions {
    may_be_refused: false,
    texts: &[
        "report --span function",
        "report --span function --by function --format json",
        "report --span function --by function,status --order p99 --format csv",
        "report --span function --by tid --order mean",
        "report --span function --key tid,function --by depth",
        "report --span function --key function --format json",
        "report --span function --min 20us --by function --order self --top 3",
        "report --hist span:function",
        "report --hist span:function --by function --format json",
        "report --hist number --scale linear --format csv",
        "report --hist text --format json",
        "report --heatmap span:function",
        "report --heatmap span:function --by function --top 3 --format json",
        "report --heatmap span:function --by status,function --format csv",
        "report --heatmap number --format json",
        "report --sort text",
        "report --sort text --top 20 --format json",
        "report --sort text:shape,kind --format csv",
        "report --sort text --value number",
        "report --sort text --value number --top 9 --format json",
        "report --sort kind --value number --format csv",
        "report --sort text --value number --order max --top 9 --format json",
        "report --sort kind --value number --order p50",
        "report --rate 5ms --by text --format json",
        "report --rate 5ms --by kind",
        "script -F comm,time,event,args,span --filter number>49000",
        "script -e sdt_calls:function__* --format {time} {function:>12} {args}",
        "diff TRACE --by function",
        "diff TRACE --by function --format json",
    ],
};

/// What the binary says with so many threads.
fn said(lab: &Lab, trace: &Path, question: &str, threads: &str) -> Finished {
    let mut words = question.split(' ').peekable();
    let verb = words.next().expect("a verb");
    let mut command = lab.command([verb]);
    if verb == "diff" {
        command.arg(trace);
    } else {
        command.arg("-i").arg(trace);
    }
    while let Some(word) = words.next() {
        match word {
            "TRACE" => command.arg(trace),
            // A template is one word.
            "{time}" => command.arg(
                ["{time}"]
                    .into_iter()
                    .chain(words.by_ref())
                    .collect::<Vec<_>>()
                    .join(" "),
            ),
            word => command.arg(word),
        };
    }
    command.env("RAYON_NUM_THREADS", threads);
    run(command)
}

/// Questions of which the answer, or the refusal, is not always the same.
fn unlike(lab: &Lab, trace: &Path, questions: &Questions) -> Vec<String> {
    // Any number of threads but one is the same case.
    let others: &[&str] = if is_deep() { &["2", "7"] } else { &["7"] };
    let mut unlike = Vec::new();
    for question in questions.texts {
        let one = said(lab, trace, question, "1");
        let is_refused = !one.status.success() && !one.stderr.is_empty();
        assert!(
            one.status.success() || is_refused && questions.may_be_refused,
            "{question}: {}",
            one.stderr
        );
        for &threads in others {
            let other = said(lab, trace, question, threads);
            if (&one.stdout, &one.stderr) != (&other.stdout, &other.stderr) {
                let lines = one.stdout.lines().zip(other.stdout.lines());
                let differ = lines.into_iter().find(|(one, other)| one != other);
                unlike.push(format!(
                    "{question}, {threads} threads of {}: {differ:#?}",
                    trace.display()
                ));
                break;
            }
        }
    }
    unlike
}

#[test]
fn of_stored_traces() {
    let lab = Lab::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let mut traces = vec![root.join("demo.data")];
    let stored = std::fs::read_dir(root.join("traces")).expect("traces");
    let stored = stored.map(|entry| entry.expect("a file").path());
    traces.extend(stored.filter(|path| path.extension().is_some_and(|end| end == "data")));
    assert!(traces.len() > 8);
    let unlike: Vec<String> = traces
        .iter()
        .flat_map(|trace| unlike(&lab, trace, &OF_ANY))
        .collect();
    assert!(unlike.is_empty(), "{unlike:#?}");
}

/// Threads with more different strings than are counted one by one, more groups than are kept, and many with equal figures.
#[test]
fn of_many_groups_and_ties() {
    let lab = Lab::privileged();
    let events = [
        "sdt_calls:function__entry(function=str(arg1), depth=arg3)",
        "sdt_calls:function__return(function=str(arg1), status=arg3)",
        "sdt_calls:item(text=str(arg1), number=arg2, kind=arg3)",
    ];
    record_calls(&lab, &events, ["5", "40", "4", "12000"]);
    let trace = lab.file("trace");
    let mut found = unlike(&lab, &trace, &OF_ANY);
    found.extend(unlike(&lab, &trace, &OF_CALLS));
    assert!(found.is_empty(), "{found:#?}");
}
