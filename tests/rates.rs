//! Rates: one recording has one, whatever shows it.

use serde_json::Value;

use crate::common::{Build, Lab, test};

const BUILD: Build = Build {
    compiler: "gcc",
    options: &["-O2", "-mno-red-zone"],
};

/// The objects that a report prints.
fn report(lab: &Lab, options: &[&str]) -> Vec<Value> {
    let report = ["report", "-i", "trace", "--format", "json"];
    let report = lab.usdtrec([&report[..], options].concat()).success();
    let lines = report.stdout.lines();
    lines
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

/// Intervals have the length in which probes were attached in them, also the last one: together, that of the recording.
#[test]
fn intervals_are_as_long_as_they_were_recorded() {
    let lab = Lab::privileged();
    let program = BUILD.make(&lab, "one_place.c", "one_place");
    let program = program.to_str().expect("a path");
    let event = format!("one_place:[ad]@{program}");
    let run = ["record", "-q", "-o", "trace", "-e", &event, "--"];
    let shell = format!("{program} 40; sleep 0.3; {program} 25; sleep 0.1");
    lab.usdtrec([&run[..], &["sh", "-c", &shell]].concat())
        .success();
    let summary = report(&lab, &[]).remove(0);
    let number = |of: &Value| of.as_u64().expect("a number");
    let length = number(&summary["end_ns"]) - number(&summary["begin_ns"]);
    for interval in ["100ms", "70ms", "1h"] {
        let series = report(&lab, &["--rate", interval]);
        let probes = summary["probes"].as_array().expect("a list");
        assert_eq!((series.len(), probes.len()), (2, 2));
        for probe in probes {
            let mut of_probe = series.iter().filter(|one| one["event"] == probe["event"]);
            let series = of_probe.next().expect("a series");
            let sum = |of: &str| {
                series[of]
                    .as_array()
                    .expect("a list")
                    .iter()
                    .map(number)
                    .sum::<u64>()
            };
            assert_eq!(sum("counts"), number(&probe["count"]), "{interval}");
            // The moment of the last event is in the time.
            assert_eq!(sum("recorded_ns"), length + 1, "{interval}");
            let mean = number(&probe["count"]) as f64 * 1e9 / length as f64;
            let shown = probe["per_second"].as_f64().expect("a rate");
            assert!((mean - shown).abs() <= mean * 1e-9, "{mean} {shown}");
        }
    }
}

/// The time before the end is before the end of the recording, not before its last event.
#[test]
fn the_time_before_the_end_is_that_of_the_recording() {
    let lab = Lab::privileged();
    let program = BUILD.make(&lab, "one_place.c", "one_place");
    let program = program.to_str().expect("a path");
    let event = format!("one_place:[ad]@{program}");
    let run = ["record", "-q", "-o", "trace", "-e", &event, "--"];
    let shell = format!("{program} 40; sleep 0.3");
    lab.usdtrec([&run[..], &["sh", "-c", &shell]].concat())
        .success();
    let all = report(&lab, &[]).remove(0);
    assert!(all["events"].as_u64() > Some(0));
    let last = report(&lab, &["--time", "-200ms"]).remove(0);
    assert_eq!(last["events"], 0);
    assert_eq!(last["end_ns"], all["end_ns"]);
}
