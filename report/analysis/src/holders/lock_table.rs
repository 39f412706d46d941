//! All locks, while hits are taken in the order of time.

use std::sync::Arc;

use foldhash::HashMap;
use usdtrec_format::schema::LockAction;
use usdtrec_format::{Missing, Value};
use usdtrec_trace::added::added_argument::{AddedPart, AddedPlace, AddedValues};
use usdtrec_trace::added::hit_step::{LockStep, StepPlace};
use usdtrec_trace::session::TraceSession;

use crate::holders::one_lock::{HoldKind, Holder, MetHolder, OneLock, Waiter};
use crate::holders::{CANDIDATE, HOLDER};
use crate::spans::pair_pauses::PairPauses;

/// Locks that are held or waited for at once at most; then all are forgotten.
const MAX_LOCKS: usize = 1 << 18;

/// The pair that stands for the probes of all locks.
pub(crate) const ALL_LOCKS: u32 = 0;

/// The arguments of a part: its own, then those of the spans that the holder was in.
pub(crate) const OWN: [(&str, &str); 5] = [
    (
        "comm",
        "name of the thread that held the lock the longest while this one waited",
    ),
    ("tid", "that thread"),
    ("blocked", "how long it held the lock meanwhile"),
    ("held", "how long it held the lock, then or so far"),
    ("others", "number of further threads that held it meanwhile"),
];

/// All locks that are held or waited for.
#[derive(Debug, Default)]
pub(crate) struct LockTable {
    locks: HashMap<LockKey, OneLock>,
    /// When a probe of a lock was detached. In a pause, all locks are forgotten: who acquires and releases them is not known.
    pauses: PairPauses,
    /// Time of the latest hit, ns.
    latest: u64,
}

/// Which lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct LockKey {
    provider: u64,
    /// The process; 0 for a group of locks, which is of all processes.
    pid: i32,
    key: [u64; 2],
}

/// What the hit that ends a wait gets.
pub(crate) struct HolderPart {
    pub(crate) part: usize,
    pub(crate) values: AddedPart,
}

impl LockTable {
    /// Without locks.
    pub(crate) fn new(pauses: PairPauses) -> Self {
        Self {
            pauses,
            ..Self::default()
        }
    }

    /// Takes pauses of a stream that have become known.
    pub(crate) fn renew_pauses(&mut self, session: &TraceSession) {
        self.pauses.renew(session);
    }

    /// Takes what a hit does with a lock; `values` are those of the spans that it is in. Returns who held the lock, if it ends a wait.
    pub(crate) fn take(
        &mut self,
        place: StepPlace,
        step: LockStep,
        values: Option<&Arc<AddedValues>>,
    ) -> Option<HolderPart> {
        let StepPlace { pid, tid, time, .. } = place;
        let key = LockKey {
            provider: step.provider,
            pid: if step.group { 0 } else { pid },
            key: step.key,
        };
        if self.locks.len() >= MAX_LOCKS || self.is_after_pause(time) {
            self.locks.clear();
        }
        let lock = self.locks.entry(key).or_default();
        let holder = Holder {
            tid,
            comm: step.comm,
            values: values.cloned(),
        };
        let mut waiter = None;
        match step.action {
            LockAction::Waits => lock.wait(tid, time),
            LockAction::Waited => waiter = lock.waited(tid, time),
            LockAction::Releases => lock.release(holder, time),
            LockAction::Acquires if step.group => {
                lock.acquire(holder, time, HoldKind::OfGroup);
            }
            LockAction::Acquires => {
                let kind = match (step.contended, step.shared) {
                    (true, _) => HoldKind::Contended,
                    (false, true) => HoldKind::Shared,
                    (false, false) => HoldKind::Exclusive,
                };
                lock.acquire(holder, time, kind);
                waiter = lock.waited(tid, time);
            }
        }
        if lock.is_idle() {
            self.locks.remove(&key);
        }
        let of_spans = step.of_spans.as_deref().unwrap_or_default();
        let values = match values_of_holder(&waiter?, of_spans) {
            Some(values) => values,
            // Somebody held it: there was a wait.
            None if step.contended => {
                let unknown = Value::Missing(Missing::Holder);
                vec![unknown; OWN.len() + of_spans.len()].into()
            }
            None => return None,
        };
        Some(HolderPart {
            part: if step.group { CANDIDATE } else { HOLDER },
            values: AddedPart::Known(values),
        })
    }
}

impl LockTable {
    /// Whether a pause is between the hit before and one at this time.
    fn is_after_pause(&mut self, time: u64) -> bool {
        let latest = std::mem::replace(&mut self.latest, time);
        self.pauses.between(ALL_LOCKS, latest, time).is_some()
    }
}

/// The values of the thread that held a lock the longest, `of_spans` those of the spans that it was in; `None` if none did.
fn values_of_holder(waiter: &Waiter, of_spans: &[AddedPlace]) -> Option<Arc<[Value]>> {
    let (met, others) = waiter.longest()?;
    let MetHolder {
        holder,
        blocked,
        held,
        ..
    } = met;
    let own = [
        holder.comm.clone(),
        Value::Signed(holder.tid.into()),
        Value::Unsigned(*blocked),
        held.map_or(Value::Missing(Missing::Begin), Value::Unsigned),
        Value::Unsigned(others.into()),
    ];
    let absent = Value::Missing(Missing::Absent);
    let of_spans = of_spans.iter().map(|place| {
        let values = holder.values.as_ref();
        values.map_or(absent.clone(), |values| values.value(*place))
    });
    Some(own.into_iter().chain(of_spans).collect())
}

#[cfg(test)]
mod tests {
    use usdtrec_trace::process::comm::ProcessNumber;

    use super::*;

    /// What a hit of a thread does with the one lock.
    fn take(locks: &mut LockTable, tid: i32, action: LockAction, contended: bool) -> Vec<Value> {
        let place = StepPlace {
            pid: 1,
            tid,
            time: 100,
            process: ProcessNumber::default(),
        };
        let step = LockStep {
            action,
            shared: false,
            group: false,
            contended,
            of_spans: None,
            provider: 0,
            key: [1, 0],
            comm: Value::Missing(Missing::Absent),
        };
        let part = locks.take(place, step, None).map(|part| part.values);
        match part {
            Some(AddedPart::Known(values)) => values.to_vec(),
            _ => Vec::new(),
        }
    }

    /// Its release is said after the next thread has acquired it.
    #[test]
    fn the_holder_of_a_contended_lock_may_not_be_known() {
        let mut locks = LockTable::default();
        for (contended, known) in [(true, OWN.len()), (false, 0)] {
            take(&mut locks, 2, LockAction::Waits, contended);
            let values = take(&mut locks, 2, LockAction::Acquires, contended);
            assert_eq!(values, vec![Value::Missing(Missing::Holder); known]);
            take(&mut locks, 1, LockAction::Releases, contended);
            take(&mut locks, 2, LockAction::Releases, contended);
        }
    }
}
