//! What a hit costs where it hands over a string, and among many other probes.

use std::process::Command;

use crate::ROUNDS;
use crate::common::{Build, Lab, Perf, Process, Recorder};
use crate::hot::{armed_perf, start};
use crate::table::{head, median, ratio, row};

/// Hits of the target in a round.
const HITS: usize = 300_000;
const RING: &str = "64M";
/// perf's event with the string: the argument of the function that has the probe.
const TEXT: (&str, &str) = (
    "hot_text",
    "url=request_url id=%di:s32 url=+0(%si):ustring status=%dx:u32 client=%cx:u64",
);

/// A probe, perf's event for it, and how we record it.
struct Case {
    what: &'static str,
    kind: &'static str,
    theirs: &'static str,
    options: &'static [&'static str],
}

const CASES: [Case; 2] = [
    Case {
        what: "three integers and a string",
        kind: "url",
        theirs: "hot_text:url",
        options: &["--schema", "hot.toml"],
    },
    Case {
        what: "four integers, 500 probes of another library recorded, too",
        kind: "req",
        theirs: "sdt_hot:req",
        options: &[
            "--strings=off",
            "-e",
            "hotspot:*@/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so",
        ],
    },
];

const SCHEMA: &str = "provider = \"hot\"\n[[probe]]\nname = \"url\"\narguments = [\"id\", \"url: str\", \"status\", \"client: ptr\"]\n";

/// Measures and prints.
pub(crate) fn compare(lab: &Lab, perf: &Perf<'_>) {
    let program = Build::USUAL.make(lab, "kinds.c", "kinds");
    std::fs::write(lab.file("hot.toml"), SCHEMA).unwrap();
    let mut probes = perf.plant(&program, "hot", &["req"]);
    probes.add(&program, TEXT.0, TEXT.1);
    println!("Other hits, {HITS} times each; ns per hit.\n");
    head(&["", "`perf record`", "`usdtrec record`", "beside perf"]);
    for case in CASES {
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let armed = [
                "record",
                "-q",
                "-m",
                RING,
                "-a",
                "-o",
                "theirs",
                "-e",
                case.theirs,
            ];
            let armed = armed_perf(perf, armed.to_vec());
            theirs.push(start(&program, HITS, 1, case.kind).run().hits / HITS as f64);
            drop(armed.finish().success());
            let event = format!("sdt_hot:{}@{}", case.kind, program.display());
            let options = ["-m", RING, "-a", "-o", "ours", "-e", &event];
            let recorder = Recorder::start(lab, [case.options, &options[..]].concat());
            ours.push(start(&program, HITS, 1, case.kind).run().hits / HITS as f64);
            drop(recorder.stop().complains(" 0 lost"));
        }
        let (theirs, ours) = (median(&theirs), median(&ours));
        row(&[
            case.what.to_owned(),
            format!("{theirs:.0}"),
            format!("{ours:.0}"),
            ratio(ours, theirs),
        ]);
    }
    strangers(lab, perf, &program);
    println!();
}

/// A process that is recorded, and hits nothing. With `forks` it starts a process for each line that it reads.
fn recorded(program: &std::path::Path, forks: bool) -> Process {
    let mut command = Command::new(program);
    if forks {
        command = Command::new("sh");
        command.args(["-c", "while read -r line; do (:); echo done; done"]);
    }
    Process::spawn(command)
}

/// Has it start one, if it does.
fn start_process(recorded: &mut Process, forks: bool) {
    if forks {
        recorded.say("go");
        recorded.line();
    }
}

/// What a process pays that is not recorded, while another of the same program is.
fn strangers(lab: &Lab, perf: &Perf<'_>, program: &std::path::Path) {
    let event = format!("sdt_hot:req@{}", program.display());
    let cases: [(&str, &[&str], bool); 3] = [
        (
            "in a process that is not recorded, another is (`-p`)",
            &[],
            false,
        ),
        ("the same, once the other has started a process", &[], true),
        (
            "the same, without the other's children (`--no-inherit`)",
            &["-i"],
            false,
        ),
    ];
    for (what, options, forks) in cases {
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let mut recorded = recorded(program, forks);
            let pid = recorded.pid().to_string();
            let armed = [
                "record",
                "-q",
                "-o",
                "theirs",
                "-p",
                &pid,
                "-e",
                "sdt_hot:req",
            ];
            let armed = armed_perf(perf, [&armed[..], options].concat());
            start_process(&mut recorded, forks);
            theirs.push(start(program, HITS, 1, "req").run().hits / HITS as f64);
            drop(armed.finish().success());
            let record = ["-o", "ours", "-p", &pid, "-e", &event];
            let recorder = Recorder::start(lab, [options, &record[..]].concat());
            start_process(&mut recorded, forks);
            ours.push(start(program, HITS, 1, "req").run().hits / HITS as f64);
            drop(recorder.stop().complains(" 0 lost"));
        }
        let (theirs, ours) = (median(&theirs), median(&ours));
        row(&[
            what.to_owned(),
            format!("{theirs:.1}"),
            format!("{ours:.1}"),
            ratio(ours, theirs),
        ]);
    }
}
