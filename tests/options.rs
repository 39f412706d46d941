//! Every option of the verbs that read a trace, and of `list`, has an effect on every answer, or is refused with the reason.

use std::path::Path;

use crate::common::{Finished, Lab, run, test};

/// Units of the demo's arguments, so that text has them as times and sizes.
const SCHEMA: &str = r#"
provider = "usdtrec"
[[probe]]
name = "request__done"
arguments = ["id", "status", "size: u64 bytes", "took", "_", "_"]
[[probe]]
name = "gc__done"
arguments = ["full", "freed: u32 bytes", "_", "_"]
"#;

/// A question, options that are tried one by one, and words of the reasons for which they may be refused.
struct Asked {
    question: &'static [&'static str],
    options: &'static [&'static [&'static str]],
}

const WHICH: &[&[&str]] = &[
    &["-e", "usdtrec:gc__*"],
    &["--time", "10%-20%"],
    &["--comm", "other"],
    &["--pid", "1"],
    &["--tid", "1"],
    &["-C", "0"],
    &["--filter", "status == 404"],
];

const PRINT: &[&[&str]] = &[
    &["-F", "comm,args"],
    &["--times", "reltime"],
    &["--times", "deltatime"],
    &["--times", "ns"],
];

const SCRIPT: [&[&str]; 5] = [
    &["script"],
    &["script", "--format", "json"],
    &["script", "--format", "csv"],
    &["script", "--format", "{time} {arg3}"],
    &["script", "--format", "{reltime} {args}"],
];

const OTHERS: [Asked; 7] = [
    Asked {
        question: &["report", "--sort", "size", "--format", "csv"],
        options: &[&["--order", "max"]],
    },
    Asked {
        question: &["diff", "other"],
        options: &[&["--all"]],
    },
    Asked {
        question: &["diff", "other", "--all"],
        options: &[&["--by", "tid"], &["--time", "10%-20%"]],
    },
    Asked {
        question: &["diff", "other", "--format", "json"],
        options: &[&["--all"], &["--by", "tid"]],
    },
    Asked {
        question: &["diff", "other", "--format", "csv"],
        options: &[&["--all"], &["--by", "tid"]],
    },
    Asked {
        question: &["list", "--file"],
        options: &[&["-v"], &["--schema", "units.toml"], &["--format", "json"]],
    },
    Asked {
        question: &["list", "-v", "--file"],
        options: &[&["--schema", "units.toml"], &["--format", "json"]],
    },
];

impl Asked {
    /// The options that have no effect and are not refused.
    fn without_effect(&self, lab: &Lab) -> Vec<String> {
        let plain = answer(lab, self.question, &[]);
        assert!(
            plain.status.success(),
            "{:?}: {}",
            self.question,
            plain.stderr
        );
        let options = self.options.iter().filter(|option| {
            let answer = answer(lab, self.question, option);
            let is_refused = !answer.status.success() && names(&answer.stderr, option[0]);
            let has_effect = answer.status.success() && answer.stdout != plain.stdout;
            !is_refused && !has_effect
        });
        options
            .map(|option| format!("{:?} {option:?}", self.question))
            .collect()
    }
}

/// Whether a refusal names an option.
fn names(refusal: &str, option: &str) -> bool {
    refusal.contains(option) || refusal.contains("a template for --format determines the fields")
}

fn answer(lab: &Lab, question: &[&str], option: &[&str]) -> Finished {
    let (verb, rest) = question.split_first().expect("a verb");
    let mut command = lab.command([verb]);
    match *verb {
        "list" => {
            command
                .args(option)
                .args(rest)
                .arg(env!("CARGO_BIN_EXE_usdtrec"));
        }
        "diff" => {
            command
                .args(["--schema", "units.toml", "demo.data"])
                .args(rest)
                .args(option);
        }
        _ => {
            command
                .args(["--schema", "units.toml", "-i", "demo.data"])
                .args(rest)
                .args(option);
        }
    }
    run(command)
}

#[test]
fn every_option_has_an_effect_or_is_refused() {
    let lab = Lab::new();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/demo.data");
    std::fs::copy(&data, lab.file("demo.data")).expect("a copy");
    std::fs::copy(&data, lab.file("other")).expect("a copy");
    std::fs::write(lab.file("units.toml"), SCHEMA).expect("a file");
    let mut wrong = Vec::new();
    for question in SCRIPT {
        for options in [WHICH, PRINT] {
            wrong.extend(Asked { question, options }.without_effect(&lab));
        }
    }
    for asked in OTHERS {
        wrong.extend(asked.without_effect(&lab));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
