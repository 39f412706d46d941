//! Probes at one instruction, and stacks whose frame pointers are data.

use serde_json::Value;

use crate::common::{Build, Event, Lab, events_named, test};

const HITS: &str = "25";
const BUILD: Build = Build {
    compiler: "gcc",
    options: &["-O2", "-mno-red-zone", "-fomit-frame-pointer"],
};

/// Builds the program, and gives the pattern of all its probes.
fn make(lab: &Lab) -> (String, String) {
    let program = BUILD.make(lab, "one_place.c", "one_place");
    let program = program.to_str().expect("a path").to_owned();
    (format!("one_place:*@{program}"), program)
}

#[test]
fn probes_at_one_instruction_are_said_to_be_one_place() {
    let lab = Lab::privileged();
    let (events, program) = make(&lab);
    let record = lab.usdtrec(["record", "-o", "trace", "-e", &events, "--", &program, HITS]);
    let record = record.success();
    let said = "is sdt_one_place:a and sdt_one_place:b and sdt_one_place:c and \
                sdt_one_place:d (2 notes with different arguments): each hit is an event of each";
    assert!(record.stderr.contains(said), "{}", record.stderr);
    let report = lab.usdtrec(["report", "-i", "trace", "--format", "json"]);
    let report: Value = serde_json::from_str(&report.success().stdout).expect("JSON");
    let place = report["unusual"].as_array().expect("a list");
    let mut place = place.iter().filter(|one| one["kind"] == "one_instruction");
    let with = ["sdt_one_place:b", "sdt_one_place:c", "sdt_one_place:d"];
    assert_eq!(place.next().expect("said")["with"], serde_json::json!(with));
    let shown = lab.usdtrec(["report", "-i", "trace"]).success().stdout;
    assert!(
        shown.contains("  a is at the same instruction as b and c and d: "),
        "{shown}"
    );
}

/// The note with the most arguments stands for those that begin as it does; others keep theirs.
#[test]
fn notes_of_one_name_keep_their_arguments() {
    let lab = Lab::privileged();
    let (events, program) = make(&lab);
    let record = [
        "record", "-q", "-o", "trace", "-e", &events, "--", &program, HITS,
    ];
    lab.usdtrec(record).success();
    let events = lab.events("trace");
    let of = |name: &str| -> Vec<Vec<i128>> {
        let of_probe = events_named(&events, name).into_iter();
        let values = |event: &Event| {
            (1..=event.argument_count())
                .map(|at| event.integer(at))
                .collect()
        };
        let mut found: Vec<Vec<i128>> = of_probe.map(values).collect();
        found.sort();
        found
    };
    let each = |shown: fn(i128) -> Vec<i128>| (0..25).map(shown).collect::<Vec<_>>();
    assert_eq!(of("a"), each(|number| vec![number]));
    assert_eq!(of("b"), each(|number| vec![100 + number]));
    assert_eq!(of("c"), each(|number| vec![number, 100 + number]));
    let constants = [vec![vec![7]; 25], vec![vec![8]; 25]].concat();
    assert_eq!(of("d"), constants);
}

/// An address where no code is is no frame: all hits have one stack, in traces and counts.
#[test]
fn frame_pointers_that_are_data_lead_to_no_frame() {
    let lab = Lab::privileged();
    let (_, program) = make(&lab);
    let event = format!("one_place:b@{program}");
    let how = [
        "--call-graph",
        "fp",
        "-q",
        "-e",
        &event,
        "--",
        &program,
        HITS,
    ];
    lab.usdtrec(["record", "-o", "trace"].iter().chain(&how))
        .success();
    let groups = lab.usdtrec([
        "report", "-i", "trace", "--sort", "stack", "--format", "csv",
    ]);
    let groups = groups.success().stdout;
    assert_eq!(groups.lines().count(), 2, "{groups}");
    let how = [
        "--by", "stack", "-q", "-e", &event, "--format", "csv", "--", &program, HITS,
    ];
    let counted = lab.usdtrec(["stat"].iter().chain(&how)).success().stdout;
    let rows = counted.lines().filter(|line| line.contains("hit"));
    assert_eq!(rows.count(), 1, "{counted}");
    assert!(!counted.contains("0x1000"), "{counted}");
}
