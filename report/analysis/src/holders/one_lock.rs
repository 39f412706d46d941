//! A lock: who holds it, who waits for it, and who held it meanwhile.

use std::sync::Arc;

use usdtrec_format::Value;
use usdtrec_trace::added::added_argument::AddedValues;

use crate::stats::coverage::{Coverage, Interval};

/// Maximum number of holders that are kept for a waiting thread; others are only counted.
const MAX_MET: usize = 16;
/// Maximum number of those that are only counted.
const MAX_FURTHER: usize = 256;
/// Maximum number of parts of the time that a thread held a lock meanwhile; more are joined.
const MAX_PARTS: usize = 64;
/// Threads that hold a lock, or wait for it, at once at most; then the first ones are forgotten.
const MAX_THREADS: usize = 1 << 12;

/// A lock, or a group of locks.
#[derive(Debug, Default)]
pub(crate) struct OneLock {
    holds: Vec<Hold>,
    waiters: Vec<Waiter>,
}

/// A thread that holds a lock.
#[derive(Clone, Debug)]
pub(crate) struct Holder {
    pub(crate) tid: i32,
    /// What it is called.
    pub(crate) comm: Value,
    /// The arguments of the spans that it was in when it acquired the lock.
    pub(crate) values: Option<Arc<AddedValues>>,
}

/// How a lock is acquired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HoldKind {
    /// Alone: nobody else has it then.
    Exclusive,
    /// Together with others that share it.
    Shared,
    /// It is one of a group: others may have others of the group.
    OfGroup,
    /// Alone; and its release is said only if others wait for it then.
    Contended,
}

/// A lock that is held.
#[derive(Clone, Debug)]
struct Hold {
    holder: Holder,
    /// When it was acquired, ns.
    since: u64,
    kind: HoldKind,
    /// Whether others have waited for it all the time.
    is_wanted: bool,
}

/// A thread that waits.
#[derive(Debug)]
pub(crate) struct Waiter {
    tid: i32,
    /// When it began to, ns.
    since: u64,
    /// The threads that held the lock meanwhile, but for those that held it less than others, if they are many.
    met: Vec<MetHolder>,
    /// The others, in ascending order.
    further: Vec<i32>,
}

/// A thread that held the lock while another one waited.
#[derive(Clone, Debug)]
pub(crate) struct MetHolder {
    pub(crate) holder: Holder,
    /// How long meanwhile, each moment once, ns.
    pub(crate) blocked: u64,
    /// When that was.
    times: Coverage,
    /// The longest part of that at a time, ns: what is known of the holder is of then.
    longest: u64,
    /// How long at most at a time, ns; `None` if it is not known when it acquired the lock.
    pub(crate) held: Option<u64>,
}

impl OneLock {
    /// Whether the lock has neither holders nor waiters.
    pub(crate) const fn is_idle(&self) -> bool {
        self.holds.is_empty() && self.waiters.is_empty()
    }

    /// A thread begins to wait, or to acquire it.
    pub(crate) fn wait(&mut self, tid: i32, time: u64) {
        // A wait before that did not end was given up.
        self.waiters.retain(|waiter| waiter.tid != tid);
        if self.waiters.len() >= MAX_THREADS {
            self.waiters.remove(0);
        }
        self.waiters.push(Waiter {
            tid,
            since: time,
            met: Vec::new(),
            further: Vec::new(),
        });
    }

    /// A thread has acquired it.
    pub(crate) fn acquire(&mut self, holder: Holder, time: u64, kind: HoldKind) {
        let tid = holder.tid;
        // Those before that are not known to have ended have, without others that waited.
        self.holds.retain(|hold| hold.kind != HoldKind::Contended);
        // Programs say that they release a lock before or after they do.
        let mut over = Vec::new();
        self.holds.retain(|hold| {
            let is_over = hold.holder.tid != tid && kind.ends(hold.kind);
            if is_over {
                over.push(hold.clone());
            }
            !is_over
        });
        for hold in over {
            self.tell(&hold.holder, Some(hold.since), time);
        }
        if self.holds.len() >= MAX_THREADS {
            self.holds.remove(0);
        }
        self.holds.push(Hold {
            holder,
            since: time,
            kind,
            is_wanted: self.waiters.iter().any(|waiter| waiter.tid != tid),
        });
    }

    /// A thread has released it.
    pub(crate) fn release(&mut self, holder: Holder, time: u64) {
        let mut held = self.holds.iter();
        let place = held.rposition(|hold| hold.holder.tid == holder.tid);
        if let Some(place) = place {
            let hold = self.holds.remove(place);
            // It may have released and acquired it again, which is not said if nobody waits.
            let is_one = hold.kind != HoldKind::Contended || hold.is_wanted;
            let holder = if is_one { &hold.holder } else { &holder };
            return self.tell(holder, is_one.then_some(hold.since), time);
        }
        // Another thread has acquired it since, which is said before the release is.
        let is_held = |hold: &Hold| match hold.kind {
            HoldKind::Exclusive => true,
            HoldKind::Contended => hold.is_wanted,
            HoldKind::Shared | HoldKind::OfGroup => false,
        };
        if !self.holds.iter().any(is_held) {
            self.tell(&holder, None, time);
        }
    }

