//! The order of samples, through a whole trace file, against a plain sort.

use crate::support::{HIT, Hit, Recorded, Recording};
use usdtrec_report::script::{ScriptOptions, TimeOrigin};
use usdtrec_report::{EventSelection, HintWords, script::FieldChoice};
use usdtrec_report::{Format, Sentences};
use usdtrec_testing::SplitMix64;
use usdtrec_testing::test;

/// Writes samples, one list a flush, each numbered by its place in the file; what is shown must be sorted by time
/// and, where times are equal, by place.
#[track_caller]
fn check(rounds: &[Vec<u64>]) {
    check_flushed(rounds, Recording::flush);
}

#[track_caller]
fn check_flushed(rounds: &[Vec<u64>], flush: impl Fn(&mut Recording)) {
    let mut recording = Recording::usual();
    let mut expected = Vec::new();
    for times in rounds {
        for &time in times {
            let place = expected.len() as u64;
            expected.push((time, place));
            recording.hit(Hit {
                time,
                ax: place,
                ..HIT
            });
        }
        flush(&mut recording);
    }
    expected.sort_unstable();
    let recorded = recording.finish();
    assert!(
        shown(&recorded, TimeOrigin::Previous, &expected, |at| at
            .saturating_sub(1)),
        "samples are in disorder, or not counted from the one before"
    );
    assert!(
        shown(&recorded, TimeOrigin::First, &expected, |_| 0),
        "samples are not counted from the first one"
    );
}

/// Whether times and places are shown as expected, and with them the time since the sample whose index `from` says.
fn shown(
    recorded: &Recorded,
    times: TimeOrigin,
    expected: &[(u64, u64)],
    from: impl Fn(usize) -> usize,
) -> bool {
    let options = ScriptOptions {
        fields: "time,args".parse::<FieldChoice>().unwrap(),
        format: Format::Csv,
        times,
        ..ScriptOptions::default()
    };
    let (text, notices) = recorded.script(&EventSelection::default(), &options);
    assert!(
        notices.sentences(HintWords::default()).is_empty(),
        "{notices:?}"
    );
    let lines = text.lines().skip(1).map(|line| {
        let mut fields = line.split(',').map(|field| field.parse::<u64>().unwrap());
        [(); 3].map(|()| fields.next().unwrap())
    });
    let since = |at: usize| expected[at].0 - expected[from(at)].0;
    let expected = expected.iter().enumerate();
    lines.eq(expected.map(|(at, &(time, place))| [time, since(at), place]))
}

#[test]
fn rings_drained_one_after_the_other() {
    let mut numbers = SplitMix64(1);
    let rounds: Vec<Vec<u64>> = (0..40)
        .map(|round| {
            let rings = (0..4).map(|_| {
                let mut ring: Vec<u64> = (0..1500)
                    .map(|_| round * 1000 + 1 + numbers.below(1000))
                    .collect();
                ring.sort_unstable();
                ring
            });
            rings.flatten().collect()
        })
        .collect();
    check(&rounds);
}

#[test]
fn rounds_that_overlap_far_and_backwards() {
    let mut numbers = SplitMix64(2);
    let rounds: Vec<Vec<u64>> = (0..60)
        .map(|_| {
            let start = 1 + numbers.below(50_000);
            let width = 1 + numbers.below(30_000);
            (0..1 + numbers.below(2000))
                .map(|_| start + numbers.below(width))
                .collect()
        })
        .collect();
    check(&rounds);
}

#[test]
fn one_time_for_all() {
    check(&vec![vec![7; 3000]; 20]);
}

#[test]
fn the_earliest_last() {
    let mut rounds: Vec<Vec<u64>> = (1..30)
        .rev()
        .map(|at| (at * 100..at * 100 + 250).collect())
        .collect();
    rounds.push(vec![1, 2, 3]);
    check(&rounds);
}

/// A pass over rings of which each holds all of the time, written in parts: the last part is as early as the first.
#[test]
fn parts_of_one_pass() {
    let mut numbers = SplitMix64(3);
    let parts: Vec<Vec<u64>> = (0..8)
        .flat_map(|_| {
            let mut ring: Vec<u64> = (0..6000).map(|_| 1 + numbers.below(20_000)).collect();
            ring.sort_unstable();
            ring.chunks(1000).map(<[u64]>::to_vec).collect::<Vec<_>>()
        })
        .collect();
    check_flushed(&parts, Recording::flush_part);
}
