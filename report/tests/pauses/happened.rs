//! What happened, what of it is recorded, and what becomes of it.

use std::collections::HashMap;
use std::path::Path;

use usdtrec_format::trace::{Pause, TimeRange};

use crate::support::{self, DONE, HIT, Hit, INNER, REQUEST, REQUEST_INLINED, Recorded, Recording};

pub(super) const START: u64 = HIT.time;
/// Time from one event to the next, ns.
pub(super) const STEP: u64 = 1000;
pub(super) const EVENTS: u64 = 40_000;
/// A window and a pause together, ns; and what of it is the pause, at the end.
pub(super) const CYCLE: u64 = 1_000_000;
pub(super) const PAUSE: u64 = 800_000;

pub(super) const PROBES: [u64; 3] = [REQUEST, REQUEST_INLINED, DONE];

/// An event as it happened, recorded or not.
#[derive(Clone, Copy)]
pub(super) struct Event {
    pub(super) time: u64,
    pub(super) tid: i32,
    /// The probe that is in no pause; else whether a span begins.
    pub(super) begins: Option<bool>,
}

/// Nested spans of seven threads. The first event of each thread ends a span whose begin is not known.
pub(super) fn happened() -> Vec<Event> {
    let mut random = support::random(3);
    let mut depths: HashMap<i32, u64> = HashMap::new();
    let events = (0..EVENTS).map(|number| {
        let tid = 101 + random(7) as i32;
        let first = !depths.contains_key(&tid);
        let depth = depths.entry(tid).or_default();
        let begins = match random(5) {
            _ if first => Some(false),
            0 => None,
            1 | 2 if *depth > 0 => Some(false),
            _ if *depth > 3 => Some(false),
            _ => Some(true),
        };
        match begins {
            Some(true) => *depth += 1,
            Some(false) => *depth = depth.saturating_sub(1),
            None => {}
        }
        Event {
            time: START + number * STEP,
            tid,
            begins,
        }
    });
    events.collect()
}

/// The pauses of the trace. The last one does not end.
pub(super) fn pauses() -> Vec<TimeRange> {
    let end = START + EVENTS * STEP;
    let pauses = (0..).map(|cycle| {
        // In the middle of two events.
        let first = START + cycle * CYCLE + CYCLE - PAUSE + STEP / 2;
        TimeRange::new(first, first + PAUSE)
    });
    pauses.take_while(|pause| pause.first < end).collect()
}

pub(super) fn paused_at(time: u64) -> bool {
    let is_in = |pause: &TimeRange| pause.first < time && time < pause.last;
    pauses().iter().any(is_in)
}

pub(super) fn end() -> u64 {
    START + EVENTS * STEP
}

/// Whether a pause is between two times.
pub(super) fn apart(from: u64, to: u64) -> bool {
    let is = |pause: &TimeRange| pause.first < to && from < pause.last;
    pauses().iter().any(is)
}

/// A pause as the recorder writes it: when it begins, and when it ends.
pub(super) fn put(recording: &mut Recording, number: u64, pause: TimeRange, ids: &[u64]) {
    let mut record = Pause {
        number,
        ids: ids.to_vec(),
        from_ns: pause.first,
        to_ns: None,
    };
    recording.pause(&record);
    if pause.last <= end() {
        record.to_ns = Some(pause.last);
        recording.pause(&record);
    }
}

pub(super) fn start() -> Recording {
    let mut recording = Recording::with(Path::new("/opt/app"), support::with_inner);
    recording.comm(0, (100, 100), "server", false);
    recording.mmap(0, 100, "/opt/app");
    recording
}

/// What is recorded of the events from one time to another.
pub(super) fn record(from: u64, to: u64, recording: &mut Recording) {
    for (number, event) in happened().into_iter().enumerate() {
        if number % 3000 == 0 {
            recording.flush();
        }
        let is_in = from <= event.time && event.time < to;
        if !is_in || event.begins.is_some() && paused_at(event.time) {
            continue;
        }
        let id = match event.begins {
            Some(true) => [REQUEST, REQUEST_INLINED][number % 2],
            Some(false) => DONE,
            None => INNER,
        };
        recording.hit(Hit {
            id,
            time: event.time,
            tid: event.tid,
            cpu: number as u32 % 4,
            ax: number as u64,
            ..HIT
        });
    }
}

/// All of it in one file.
pub(super) fn whole() -> Recorded {
    let mut recording = start();
    for (number, pause) in pauses().into_iter().enumerate() {
        put(&mut recording, number as u64, pause, &PROBES);
    }
    record(START, end(), &mut recording);
    recording.recorded(START, end());
    recording.finish()
}

/// What becomes of all spans, by a walk over all events.
#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct Truth {
    pub(super) ended: u64,
    pub(super) open: u64,
    pub(super) unmatched: u64,
    pub(super) paused_begins: u64,
    pub(super) paused_ends: u64,
    pub(super) sum_ns: u64,
    pub(super) begins: u64,
    pub(super) ends: u64,
    pub(super) unrecorded_begins: u64,
    pub(super) unrecorded_ends: u64,
    /// By the time of the end.
    pub(super) durations: HashMap<u64, u64>,
}

pub(super) fn truth() -> Truth {
    let mut truth = Truth::default();
    let mut stacks: HashMap<i32, Vec<u64>> = HashMap::new();
    let paused_after = |time| apart(time, u64::MAX);
    let paused_before = |time: u64| pauses().iter().any(|pause| pause.first < time);
    for event in happened() {
        let is_recorded = !paused_at(event.time);
        let stack = stacks.entry(event.tid).or_default();
        match event.begins {
            None => {}
            Some(true) => {
                truth.begins += 1;
                truth.unrecorded_begins += u64::from(!is_recorded);
                stack.push(event.time);
            }
            Some(false) => {
                truth.ends += 1;
                truth.unrecorded_ends += u64::from(!is_recorded);
                let begin = stack.pop();
                let whole = begin.filter(|&begin| !apart(begin, event.time));
                if let Some(begin) = whole {
                    truth.ended += 1;
                    truth.sum_ns += event.time - begin;
                    truth.durations.insert(event.time, event.time - begin);
                    continue;
                }
                truth.paused_begins += u64::from(begin.is_some_and(|begin| !paused_at(begin)));
                match paused_before(event.time) {
                    true => truth.paused_ends += u64::from(is_recorded),
                    false => truth.unmatched += 1,
                }
            }
        }
    }
    for begin in stacks
        .into_values()
        .flatten()
        .filter(|&begin| !paused_at(begin))
    {
        match paused_after(begin) {
            true => truth.paused_begins += 1,
            false => truth.open += 1,
        }
    }
    truth
}

/// Five times as many, as the pauses begin after half a step.
pub(super) fn estimate(count: u64) -> u64 {
    let all = EVENTS * STEP;
    let in_pauses: u64 = pauses()
        .iter()
        .map(|pause| pause.last.min(end()) - pause.first)
        .sum();
    let recorded = all - in_pauses;
    (count * all + recorded / 2) / recorded
}
