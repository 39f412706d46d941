//! A recording with values and spans that formats get wrong, and what is in it by other verbs.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value as Json;

use crate::common::{Build, Closing, Lab, Recorder, run};

const SCHEMA: &str = r#"
provider = "nasty"
[[probe]]
name = "value"
arguments = ["low: s64", "high: u64", "real: f64", "text: str"]
[[probe]]
name = "work__start"
arguments = ["key: u64", "text: str"]
[[probe]]
name = "work__done"
arguments = ["key: u64", "status: s32"]
[[probe]]
name = "job__start"
arguments = ["job: u64"]
[[probe]]
name = "job__done"
arguments = ["job: u64"]
"#;

/// A hit as far as formats have it: what `script --format json` prints of it.
pub(super) type HitFields = BTreeMap<String, Json>;

/// The recording `trace` in a lab.
pub(crate) struct Nasty {
    pub(crate) lab: Lab,
}

impl Nasty {
    /// Records the program, with so many ordinary spans.
    pub(crate) fn record(more: usize, options: &[&str]) -> Self {
        let lab = Lab::privileged();
        let program = Build::USUAL.make(&lab, "nasty.c", "nasty");
        fs::write(lab.file("nasty.toml"), SCHEMA).expect("a file");
        let program = program.to_str().expect("a path");
        let event = format!("sdt_nasty:*@{program}");
        let more = more.to_string();
        let head = ["record", "--schema", "nasty.toml", "--strlen", "4096"];
        let tail = ["-o", "trace", "-e", &event, "--", program, &more];
        lab.usdtrec([&head, options, &tail].concat())
            .success()
            .complains(" 0 lost");
        Self { lab }
    }

    /// Records the program while the recorder stands still, so that its rings become full: the first hits are in the trace, later ones are lost.
    pub(super) fn record_with_losses() -> (Self, Closing) {
        let lab = Lab::privileged();
        let program = Build::USUAL.make(&lab, "nasty.c", "nasty");
        fs::write(lab.file("nasty.toml"), SCHEMA).expect("a file");
        let event = format!("sdt_nasty:*@{}", program.display());
        let recorder = Recorder::start(
            &lab,
            [
                "--schema",
                "nasty.toml",
                "--strlen",
                "4096",
                "-m",
                "16",
                "-a",
                "-o",
                "trace",
                "-e",
                &event,
            ],
        );
        recorder.signal("STOP");
        let mut command = Command::new(&program);
        command.arg("5000");
        run(command).success();
        recorder.signal("CONT");
        let closing = Closing::parse(&recorder.stop().stderr);
        assert!(closing.lost > 0 && closing.events > 7, "{closing:?}");
        (Self { lab }, closing)
    }

    /// Exports the trace to a file.
    #[track_caller]
    pub(super) fn export(&self, format: &str, options: &[&str]) -> PathBuf {
        let head = ["export", "-i", "trace", "--to", format, "-o", "exported"];
        self.lab.usdtrec([&head, options].concat()).success();
        self.lab.file("exported")
    }

    /// All hits as `script` prints them, in the order of time.
    pub(super) fn hits(&self) -> Vec<HitFields> {
        script_hits(&self.lab, "trace", &KNOWN)
    }

    /// The spans of a name by `report`: their number, those without an end, ends without a begin, and the time in them and in no span of the name within them, ns.
    pub(super) fn spans(&self, name: &str) -> [u64; 4] {
        let report = ["report", "-i", "trace", "--span", name, "--format", "json"];
        let report = self.lab.usdtrec(report).success().stdout;
        let report: Json = serde_json::from_str(&report).expect("JSON");
        let span = &report["spans"][0];
        let number = |name: &str| {
            span[name]
                .as_u64()
                .unwrap_or_else(|| panic!("{name}: {span}"))
        };
        [
            number("count"),
            number("open"),
            number("unmatched"),
            number("self_ns"),
        ]
    }
}

/// Members of a hit that formats have.
pub(super) const KNOWN: [&str; 9] = [
    "time_ns", "cpu", "pid", "tid", "event", "args", "missing", "cut", "bytes",
];

/// All hits of a trace as `script` prints them, in the order of time.
pub(super) fn script_hits(lab: &Lab, input: &str, known: &[&str]) -> Vec<HitFields> {
    let script = ["script", "-i", input, "--format", "json"];
    let names = ["-F", "+sym,+dso"];
    let names = &names[..if known.contains(&"stack") { 2 } else { 0 }];
    let lines = lab.usdtrec([&script, names].concat()).success().stdout;
    let hits = lines.lines().map(|line| {
        let line: HitFields = serde_json::from_str(line).expect("JSON");
        let fields = line.into_iter();
        fields
            .filter(|(name, _)| known.contains(&&**name))
            .collect()
    });
    hits.collect()
}
