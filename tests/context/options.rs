//! What `--with` and `--holders` refuse.

use crate::common::{Lab, test};

/// The bundled trace of `demo`.
const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/demo.data");

#[test]
fn what_has_no_effect_is_refused() {
    let lab = Lab::new();
    for (words, refused) in [
        (
            &["report", "--with", "query"][..],
            "no span \"query\"; it has: ",
        ),
        (
            &["report", "--with", "request", "--sort", "comm"],
            "--with request has no effect on --sort",
        ),
        (
            &["report", "--with", "request", "--rate", "1s"],
            "--with request has no effect on --rate",
        ),
        (
            &["script", "--with", "request", "-F", "comm"],
            "--with request has no effect on lines without args",
        ),
        (
            &["script", "--with", "request", "--format", "{comm}"],
            "--with request has no effect on a template",
        ),
        (
            &["script", "--holders"],
            "no lock has events for all of waiting, acquiring and releasing it",
        ),
        (
            &["report", "--holders", "--span", "request", "--by", "comm"],
            "--holders has no effect on --span",
        ),
        (
            &["export", "--to", "perf", "-o", "x", "--with", "request"],
            "--with request has no effect on --to perf",
        ),
        (&["script", "--filter", "query.query == 1"], "query.query"),
    ] {
        let (verb, options) = words.split_first().expect("a verb");
        let all = [*verb, "-i", DEMO];
        let ended = lab.usdtrec(all.iter().chain(options));
        assert!(!ended.status.success(), "{words:?}");
        assert!(
            ended.stderr.contains(refused),
            "{words:?}: {}",
            ended.stderr
        );
    }
}

/// Collections within requests, in each kind of question.
#[test]
fn every_question_takes_them() {
    let lab = Lab::new();
    for options in [
        &["report", "--with", "request"][..],
        &[
            "report",
            "--with",
            "request",
            "--sort",
            "event,request.arg2",
        ],
        &[
            "report",
            "--with",
            "request",
            "--sort",
            "event",
            "--value",
            "request.arg1",
        ],
        &[
            "report",
            "--with",
            "request",
            "--span",
            "gc",
            "--by",
            "request.arg2",
        ],
        &["report", "--with", "request", "--hist", "request.arg1"],
        &["report", "--with", "request", "--heatmap", "request.arg1"],
        &[
            "report",
            "--with",
            "request",
            "--rate",
            "100ms",
            "--by",
            "request.arg2",
        ],
        &["report", "--with", "gc", "--filter", "gc.arg1 >= 0"],
        &[
            "script",
            "--with",
            "request",
            "--format",
            "{event} {request.arg2}",
        ],
        &["script", "--with", "request,gc", "--format", "csv"],
        &["script", "--with", "*", "--format", "json", "-F", "+span"],
    ] {
        let (verb, options) = options.split_first().expect("a verb");
        let all = [*verb, "-i", DEMO];
        let printed = lab.usdtrec(all.iter().chain(options)).success().stdout;
        assert!(!printed.is_empty(), "{options:?}");
    }
    for to in ["html", "perfetto", "otlp", "otlp-proto"] {
        let all = [
            "export", "-i", DEMO, "--with", "request", "--to", to, "-o", "out",
        ];
        lab.usdtrec(all).success();
        let written = std::fs::read(lab.file("out")).expect("a file");
        let has = |word: &[u8]| written.windows(word.len()).any(|part| part == word);
        assert!(has(b"request.arg"), "{to}");
    }
}
