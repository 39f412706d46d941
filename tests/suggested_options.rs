//! Questions that a trace cannot answer, and how views lead on: both in options of the command line.

use std::path::Path;

use crate::common::{Lab, run, test};

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/demo.data");

#[test]
fn what_cannot_be_answered_is_followed_by_advice() {
    let lab = Lab::new();
    for (verb, options, error, advice) in [
        (
            "report",
            &["--hist", "pid"][..],
            "pid is not an argument",
            Some("--sort pid counts by it"),
        ),
        (
            "report",
            &["--heatmap", "comm"],
            "comm is not an argument",
            Some("--rate shows events over time"),
        ),
        (
            "report",
            &["--rate", "1ns"],
            "intervals are more than 65536",
            Some("choose a longer interval, or a part of the trace with --time"),
        ),
        (
            "report",
            &["--sort", "comm", "--value", "pid"],
            "pid: expected the name of an argument",
            None,
        ),
        (
            "script",
            &["--filter", "*arg1 == 1"],
            "memory of the traced program can be read only while recording",
            Some("filter while recording: record --filter"),
        ),
        (
            "script",
            &["--format", "{span}"],
            "templates have no spans",
            Some("spans are shown by: script -F +span"),
        ),
    ] {
        let asked = [&[verb, "-i", TRACE], options].concat();
        let refused = lab.usdtrec(asked).exits(1).complains(error);
        assert_eq!(refused.stdout, "", "{options:?}");
        let mut lines = refused.stderr.lines();
        assert!(lines.next().is_some_and(|line| line.contains(error)));
        match advice {
            Some(advice) => {
                let found = lines.next().and_then(|line| line.strip_prefix("  "));
                assert!(
                    found.is_some_and(|line| line.starts_with(advice)),
                    "{found:?}"
                );
            }
            None => assert_eq!(lines.next(), None),
        }
    }
    let diff = ["diff", TRACE, TRACE, "--time", "1,2"];
    lab.usdtrec(diff)
        .exits(1)
        .complains("the clocks of two recordings differ");
    let kind = ["script", "-i", TRACE, "-F", "trace:foo"];
    let words = "give \"trace:foo\" without the type, and choose events by -e";
    lab.usdtrec(kind).exits(2).complains(words);
}

#[test]
fn the_command_lines_that_lead_on_work() {
    let lab = Lab::new();
    for (half, time) in [("first", "0%-50%"), ("second", "50%-100%")] {
        let export = ["export", "-i", TRACE, "--to", "perf"];
        let part = ["--time", time, "-o", half];
        lab.usdtrec([&export[..], &part].concat()).success();
    }
    std::fs::write(
        lab.file("names.toml"),
        "provider = \"none\"\n[[probe]]\nname = \"none\"\narguments = [\"x: s32\"]\n",
    )
    .expect("a schema");
    for trace in [
        &["-i", TRACE][..],
        &["-i", "first", "-i", "second"],
        &["-i", TRACE, "--schema", "names.toml"],
    ] {
        let report = lab.usdtrec([&["report"], trace].concat()).success().stdout;
        let next = report.split("\nNext\n").nth(1).expect("questions lead on");
        let lines = next
            .lines()
            .filter_map(|line| line.strip_prefix("  usdtrec "));
        let lines: Vec<&str> = lines.collect();
        assert!(lines.len() > 3, "{report}");
        for line in lines {
            // What it shows follows two spaces.
            let command = line.split("  ").next().unwrap_or(line);
            let named = format!(" {} -", trace.join(" "));
            assert!(command.contains(&named), "{command}");
            let answer = lab.usdtrec(command.split(' ')).success().silent();
            assert!(answer.stdout.lines().count() > 1, "{command}");
        }
    }
}

/// What came by a pipe cannot be asked again.
#[test]
fn nothing_leads_on_from_a_pipe() {
    let lab = Lab::new();
    let pipe = "cat \"$1\" | \"$0\" report -i -";
    let words = ["-c", pipe, env!("CARGO_BIN_EXE_usdtrec"), TRACE];
    let report = run(lab.at_home(Path::new("sh"), words)).success().stdout;
    assert!(report.contains("\nProbe"), "{report}");
    assert!(!report.contains("\nNext\n"), "{report}");
}

#[test]
fn views_name_the_options_that_show_more() {
    let lab = Lab::new();
    let groups = ["report", "-i", TRACE, "--sort", "event,cpu", "--top", "1"];
    let text = lab.usdtrec(groups).success().stdout;
    assert!(text.contains("more groups (--top)"), "{text}");
    let diff = |options: &[&str]| {
        let diff = [&["diff", TRACE, TRACE], options].concat();
        lab.usdtrec(diff).success().stdout
    };
    let text = diff(&[]);
    assert!(text.contains("(--all shows them)"), "{text}");
    assert!(!diff(&["--all"]).contains("--all"), "nothing more to show");
}

/// An option of another verb is no slip of one that shares some letters with it.
#[test]
fn tips_about_options_are_true() {
    let lab = Lab::new();
    for (words, tip) in [
        (&["report", "--ordr", "p99"][..], "'--order'"),
        (&["report", "--budget", "2%"], "is an option of: record"),
        (&["script", "--sort", "x"], "is an option of: report"),
        // Not --tod and --width, which have as many letters in common as a slip.
        (&["script", "--top", "3"], "'--top' is an option of: report"),
        (
            &["diff", "a", "b", "--with", "x"],
            "'--with' is an option of: ",
        ),
    ] {
        let refused = lab.usdtrec(words).exits(2).complains(tip);
        let others = ["--force", "--tod", "--width"];
        let named = others.iter().find(|other| refused.stderr.contains(**other));
        assert_eq!(named, None, "{}", refused.stderr);
    }
    let unknown = lab.usdtrec(["report", "--percentile", "99"]).exits(2);
    assert!(!unknown.stderr.contains("tip"), "{}", unknown.stderr);
    assert!(!unknown.stderr.contains("--event"), "{}", unknown.stderr);
}

#[test]
fn an_expression_may_begin_with_a_minus() {
    let lab = Lab::new();
    let lines = |filter: &str| {
        let script = [
            "script",
            "-i",
            TRACE,
            "-e",
            "usdtrec:request__start",
            "--filter",
            filter,
        ];
        lab.usdtrec(script).success().stdout.lines().count()
    };
    assert!(lines("-1 < arg1") > 0);
    assert_eq!(lines("-1 < arg1 && -arg1 > -3"), lines("arg1 < 3"));
}
