//! Digests of process records: with them, without them and with damaged ones the same is shown.

use std::fs;

use crate::support::{DONE, HIT, Hit, Recorded, Recording};
use usdtrec_report::Format;
use usdtrec_report::{EventSelection, Sources, TimeSpan, TraceSession};
use usdtrec_testing::test;

/// Every flush renames the thread, so that a record that is missed or out of order shows.
fn recording(flushes: u64) -> Recording {
    let mut recording = Recording::usual();
    for flush in 0..flushes {
        let time = HIT.time + 1000 * flush;
        recording.comm(time, (100, 101), &format!("name{flush}"), false);
        recording.hit(Hit {
            id: DONE,
            time: time + 1,
            ..HIT
        });
        recording.flush();
    }
    recording
}

fn names(recorded: &Recorded, selection: &EventSelection) -> Vec<String> {
    let lines = recorded.json(selection).into_iter();
    lines
        .map(|line| line["comm"].as_str().unwrap().to_owned())
        .collect()
}

fn csv(session: &TraceSession, selection: &EventSelection) -> String {
    let options = usdtrec_report::script::ScriptOptions {
        format: Format::Csv,
        ..Default::default()
    };
    let mut out = Vec::new();
    usdtrec_report::script::print(session, selection, &options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn expected(numbers: std::ops::Range<u64>) -> Vec<String> {
    numbers.map(|number| format!("name{number}")).collect()
}

#[test]
fn many_flushes_have_digests_and_few_have_none() {
    assert_eq!(recording(100).finish().session().trace().digests(), []);
    for recorded in [recording(1000).finish(), recording(1000).kill()] {
        let digests = recorded.session().trace().digests().len();
        assert!((6..10).contains(&digests), "{digests}");
        assert_eq!(
            names(&recorded, &EventSelection::default()),
            expected(0..1000)
        );
        assert!(recorded.session().damage().is_empty());
    }
}

#[test]
fn a_slice_needs_none_of_what_came_later() {
    let recorded = recording(1000).finish();
    for from in [0, 120, 500, 999] {
        let second = |number: u64| {
            let time = HIT.time + 1000 * number;
            format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000)
        };
        let span: TimeSpan = format!("{},{}", second(from), second(from + 1))
            .parse()
            .unwrap();
        let selection = EventSelection {
            time: Some(span.clone()),
            ..EventSelection::default()
        };
        let sources = Sources {
            time: Some(span),
            ..Sources::default()
        };
        let session = TraceSession::open(&recorded.path, &sources).unwrap();
        let out = csv(&session, &selection);
        assert!(out.contains(&format!("name{from},")), "{out}");
        assert_eq!(out.lines().count(), 2);
    }
}

/// Blocks outside the selected time are not even listed, and no output shows it.
#[test]
fn a_session_of_a_span_shows_that_span() {
    let finished = recording(1000).finish();
    let killed = recording(1000).kill();
    for recorded in [finished, killed] {
        let whole = recorded.session();
        for span in [
            "10%-20%",
            "0%-0.1%",
            "99.9%-100%",
            "0%-100%",
            ",0.5",
            "9999,",
        ] {
            let span: TimeSpan = span.parse().unwrap();
            let selection = EventSelection {
                time: Some(span.clone()),
                ..EventSelection::default()
            };
            let sources = Sources {
                time: Some(span.clone()),
                ..Sources::default()
            };
            let part = TraceSession::open(&recorded.path, &sources).unwrap();
            assert_eq!(part.time(), whole.time(), "{span:?}");
            assert_eq!(csv(&part, &selection), csv(&whole, &selection), "{span:?}");
        }
    }
}

#[test]
fn a_damaged_digest_costs_nothing() {
    let recorded = recording(1000).finish();
    let whole = fs::read(&recorded.path).unwrap();
    let magic: Vec<usize> = whole
        .windows(8)
        .enumerate()
        .filter(|(_, window)| *window == b"USDTDGST")
        .map(|(at, _)| at)
        .collect();
    let digests = recorded.session().trace().digests().len();
    assert_eq!(magic.len(), digests);
    for (number, at) in magic.into_iter().enumerate() {
        // The magic, the place of the one before, and the compressed records.
        for (offset, left) in [(0, digests - 1 - number), (60, digests)] {
            let mut bytes = whole.clone();
            bytes[at + offset] ^= 0xff;
            fs::write(&recorded.path, bytes).unwrap();
            assert_eq!(recorded.session().trace().digests().len(), left);
            assert_eq!(
                names(&recorded, &EventSelection::default()),
                expected(0..1000)
            );
        }
    }
}
