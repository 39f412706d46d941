//! Extreme numbers in `script`, heat maps, rows and `diff`, beside what was recorded.

use serde_json::Value;
use usdtrec_report::diff::{self, DiffOptions};
use usdtrec_report::question::{Question, Subject};
use usdtrec_report::rows::{RowQuestion, RowReader, RowValue, TraceRow};
use usdtrec_report::{EventSelection, Format};
use usdtrec_testing::{repetitions, test};

use crate::exact_numbers::{Number, Row, lines, numbers, recording, rows};
use crate::support::Recorded;

/// Asserts that texts are the numbers of a row.
#[track_caller]
fn is_row(row: &Row, text: impl Fn(&str) -> String) {
    assert_eq!(text("unsigned").parse(), Ok(row.unsigned));
    assert_eq!(text("signed").parse(), Ok(row.signed));
    let (shown, float) = (text("float"), f64::from_bits(row.float));
    let read: f64 = shown.parse().unwrap();
    let is_it = read.to_bits() == float.to_bits() || read.is_nan() && float.is_nan();
    assert!(is_it, "{shown} {float:?}");
}

#[test]
fn script_has_every_number_exactly() {
    for seed in 0..repetitions("USDTREC_NUMBER_ROUNDS", 10) {
        let rows = rows(5000 + seed, true);
        let recorded = recording(&rows);
        let json = recorded.script_as(Format::Json);
        let csv = recorded.script_as(Format::Csv);
        let text = recorded.script_as(Format::Text);
        let heading: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
        let all = rows
            .iter()
            .zip(json.lines())
            .zip(lines(&csv))
            .zip(text.lines());
        let all: Vec<_> = all.collect();
        assert_eq!(all.len(), rows.len());
        for (((row, json), csv), text) in all {
            is_row(row, |name| {
                let (_, rest) = json.split_once(&format!("\"{name}\":")).unwrap();
                let number = rest.split([',', '}']).next().unwrap();
                number.trim_matches('"').to_owned()
            });
            is_row(row, |name| {
                let at = heading.iter().position(|column| *column == name);
                csv[at.unwrap()].to_owned()
            });
            is_row(row, |name| {
                let (_, rest) = text.split_once(&format!(" {name}=")).unwrap();
                rest.split(' ').next().unwrap().to_owned()
            });
            serde_json::from_str::<Value>(json).unwrap();
        }
    }
}

/// What other programs get of an export.
#[test]
fn rows_have_every_number_exactly() {
    for seed in 0..repetitions("USDTREC_NUMBER_ROUNDS", 10) {
        let rows = rows(6000 + seed, true);
        let session = recording(&rows).session();
        let question = RowQuestion::default();
        let reader = RowReader::new(&session, &EventSelection::default(), &question).unwrap();
        let mut read = rows.iter();
        let notices = reader.read(|row| {
            if let TraceRow::Event(event) = row {
                is_row(read.next().unwrap(), |name| {
                    match event.argument(name).unwrap().value() {
                        RowValue::Unsigned(number) => number.to_string(),
                        RowValue::Signed(number) => number.to_string(),
                        RowValue::Float64(number) => number.to_string(),
                        other => panic!("{other:?}"),
                    }
                });
            }
            std::ops::ControlFlow::Continue(())
        });
        notices.unwrap();
        assert_eq!(read.len(), 0);
    }
}

#[test]
fn every_number_is_in_the_row_of_the_heat_map_that_has_it() {
    for seed in 0..repetitions("USDTREC_NUMBER_ROUNDS", 10) {
        let rows = rows(7000 + seed, true);
        let recorded = recording(&rows);
        for (name, numbers) in numbers(&rows) {
            let map = Question::Heatmap(Subject::Argument(name.to_owned()));
            let csv = recorded.same_answer(&map, Format::Csv);
            let mut counts: Vec<(String, u64)> = Vec::new();
            for fields in lines(&csv) {
                let [_, _, from, to, count] = *fields else {
                    panic!("{fields:?}");
                };
                let (bucket, count) = (format!("{from},{to}"), count.parse::<u64>().unwrap());
                match counts.iter_mut().find(|(known, _)| *known == bucket) {
                    Some((_, sum)) => *sum += count,
                    None => counts.push((bucket, count)),
                }
            }
            let mut all = 0;
            for (bucket, count) in counts {
                let (from, to) = bucket.split_once(',').unwrap();
                let bound = |text| Number::parse(text, name == "float");
                let (from, is_last) = (bound(from), to.is_empty());
                let is_in =
                    |number: &&Number| **number >= from && (is_last || **number < bound(to));
                let expected = numbers.iter().filter(is_in).count() as u64;
                assert_eq!(count, expected, "{name} {bucket} {csv}");
                all += expected;
            }
            // NaN is in no row.
            let there = numbers
                .iter()
                .filter(|number| number.partial_cmp(number).is_some());
            assert_eq!(all, there.count() as u64, "{name} {csv}");
            let json = recorded.same_answer(&map, Format::Json);
            json.lines()
                .for_each(|line| drop(serde_json::from_str::<Value>(line).unwrap()));
        }
    }
}

fn compared(a: &Recorded, b: &Recorded) -> Value {
    let options = |format| DiffOptions {
        format,
        ..DiffOptions::default()
    };
    let print = |format| {
        let mut out = Vec::new();
        let (a, b) = (a.session(), b.session());
        diff::print(
            &a,
            &b,
            &EventSelection::default(),
            &options(format),
            &mut out,
        )
        .unwrap();
        String::from_utf8(out).unwrap()
    };
    let text = print(Format::Text);
    assert!(!text.contains("NaN"), "{text}");
    serde_json::from_str(&print(Format::Json)).unwrap()
}

#[test]
fn extreme_numbers_do_not_differ_from_themselves() {
    for seed in 0..repetitions("USDTREC_NUMBER_ROUNDS", 10) {
        let a = recording(&rows(8000 + seed, true));
        let same = compared(&a, &a);
        for figure in same["figures"].as_array().unwrap() {
            assert_ne!(figure["verdict"], "beyond", "{figure}");
            assert_eq!(figure["a"], figure["b"], "{figure}");
        }
        // Others are compared without a fault, and what is shown of each is what it has.
        let b = recording(&rows(9000 + seed, true));
        for figure in compared(&a, &b)["figures"].as_array().unwrap() {
            assert!(!figure["a"].is_null() && !figure["b"].is_null(), "{figure}");
        }
    }
}
