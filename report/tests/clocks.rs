//! Times of day by the readings of the clocks in a trace.

use std::path::Path;

use serde_json::Value;
use usdtrec_format::trace::{ClockReading, WallQuality};
use usdtrec_report::script::{ScriptOptions, TimeOrigin};
use usdtrec_report::{EventSelection, Format};
use usdtrec_testing::test;

use crate::support::{HIT, Hit, Recorded, Recording};

/// Wall clock at time 0 of the first host.
const DAY: u64 = 1_795_000_000_000_000_000;
const SECOND: u64 = 1_000_000_000;

fn reading(clock_ns: u64, wall_ns: u64, error_ns: u32) -> ClockReading {
    ClockReading {
        clock_ns,
        wall_ns,
        error_ns,
        wall_quality: Some(WallQuality {
            is_synchronized: true,
            estimated_us: 250,
            maximum_us: 16_000,
        }),
    }
}

fn recorded(readings: &[ClockReading], times: &[u64]) -> Recorded {
    let mut recording = Recording::with(Path::new("/opt/app"), |_| {});
    recording.comm(0, (100, 101), "worker", false);
    let (begin, rest) = readings.split_at(1);
    recording.clocks(begin);
    for &time in times {
        recording.hit(Hit { time, ..HIT });
        recording.flush();
    }
    recording.clocks(rest);
    recording.finish()
}

/// The time of day of each event, ns since 1970.
fn wall(recorded: &Recorded) -> Vec<i128> {
    let options = ScriptOptions {
        fields: "+tod".parse().unwrap(),
        times: TimeOrigin::Clock,
        format: Format::Json,
        ..ScriptOptions::default()
    };
    let (lines, _) = recorded.script(&EventSelection::default(), &options);
    let tod = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        let time: jiff::Timestamp = line["tod"].as_str().unwrap().parse().unwrap();
        time.as_nanosecond()
    };
    lines.lines().map(tod).collect()
}

fn clock(recorded: &Recorded) -> Value {
    let answer: Value = serde_json::from_str(&recorded.report_as(Format::Json, &[])).unwrap();
    answer["clock"].clone()
}

/// Two hosts whose clocks began at different times record the same moments. Their readings have errors; the times of day of a moment differ
/// by at most the errors that both traces state.
#[test]
fn two_hosts_agree_within_the_stated_error() {
    let moments = [3, 30, 59, 90].map(|second| second * SECOND);
    let ahead = 1000 * SECOND;
    let first = [
        reading(0, DAY + 40, 50),
        reading(60 * SECOND, DAY + 60 * SECOND - 45, 50),
        reading(100 * SECOND, DAY + 100 * SECOND + 5, 10),
    ];
    let second = [
        reading(ahead, DAY - 80, 90),
        reading(ahead + 50 * SECOND, DAY + 50 * SECOND + 80, 90),
    ];
    let here = recorded(&first, &moments);
    let there = recorded(&second, &moments.map(|moment| ahead + moment));
    let stated = [&here, &there].map(|trace| clock(trace)["error_ns"].as_u64().unwrap());
    assert_eq!(stated, [50, 90]);
    let pairs = wall(&here).into_iter().zip(wall(&there));
    for (moment, (here, there)) in moments.into_iter().zip(pairs) {
        let true_wall = i128::from(DAY + moment);
        assert!(here.abs_diff(true_wall) <= 50, "{here} at {moment}");
        assert!(there.abs_diff(true_wall) <= 90, "{there} at {moment}");
    }
}

#[test]
fn a_step_in_the_middle_is_right_on_both_sides() {
    let hour = 3600 * SECOND;
    let readings = [
        reading(0, DAY, 20),
        reading(40 * SECOND, DAY + 40 * SECOND, 20),
        reading(40 * SECOND + 100, DAY + hour + 40 * SECOND + 100, 20),
        reading(80 * SECOND, DAY + hour + 80 * SECOND, 20),
    ];
    let recorded = recorded(&readings, &[39 * SECOND, 41 * SECOND]);
    let expected = [DAY + 39 * SECOND, DAY + hour + 41 * SECOND];
    assert_eq!(wall(&recorded), expected.map(i128::from));
    let facts = clock(&recorded);
    assert_eq!(facts["readings"], 4);
    assert_eq!(facts["steps"][0]["by_ns"], hour);
    assert_eq!(facts["steps"][0]["from_ns"], 40 * SECOND);
    assert_eq!(facts["utc_error_ns"], 250_000);
    let text = recorded.report_as(Format::Text, &[]);
    assert!(text.contains("the wall clock was set once"), "{text}");
}

/// The error to UTC is what the host states, and unknown if nothing synchronizes its clock.
#[test]
fn an_unsynchronized_clock_has_no_known_error_to_utc() {
    let mut free = reading(0, DAY, 20);
    free.wall_quality = Some(WallQuality {
        is_synchronized: false,
        estimated_us: 16_000_000,
        maximum_us: 16_000_000,
    });
    let mut silent = free;
    silent.wall_quality = None;
    let facts = clock(&recorded(&[free], &[SECOND]));
    assert_eq!(facts["synchronized"], false);
    assert_eq!(facts["utc_error_ns"], Value::Null);
    let facts = clock(&recorded(&[silent], &[SECOND]));
    assert_eq!(facts["synchronized"], Value::Null);
    assert_eq!(facts["readings"], 1);
}
