//! What is asked of triggers, and when they write files: how long after, and how many.

use std::time::Duration;

use usdtrec_format::Pattern;
use usdtrec_format::expr::Expr;
use usdtrec_format::trace::{FiredTrigger, TriggerKind};

/// What fires less often than it could.
#[derive(Debug)]
pub(crate) struct TriggerPace {
    after: u64,
    cooldown: u64,
    due: Option<DueTrigger>,
    /// When a trigger last had a file written, ns of the trace's clock.
    last: Option<u64>,
    /// Triggers since then that had none.
    more: u64,
    /// All triggers that had none.
    without_file: u64,
}

/// A trigger for which a file is to be written, or the recording to be ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DueTrigger {
    /// What fired.
    pub(crate) fired: FiredTrigger,
    /// Whether the recording ends.
    pub(crate) ends: bool,
    /// Up to when it is to have all hits, ns of the trace's clock.
    pub(crate) due: u64,
}

impl TriggerPace {
    pub(crate) fn new(after: Duration, cooldown: Duration) -> Self {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self {
            after: ns(after),
            cooldown: ns(cooldown),
            due: None,
            last: None,
            more: 0,
            without_file: 0,
        }
    }

    /// Something fires. One that waits has the file of both; one that ends the recording comes first.
    pub(crate) fn fire(&mut self, fired: FiredTrigger, ends: bool) {
        let is_asked = matches!(fired.kind, TriggerKind::Signal | TriggerKind::Request);
        let is_early = |last: u64| fired.time_ns < last.saturating_add(self.cooldown);
        let waits = self.due.as_ref().is_some_and(|due| due.ends || !ends);
        if waits || !is_asked && !ends && self.last.is_some_and(is_early) {
            self.note_more(1);
            return;
        }
        self.note_more(self.due.is_some().into());
        self.due = Some(DueTrigger {
            due: fired.time_ns.saturating_add(self.after),
            fired,
            ends,
        });
    }

    /// Notes triggers that have no file of their own.
    pub(crate) const fn note_more(&mut self, number: u64) {
        self.more += number;
        self.without_file += number;
    }

    /// Number of triggers so far that have no file of their own.
    pub(crate) const fn without_file(&self) -> u64 {
        self.without_file
    }

    /// How long until one is due, ns; `None` if none waits.
    pub(crate) fn remaining(&self, now: u64) -> Option<u64> {
        self.due.as_ref().map(|due| due.due.saturating_sub(now))
    }

    /// Whether one waits that ends the recording.
    pub(crate) fn is_ending(&self) -> bool {
        self.due.as_ref().is_some_and(|due| due.ends)
    }

    /// The one that is due at a time, if all hits up to then have been read.
    pub(crate) fn take(&mut self, read: u64) -> Option<DueTrigger> {
        let mut taken = self.due.take_if(|due| due.due <= read)?;
        self.last = Some(taken.fired.time_ns);
        taken.fired.more = std::mem::take(&mut self.more);
        Some(taken)
    }
}

/// What hits have a recording write a file, or end.
#[derive(Clone, Debug)]
pub struct Trigger {
    /// As the user wrote it.
    pub text: String,
    /// What fires.
    pub subject: TriggerSubject,
    /// Whether the recording ends then.
    pub ends: bool,
}

/// What fires.
#[derive(Clone, Debug)]
pub enum TriggerSubject {
    /// A hit of a probe.
    Hit {
        /// The recorded probes.
        pattern: Box<Pattern>,
        /// For which hits; `None` for all.
        filter: Option<Expr>,
    },
    /// The end of a span.
    Span {
        /// `START..DONE`, or a name that is found by the names of probes, with globs.
        span: String,
        /// Duration of the shortest that fires, ns.
        least: u64,
    },
}

/// When files are written.
#[derive(Clone, Debug, Default)]
pub struct TriggerOptions {
    /// The triggers.
    pub triggers: Vec<Trigger>,
    /// How long recording continues before the file is written, or before the end.
    pub after: Duration,
    /// How long a trigger writes no file after one has. Signals and requests do.
    pub cooldown: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn fired(kind: TriggerKind, time_ns: u64) -> FiredTrigger {
        FiredTrigger {
            kind,
            time_ns,
            ..FiredTrigger::default()
        }
    }

    #[test]
    fn a_file_is_written_after_a_time_and_has_what_fires_meanwhile() {
        let mut pace = TriggerPace::new(Duration::from_secs(1), Duration::ZERO);
        assert_eq!(pace.remaining(0), None);
        pace.fire(fired(TriggerKind::Probe, 10 * SECOND), false);
        pace.fire(fired(TriggerKind::Request, 10 * SECOND + 5), false);
        assert_eq!(pace.remaining(10 * SECOND), Some(SECOND));
        assert_eq!(pace.take(11 * SECOND - 1), None);
        let due = pace.take(11 * SECOND).expect("one is due");
        assert_eq!((due.fired.time_ns, due.fired.more), (10 * SECOND, 1));
        assert_eq!(pace.take(20 * SECOND), None);
    }

    #[test]
    fn hits_wait_for_the_cooldown_and_requests_do_not() {
        let mut pace = TriggerPace::new(Duration::ZERO, Duration::from_secs(30));
        pace.fire(fired(TriggerKind::Span, SECOND), false);
        assert!(pace.take(SECOND).is_some());
        pace.fire(fired(TriggerKind::Span, 2 * SECOND), false);
        assert_eq!(pace.take(3 * SECOND), None);
        pace.fire(fired(TriggerKind::Signal, 4 * SECOND), false);
        let due = pace.take(4 * SECOND).expect("one is due");
        assert_eq!(due.fired.more, 1);
        pace.fire(fired(TriggerKind::Probe, 33 * SECOND), false);
        assert_eq!(pace.take(33 * SECOND), None);
        pace.fire(fired(TriggerKind::Probe, 34 * SECOND), false);
        assert!(pace.take(34 * SECOND).is_some());
    }

    #[test]
    fn what_ends_the_recording_comes_first() {
        let mut pace = TriggerPace::new(Duration::from_secs(1), Duration::from_secs(9));
        pace.fire(fired(TriggerKind::Probe, SECOND), false);
        assert!(!pace.is_ending());
        pace.fire(fired(TriggerKind::Probe, 2 * SECOND), true);
        pace.fire(fired(TriggerKind::Request, 2 * SECOND), false);
        assert!(pace.is_ending());
        let due = pace.take(3 * SECOND).expect("one is due");
        assert!(due.ends);
        assert_eq!((due.fired.more, pace.without_file()), (2, 2));
    }
}