    /// Adds a hold of the lock until a time to all waiting threads.
    fn tell(&mut self, holder: &Holder, since: Option<u64>, until: u64) {
        for waiter in &mut self.waiters {
            waiter.meet(holder, since, until);
        }
    }

    /// A thread waits no more: what it met. Those who hold one of a group continue.
    pub(crate) fn waited(&mut self, tid: i32, time: u64) -> Option<Waiter> {
        let place = self.waiters.iter().position(|waiter| waiter.tid == tid)?;
        let mut waiter = self.waiters.remove(place);
        if self.waiters.is_empty() {
            self.holds
                .iter_mut()
                .for_each(|hold| hold.is_wanted = false);
        }
        let others = self.holds.iter();
        // It shares the lock with them, if it has it; and of some it is not known whether they have it.
        let is_known = |hold: &&Hold| matches!(hold.kind, HoldKind::Exclusive | HoldKind::OfGroup);
        for hold in others.filter(is_known) {
            waiter.meet(&hold.holder, Some(hold.since), time);
        }
        Some(waiter)
    }
}

impl HoldKind {
    /// Whether it ends another hold that is acquired in this way.
    const fn ends(self, other: Self) -> bool {
        match self {
            Self::Exclusive => !matches!(other, Self::OfGroup),
            Self::Shared => matches!(other, Self::Exclusive),
            Self::OfGroup | Self::Contended => false,
        }
    }
}

impl Waiter {
    fn meet(&mut self, holder: &Holder, since: Option<u64>, until: u64) {
        if holder.tid == self.tid {
            return;
        }
        let from = since.map_or(self.since, |since| since.max(self.since));
        let blocked = until.saturating_sub(from);
        if blocked == 0 {
            return;
        }
        let held = since.map(|since| until.saturating_sub(since));
        let time = Interval {
            begin: from,
            end: until,
        };
        let mut met = self.met.iter_mut();
        if let Some(known) = met.find(|known| known.holder.tid == holder.tid) {
            // Its holds may overlap, as of several locks of a group.
            known.times.add(time);
            if known.times.parts() > MAX_PARTS {
                known.times.join(&[]);
            }
            known.blocked = known.times.time();
            known.held = known.held.max(held);
            if blocked > known.longest {
                known.longest = blocked;
                known.holder = holder.clone();
            }
            return;
        }
        if self.met.len() >= MAX_MET {
            let all = self.met.iter().enumerate();
            let least = all.min_by_key(|(_, met)| met.blocked);
            match least.filter(|(_, least)| least.blocked < blocked) {
                Some((at, _)) => {
                    let least = self.met.remove(at).holder.tid;
                    self.count_further(least);
                }
                None => return self.count_further(holder.tid),
            }
            self.further.retain(|tid| *tid != holder.tid);
        }
        let mut times = Coverage::default();
        times.add(time);
        self.met.push(MetHolder {
            holder: holder.clone(),
            blocked,
            times,
            longest: blocked,
            held,
        });
    }

    /// Counts a thread that is not kept.
    fn count_further(&mut self, tid: i32) {
        if let Err(place) = self.further.binary_search(&tid)
            && self.further.len() < MAX_FURTHER
        {
            self.further.insert(place, tid);
        }
    }

