//! Options mean the same in every verb that has them, and former names of perf mean what is used instead.

use serde_json::Value;

use crate::common::{Lab, test};

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/demo.data");

/// What a verb prints of the demo.
#[track_caller]
fn printed(lab: &Lab, verb: &str, options: &[&str]) -> String {
    let words = [&[verb, "-i", DEMO], options].concat();
    lab.usdtrec(words).success().stdout
}

#[track_caller]
fn same(lab: &Lab, verb: &str, one: &[&str], other: &[&str]) {
    let [one_said, other_said] = [one, other].map(|options| printed(lab, verb, options));
    assert!(!one_said.is_empty(), "{verb} {one:?}");
    assert!(
        one_said == other_said,
        "{verb} {one:?} and {other:?} differ"
    );
}

#[track_caller]
fn refused(lab: &Lab, words: &[&str], why: &str) {
    lab.usdtrec(words).exits(2).complains(why);
}

#[test]
fn report_groups_events_by_what_spans_are_grouped_by() {
    let lab = Lab::new();
    for format in ["text", "json", "csv"] {
        let format = ["--format", format];
        for keys in ["comm,event", "arg2", "arg2:shape"] {
            let by = [&["--by", keys][..], &format].concat();
            let sort = [&["--sort", keys][..], &format].concat();
            same(&lab, "report", &by, &sort);
        }
    }
    let sums = ["--value", "arg1", "--order", "max", "--top", "2"];
    let by = [&["--by", "event"][..], &sums].concat();
    let sort = [&["--sort", "event"][..], &sums].concat();
    same(&lab, "report", &by, &sort);
    let both = ["report", "-i", DEMO, "--by", "comm", "--sort", "event"];
    refused(&lab, &both, "cannot be used with");
    let histogram = ["report", "-i", DEMO, "--by", "comm", "--hist", "arg2"];
    lab.usdtrec(histogram)
        .exits(2)
        .complains("--by has no effect on --hist ARG");
}

#[test]
fn names_of_perf_are_items_of_times() {
    let lab = Lab::new();
    let formats: [&[&str]; 4] = [
        &[],
        &["--format", "json"],
        &["--format", "csv"],
        &["--format", "{time} {reltime} {tod} {event}"],
    ];
    let options: [(&[&str], &str); 5] = [
        (&["--reltime"], "reltime"),
        (&["--deltatime"], "deltatime"),
        (&["--ns"], "ns"),
        (&["--ns", "--reltime"], "reltime,ns"),
        (&[], "clock"),
    ];
    for format in formats {
        for (names, items) in options {
            let is_template = format.last().is_some_and(|last| last.starts_with('{'));
            let is_text = format.is_empty() || is_template;
            if items.contains("ns") && !is_text {
                let words = [&["script", "-i", DEMO, "--times", items], format].concat();
                lab.usdtrec(words).exits(2);
                continue;
            }
            let names = [names, format].concat();
            let items = [&["--times", items], format].concat();
            same(&lab, "script", &names, &items);
        }
    }
    same(
        &lab,
        "script",
        &["--times", "ns", "--times", "deltatime"],
        &["--times", "deltatime,ns"],
    );
    for contradiction in [
        &["--times", "reltime,deltatime"][..],
        &["--reltime", "--deltatime"],
        &["--times", "clock", "--reltime"],
        &["--times", "deltatime", "--reltime"],
    ] {
        let words = [&["script", "-i", DEMO], contradiction].concat();
        refused(&lab, &words, "contradict each other");
    }
    let spans = [
        "script", "-i", DEMO, "--min", "1ms", "--times", "reltime", "--format", "json",
    ];
    refused(
        &lab,
        &spans,
        "--times has no effect on spans as JSON and CSV",
    );
    for verb in ["script", "trace"] {
        let help = lab.usdtrec([verb, "--help"]).success().stdout;
        assert!(help.contains("--times <TIMES>"), "{help}");
        assert!(!help.contains("--reltime"), "{help}");
    }
}

/// `--min TIME` and `--filter 'span >= TIME'` choose spans of those that are found by name, in every verb that has them.
#[test]
fn slow_spans_are_those_of_all_names() {
    let lab = Lab::new();
    let min = ["--min", "1ms"];
    let filter = ["--filter", "span >= 1ms"];
    let all = ["--span", "*:*", "--min", "1ms"];
    let both = |verb: &str, rest: &[&str]| {
        let options = [&min[..], &filter, &all].map(|options| [options, rest].concat());
        let [min, filter, all] = &options;
        same(&lab, verb, min, filter);
        same(&lab, verb, min, all);
    };
    both("script", &["--format", "json"]);
    both("report", &["--format", "json"]);
    both("report", &["--by", "arg2"]);
    // The rows of two spans are those of each.
    let spans = |options: &[&str]| -> Vec<Value> {
        let said = printed(&lab, "report", &[options, &["--format", "json"]].concat());
        let answer: Value = serde_json::from_str(&said).expect("JSON");
        answer["spans"].as_array().expect("spans").clone()
    };
    let two = spans(&["--span", "gc", "--span", "request"]);
    let each = ["gc", "request"].map(|name| spans(&["--span", name]));
    assert_eq!(two, each.concat());
    assert_eq!(two.len(), 2);
    for to in ["perfetto", "otlp"] {
        both("export", &["--to", to, "-o", "-"]);
    }
    same(
        &lab,
        "export",
        &[&min[..], &["--to", "html", "-o", "-"]].concat(),
        &[&filter[..], &["--to", "html", "-o", "-"]].concat(),
    );
    let page = printed(
        &lab,
        "export",
        &[&min[..], &["--to", "html", "-o", "-"]].concat(),
    );
    assert!(page.contains("only spans of 1ms or more"));
    for slow in [min, filter] {
        let words = [
            &["export", "-i", DEMO, "--to", "perf", "-o", "out"],
            &slow[..],
        ]
        .concat();
        refused(&lab, &words, "cannot be used with '--to perf'");
    }
    for verb in [
        &["export", "--to", "otlp", "-o", "out", "-i", DEMO][..],
        #[cfg(feature = "flame")]
        &["flame", "out.svg", "-i", DEMO],
        &["script", "-i", DEMO],
    ] {
        let words = [verb, &["--key", "tid"]].concat();
        refused(&lab, &words, "--key has no effect without --span");
    }
    let summed = [
        "export", "-i", DEMO, "--to", "folded", "-o", "-", "--value", "arg1", "--min", "1ms",
    ];
    refused(&lab, &summed, "cannot be used with");
    let grouped = ["report", "-i", DEMO, "--sort", "comm", "--min", "1ms"];
    lab.usdtrec(grouped)
        .exits(2)
        .complains("cannot be used with");
}

