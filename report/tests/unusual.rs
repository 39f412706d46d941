//! What is unusual in a recording, and that nothing is where all is as ever.

use crate::support::{self, DONE, HIT, Hit, REQUEST, REQUEST_INLINED, Recorded, Recording};
use serde_json::Value;
use usdtrec_analysis::summary::unusual::{Unusual, UnusualKind};
use usdtrec_report::answer::Facts;
use usdtrec_report::question::Question;
use usdtrec_report::report::ReportOptions;
use usdtrec_report::{AnswerQuestions as _, EventSelection, Format};
use usdtrec_testing::test;

/// `request` a thousand times a second for 8 s, save as `how_many` says for a millisecond.
fn recorded(how_many: impl Fn(u64) -> u64) -> Recorded {
    let mut recording = Recording::usual();
    for at in 0..8000 {
        for hit in 0..how_many(at) {
            recording.hit(Hit {
                id: REQUEST,
                time: 5_000_000_000 + at * 1_000_000 + hit,
                ..HIT
            });
        }
        if at % 500 == 0 {
            recording.flush();
        }
    }
    recording.finish()
}

fn text(recorded: &Recorded) -> String {
    recorded.report_as(Format::Text, &[])
}

#[test]
fn bursts_and_pauses_are_reported_with_their_times() {
    let recorded = recorded(|at| match at {
        3000..3250 => 5,
        6000..6500 => 0,
        _ => 1,
    });
    let text = text(&recorded);
    // Slices of 67 ms: the first that is wholly in the burst has all of it.
    let expected = "\nUnusual\n  request did not hit at 6.04s for at least 403ms\n  \
                    request hit at 5.1 times its median rate at 3.02s\n";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("Rate { interval: 200000000 }"), "{text}");
    let answer = recorded.session();
    let answer = answer.answer(&EventSelection::default(), &Question::Summary);
    let Facts::Summary(summary) = answer.unwrap().facts else {
        panic!("expected a summary");
    };
    let [pause, burst] = &summary.unusual[..] else {
        panic!("{:?}", summary.unusual);
    };
    assert!(matches!(pause.what, UnusualKind::Pauses(_)), "{pause:?}");
    let Unusual {
        event,
        what: UnusualKind::Bursts(bursts),
    } = burst
    else {
        panic!("{burst:?}");
    };
    assert_eq!(event, "sdt_app:request");
    assert!(bursts[0].times > 5.0, "{bursts:?}");
    let json: Value = serde_json::from_str(&recorded.report_as(Format::Json, &[])).unwrap();
    let unusual = json["unusual"].as_array().unwrap();
    assert_eq!(unusual.len(), 2, "{unusual:?}");
    let time = |kind: &str, end: &str| {
        let found = unusual.iter().find(|unusual| unusual["kind"] == kind);
        found.unwrap()["times"][0][end].as_u64().unwrap()
    };
    assert!(time("burst", "from_ns").abs_diff(8_000_000_000) < 70_000_000);
    assert!(time("burst", "to_ns").abs_diff(8_250_000_000) < 70_000_000);
    assert!(time("pause", "from_ns").abs_diff(11_000_000_000) < 70_000_000);
    assert!(time("pause", "to_ns").abs_diff(11_500_000_000) < 70_000_000);
}

/// One cause is said once.
#[test]
fn probes_with_the_same_pause_are_in_one_sentence() {
    let mut recording = Recording::usual();
    for at in (0..8000).filter(|at| !(6000..6500).contains(at)) {
        for id in [REQUEST, DONE] {
            recording.hit(Hit {
                id,
                time: 5_000_000_000 + at * 1_000_000 + id,
                ..HIT
            });
        }
    }
    let text = text(&recording.finish());
    let said: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("did not hit"))
        .collect();
    let [line] = said[..] else {
        panic!("{text}");
    };
    assert!(
        line.contains("request") && line.contains("done") && line.contains(" and "),
        "{line}"
    );
    assert!(
        line.ends_with("did not hit at 6.04s for at least 403ms"),
        "{line}"
    );
}

#[test]
fn an_even_pace_is_nothing_unusual() {
    let recorded = recorded(|_| 1);
    let text = text(&recorded);
    assert!(!text.contains("Unusual"), "{text}");
}

#[test]
fn what_is_missing_now_and_then_is_reported() {
    let mut recording = Recording::usual();
    for at in 0..100 {
        // The fourth argument is a register that was not sampled, at the other site a word of memory; the third is never missing.
        recording.hit(Hit {
            id: if at % 10 == 0 {
                REQUEST_INLINED
            } else {
                REQUEST
            },
            time: 5_000_000_000 + at,
            ..HIT
        });
    }
    let recorded = recording.finish();
    let text = text(&recorded);
    // None of its values is known: that is how it was recorded, and nothing unusual.
    assert!(!text.contains("Unusual"), "{text}");
    let options = ReportOptions {
        colours: true,
        hints: support::HINTS,
        trace: Some(String::new()),
        ..ReportOptions::default()
    };
    let coloured = recorded.report(&Question::Summary, &options).unwrap().0;
    assert!(coloured.contains("\u{1b}[1mProbe"), "{coloured}");
    let plain = |text: &str| text.replace("\u{1b}[1m", "").replace("\u{1b}[2m", "");
    assert_eq!(plain(&coloured).replace("\u{1b}[0m", ""), text);
}