    /// The one that held the lock the longest, of several the first, and the number of the others.
    pub(crate) fn longest(&self) -> Option<(&MetHolder, u32)> {
        let mut longest: Option<&MetHolder> = None;
        for met in &self.met {
            if longest.is_none_or(|known| met.blocked > known.blocked) {
                longest = Some(met);
            }
        }
        let others = (self.met.len() + self.further.len()).saturating_sub(1);
        longest.map(|longest| (longest, u32::try_from(others).unwrap_or(u32::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use usdtrec_format::Missing;

    use super::*;

    fn holder(tid: i32) -> Holder {
        Holder {
            tid,
            comm: Value::Missing(Missing::Absent),
            values: None,
        }
    }

    /// Thread, how long it blocked, how long it held, number of others.
    fn longest(waiter: Option<Waiter>) -> Option<(i32, u64, Option<u64>, u32)> {
        let waiter = waiter?;
        let (met, others) = waiter.longest()?;
        Some((met.holder.tid, met.blocked, met.held, others))
    }

    #[test]
    fn who_held_it_longest_while_others_waited() {
        let mut lock = OneLock::default();
        lock.acquire(holder(1), 100, HoldKind::Exclusive);
        lock.wait(2, 150);
        lock.wait(3, 160);
        lock.release(holder(1), 170);
        lock.acquire(holder(2), 171, HoldKind::Exclusive);
        assert_eq!(longest(lock.waited(2, 171)), Some((1, 20, Some(70), 0)));
        lock.release(holder(2), 300);
        lock.acquire(holder(3), 301, HoldKind::Exclusive);
        assert_eq!(longest(lock.waited(3, 301)), Some((2, 129, Some(129), 1)));
        lock.release(holder(3), 310);
        // Nobody had it.
        lock.wait(1, 400);
        lock.acquire(holder(1), 401, HoldKind::Exclusive);
        assert_eq!(longest(lock.waited(1, 401)), None);
        lock.release(holder(1), 410);
        assert!(lock.is_idle());
    }

    #[test]
    fn a_release_may_be_said_after_the_next_has_acquired() {
        let mut lock = OneLock::default();
        lock.acquire(holder(1), 100, HoldKind::Exclusive);
        lock.wait(2, 110);
        lock.wait(3, 110);
        lock.acquire(holder(2), 200, HoldKind::Exclusive);
        lock.release(holder(1), 205);
        assert_eq!(longest(lock.waited(2, 200)), Some((1, 90, Some(100), 0)));
        lock.release(holder(2), 250);
        assert_eq!(longest(lock.waited(3, 260)), Some((1, 90, Some(100), 1)));
    }

    #[test]
    fn a_holder_without_a_begin_held_it_from_the_wait_on() {
        let mut lock = OneLock::default();
        lock.wait(2, 100);
        lock.release(holder(9), 150);
        assert_eq!(longest(lock.waited(2, 151)), Some((9, 50, None, 0)));
    }

    /// What is said only while others wait: nothing is made up of what is not said.
    #[test]
    fn a_holder_whose_release_is_not_said_is_none_of_the_next_wait() {
        let mut lock = OneLock::default();
        lock.wait(2, 100);
        lock.release(holder(9), 150);
        lock.acquire(holder(2), 151, HoldKind::Contended);
        assert_eq!(longest(lock.waited(2, 151)), Some((9, 50, None, 0)));
        // It released it when nobody waited.
        lock.wait(3, 200);
        lock.wait(4, 210);
        lock.release(holder(8), 250);
        lock.acquire(holder(3), 251, HoldKind::Contended);
        assert_eq!(longest(lock.waited(3, 251)), Some((8, 50, None, 0)));
        // It was waited for all the time.
        lock.release(holder(3), 300);
        lock.acquire(holder(4), 301, HoldKind::Contended);
        assert_eq!(longest(lock.waited(4, 301)), Some((3, 49, Some(49), 1)));
        // It has it, or has it again.
        lock.wait(5, 400);
        lock.release(holder(4), 410);
        lock.acquire(holder(5), 411, HoldKind::Contended);
        assert_eq!(longest(lock.waited(5, 411)), Some((4, 10, None, 0)));
    }

    #[test]
    fn shared_and_grouped_ones_go_on() {
        let mut lock = OneLock::default();
        for tid in [1, 2] {
            lock.acquire(holder(tid), 100, HoldKind::Shared);
        }
        lock.wait(3, 110);
        lock.release(holder(1), 120);
        lock.release(holder(2), 150);
        lock.acquire(holder(3), 150, HoldKind::Exclusive);
        assert_eq!(longest(lock.waited(3, 150)), Some((2, 40, Some(50), 1)));
        let mut group = OneLock::default();
        for tid in [1, 2] {
            group.acquire(holder(tid), 100, HoldKind::OfGroup);
        }
        group.wait(3, 110);
        assert_eq!(longest(group.waited(3, 120)), Some((1, 10, Some(20), 1)));
        group.wait(4, 120);
        group.release(holder(1), 125);
        assert_eq!(longest(group.waited(4, 130)), Some((2, 10, Some(30), 1)));
    }

    #[test]
    fn each_moment_of_several_holds_of_a_thread_counts_once() {
        let mut group = OneLock::default();
        for time in [100, 110] {
            group.acquire(holder(1), time, HoldKind::OfGroup);
        }
        group.wait(2, 120);
        group.release(holder(1), 150);
        assert_eq!(longest(group.waited(2, 160)), Some((1, 40, Some(60), 0)));
    }

    /// Threads that hold it in turn, over and over, before one that holds it long.
    #[test]
    fn the_longest_of_very_many_holders_is_found() {
        let mut lock = OneLock::default();
        lock.wait(1, 0);
        let mut now = 0;
        let mut hold = |tid, ns| {
            lock.acquire(holder(tid), now, HoldKind::Exclusive);
            now += ns;
            lock.release(holder(tid), now);
        };
        for _ in 0..100 {
            (100..120).for_each(|tid| hold(tid, 3));
        }
        hold(9, 5000);
        assert_eq!(
            longest(lock.waited(1, now)),
            Some((9, 5000, Some(5000), 20))
        );
    }
}