#[cfg(feature = "flame")]
#[test]
fn flame_graphs_of_slow_spans() {
    let lab = Lab::new();
    let draw = |name: &str, options: &[&str]| {
        let words = [&["flame", name, "-i", DEMO], options].concat();
        let drawn = lab.usdtrec(words);
        drawn.stderr
    };
    // The demo has no stacks: which weights are asked for is seen in what is refused.
    let stderr = draw("a.svg", &["--min", "1ms"]);
    assert_eq!(stderr, draw("a.svg", &["--filter", "span >= 1ms"]));
    assert_eq!(stderr, draw("a.svg", &["--span", "*:*", "--min", "1ms"]));
    for other in [
        &["-i", DEMO, "--value", "arg1"][..],
        &["--diff", DEMO, DEMO],
    ] {
        let words = [&["flame", "a.svg", "--filter", "span > 1ms"], other].concat();
        refused(&lab, &words, "'--filter span > 1ms' cannot be used with");
    }
}

/// The figures of spans in a comparison of the demo with itself.
#[track_caller]
fn compared(lab: &Lab, options: &[&str]) -> Vec<Value> {
    let words = [&["diff", DEMO, DEMO, "--format", "json"], options].concat();
    let said = lab.usdtrec(words).success().stdout;
    let answer: Value = serde_json::from_str(&said).expect("JSON");
    let figures = answer["figures"].as_array().expect("figures").iter();
    let of_spans = figures.filter(|figure| figure["kind"] == "span");
    of_spans.cloned().collect()
}

#[test]
fn diff_compares_the_spans_that_are_asked_for() {
    let lab = Lab::new();
    let all = compared(&lab, &[]);
    let names = |figures: &[Value]| {
        let mut names: Vec<String> = figures
            .iter()
            .map(|figure| figure["name"].to_string())
            .collect();
        names.dedup();
        names
    };
    assert!(names(&all).len() > 1, "{all:?}");
    let only = compared(&lab, &["--span", "request"]);
    assert_eq!(names(&only), ["\"usdtrec:request\""]);
    let two = compared(&lab, &["--span", "request", "--span", "gc"]);
    assert_eq!(names(&two), ["\"usdtrec:gc\"", "\"usdtrec:request\""]);
    let start_and_done = "usdtrec:request__start..usdtrec:request__done";
    let keyed = compared(&lab, &["--span", start_and_done, "--key", "arg1"]);
    assert!(!keyed.is_empty());
    // Groups of the end's argument are those of report.
    let groups = compared(&lab, &["--span", "request", "--by", "request__done.arg2"]);
    let groups: Vec<&Value> = groups
        .iter()
        .filter(|one| !one["group"].is_null())
        .collect();
    assert!(!groups.is_empty());
    let begin = compared(&lab, &["--span", "request", "--by", "request__start.arg2"]);
    assert!(begin.len() >= only.len(), "{begin:?}");
    // The shortest spans are left out, whatever says so.
    let slow = compared(&lab, &["--span", "request", "--min", "1ms"]);
    assert_eq!(
        slow,
        compared(&lab, &["--span", "request", "--filter", "span >= 1ms"])
    );
    assert!(!slow.is_empty() && slow != only, "{slow:?}");
    let report = printed(
        &lab,
        "report",
        &["--span", "request", "--min", "1ms", "--format", "json"],
    );
    let report: Value = serde_json::from_str(&report).expect("JSON");
    for (name, member) in [("count", "count"), ("p50", "p50_ns"), ("max", "max_ns")] {
        let figure = slow.iter().find(|figure| figure["figure"] == name);
        assert_eq!(figure.expect("a figure")["a"], report["spans"][0][member]);
    }
    let text = lab.usdtrec(["diff", DEMO, DEMO, "--min", "1ms"]).success();
    assert!(text.stdout.contains("# only spans of 1ms or more\n"));
    lab.usdtrec(["diff", DEMO, DEMO, "--span", "nothing"])
        .exits(1)
        .complains("has no span");
    lab.usdtrec(["diff", DEMO, DEMO, "--by", "request__done.arg9"])
        .exits(1)
        .complains("arg9");
}
