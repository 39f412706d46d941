//! What a hit costs where it hands over a text, where a 5-byte nop stands, and among many other probes.

use crate::ROUNDS;
use crate::common::{Build, Lab, Perf, Recorder};
use crate::recording::{armed_perf, run};
use crate::table::{head, median, ratio, row};

/// Hits of the target in a round.
const HITS: usize = 300_000;
const RING: &str = "64M";
/// perf's event with the text: the argument of the function that has the probe.
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

const CASES: [Case; 3] = [
    Case {
        what: "three integers and a text",
        kind: "url",
        theirs: "hot_text:url",
        options: &["--schema", "hot.toml"],
    },
    Case {
        what: "four integers, a 5-byte nop behind the nop",
        kind: "fast",
        theirs: "sdt_hot:fast",
        options: &["--strings=off"],
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
    let Some(program) = Build::USUAL.make(lab, "kinds.c", "kinds") else {
        return;
    };
    std::fs::write(lab.file("hot.toml"), SCHEMA).unwrap();
    let mut probes = perf.plant(&program, "hot", &["req", "fast"]);
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
            theirs.push(run(&program, HITS, case.kind).hits / HITS as f64);
            drop(armed.finish().success());
            let event = format!("sdt_hot:{}@{}", case.kind, program.display());
            let options = ["-m", RING, "-a", "-o", "ours", "-e", &event];
            let recorder = Recorder::start(lab, [case.options, &options[..]].concat());
            ours.push(run(&program, HITS, case.kind).hits / HITS as f64);
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
    println!();
}
