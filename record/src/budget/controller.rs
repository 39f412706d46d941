//! When units are detached and attached: rates come in, decisions come out. Times are ns of any clock, which is an argument.

use std::collections::HashMap;

use super::loads::{CountedHits, Loads};

const MS: u64 = 1_000_000;
/// Minimum length of a window.
pub(super) const WINDOW: u64 = 20 * MS;
/// Minimum time from the begin of a pause to the begin of the next one.
const MIN_PERIOD: u64 = 100 * MS;
/// Maximum time. A unit that cannot be paused and attached again so rarely that it pays stays detached.
const MAX_PERIOD: u64 = 60_000 * MS;
/// The CPU time of detaching and attaching again is less than one part in so many of a thread's budget over a period.
const COST_PART: f64 = 4.0;
/// Part of the budget up to which a unit stays attached after a window.
const QUIET: f64 = 0.8;
/// Maximum number of windows in a row with few hits after which a unit stays attached. It doubles each time that the unit is paused again
/// within [`SETTLED`].
const MAX_QUIET_WINDOWS: u32 = 64;
const SETTLED: u64 = 60_000 * MS;

/// A unit that is to be attached or detached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SwitchOrder {
    pub(super) unit: usize,
    pub(super) kind: SwitchKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SwitchKind {
    Attach,
    Detach,
}

/// How a unit is recorded from a pause on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct PausePlan {
    /// Part of the time in which it is attached, 0 to 1; 0 if it stays detached.
    pub(super) recorded: f64,
    /// Hits a second of all threads while it was attached.
    pub(super) rate: f64,
    /// The thread of whose time it takes the largest share, and that share.
    pub(super) thread: i32,
    pub(super) share: f64,
}

/// Decides about the units of a recording.
#[derive(Debug)]
pub(super) struct Controller {
    /// The part of a thread's time.
    budget: f64,
    units: Vec<Unit>,
}

#[derive(Debug)]
struct Unit {
    state: State,
    loads: Loads,
    /// CPU time of detaching and attaching, ns.
    detaching: SwitchCost,
    attaching: SwitchCost,
    /// Windows in a row with few hits, and how many of them there must be.
    quiet: u32,
    needed: u32,
    /// When it last came back for good.
    settled: Option<u64>,
    /// Length of the window that is open, or is next.
    window: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Attached until further notice.
    Attached,
    /// Being detached since then.
    Detaching {
        since: u64,
    },
    /// Detached since then, after a window of `last` ns; 0 if there was none.
    Paused {
        since: u64,
        last: u64,
        until: u64,
    },
    /// Detached: the kernel has refused to attach it. It is tried again then.
    Refused {
        until: u64,
    },
    Attaching,
    /// Attached for a time.
    Window {
        until: u64,
    },
    /// Detached until the end.
    Gone,
}

/// The last two CPU times of a switch: of the two the smaller one counts, because other work may be in one of them.
#[derive(Clone, Copy, Debug, Default)]
struct SwitchCost {
    last: Option<u64>,
    before: Option<u64>,
}

impl SwitchCost {
    const fn add(&mut self, ns: u64) {
        self.before = self.last;
        self.last = Some(ns);
    }

    fn ns(self) -> Option<u64> {
        self.last
            .map(|last| self.before.map_or(last, |before| before.min(last)))
    }

    /// Whether it was measured twice.
    const fn is_known(self) -> bool {
        self.before.is_some()
    }
}

/// The plan of the next pause of a unit.
struct Cycle {
    window: u64,
    /// Part of the time in which the unit may be attached.
    part: f64,
    /// `None` if it does not pay.
    period: Option<u64>,
}

/// The sums of the shares of each thread.
struct Sums {
    /// Of the units that are attached until further notice.
    attached: HashMap<i32, f64>,
    /// Of those that are paused and attached by turns.
    cycled: HashMap<i32, f64>,
}

impl Controller {
    /// All units are attached. `budget` is the part of a thread's time.
    pub(super) fn new(budget: f64, units: usize) -> Self {
        let unit = || Unit {
            state: State::Attached,
            loads: Loads::default(),
            detaching: SwitchCost::default(),
            attaching: SwitchCost::default(),
            quiet: 0,
            needed: 1,
            settled: None,
            window: WINDOW,
        };
        Self {
            budget,
            units: std::iter::repeat_with(unit).take(units).collect(),
        }
    }

    /// Whether a unit is attached until further notice.
    pub(super) fn is_attached(&self, unit: usize) -> bool {
        self.state(unit) == Some(State::Attached)
    }

    /// Takes what was counted of a unit that is attached until further notice, since the last time.
    pub(super) fn add(&mut self, unit: usize, counted: CountedHits<'_>) {
        if let Some(unit) = self.units.get_mut(unit) {
            unit.loads.add(counted);
        }
    }

    /// A burst counts as a constant rate, until something else is measured.
    pub(super) fn count_bursts(&mut self) {
        for unit in &mut self.units {
            unit.loads.raise();
        }
    }

    /// Which of the attached units are to be detached, so that no thread exceeds its budget.
    pub(super) fn decide(&mut self, now: u64) -> Vec<SwitchOrder> {
        let mut orders = Vec::new();
        while let Some(unit) = self.heaviest() {
            orders.push(self.detach(unit, now));
        }
        orders
    }

    /// Of the thread with the largest sum above the budget, the attached unit with the largest share.
    fn heaviest(&self) -> Option<usize> {
        let sums = self.sum(|state| state == State::Attached);
        let over = sums.iter().filter(|(_, share)| **share > self.budget);
        let (tid, _) =
            over.max_by(|one, other| one.1.total_cmp(other.1).then(other.0.cmp(one.0)))?;
        let attached = self.units.iter().enumerate();
        let attached = attached.filter(|(_, unit)| unit.state == State::Attached);
        let shares = attached.map(|(at, unit)| (at, unit.loads.share(*tid)));
        let largest =
            shares.max_by(|one, other| one.1.total_cmp(&other.1).then(other.0.cmp(&one.0)));
        largest.map(|(at, _)| at)
    }

    fn detach(&mut self, number: usize, now: u64) -> SwitchOrder {
        if let Some(unit) = self.units.get_mut(number) {
            if unit.state == State::Attached {
                unit.loads.raise();
                let is_again = unit
                    .settled
                    .take()
                    .is_some_and(|at| now.saturating_sub(at) < SETTLED);
                unit.needed = match is_again {
                    true => (unit.needed * 2).min(MAX_QUIET_WINDOWS),
                    false => 1,
                };
                unit.quiet = 0;
            }
            unit.state = State::Detaching { since: now };
        }
        SwitchOrder {
            unit: number,
            kind: SwitchKind::Detach,
        }
    }

    /// The units whose pauses or windows are over.
    pub(crate) fn due(&self, now: u64) -> Vec<SwitchOrder> {
        let units = self.units.iter().enumerate();
        let due = units.filter_map(|(unit, state)| {
            let kind = match state.state {
                State::Paused { until, .. } | State::Refused { until } if until <= now => {
                    SwitchKind::Attach
                }
                State::Window { until } if until <= now => SwitchKind::Detach,
                _ => return None,
            };
            Some(SwitchOrder { unit, kind })
        });
        due.collect()
    }

    /// Begins to attach a unit whose pause is over.
    pub(super) fn begin_attaching(&mut self, unit: usize) {
        self.set(unit, State::Attaching);
    }

    /// Ends the window of a unit, in which so much was counted. Returns `None` if that is little: then another window begins now, or the unit
    /// stays attached.
    pub(super) fn end_window(
        &mut self,
        number: usize,
        counted: CountedHits<'_>,
        now: u64,
    ) -> Option<SwitchOrder> {
        let others = self.sum(|state| state == State::Attached);
        let limit = self.budget * QUIET;
        let unit = self.units.get_mut(number)?;
        unit.loads.replace(counted);
        let mut shares = unit.loads.shares();
        let is_quiet =
            shares.all(|(tid, share)| others.get(&tid).copied().unwrap_or(0.0) + share <= limit);
        drop(shares);
        if !is_quiet {
            return Some(self.detach(number, now));
        }
        unit.quiet += 1;
        unit.state = if unit.quiet >= unit.needed {
            unit.settled = Some(now);
            State::Attached
        } else {
            let until = now + WINDOW;
            State::Window { until }
        };
        None
    }

    /// A unit is attached again for a window, which begins now. `cost` is the CPU time that it took, ns.
    pub(crate) fn attached(&mut self, unit: usize, now: u64, cost: u64) {
        if let Some(unit) = self.units.get_mut(unit) {
            unit.attaching.add(cost);
            let until = now + unit.window;
            unit.state = State::Window { until };
        }
    }

    /// A unit is detached. `cost` is the CPU time that it took, ns; `counted` is what was counted from the begin of its last window until it was
    /// detached, by the length of the window, if there was one. Returns what is planned.
    pub(super) fn detached(
        &mut self,
        number: usize,
        cost: u64,
        counted: Option<CountedHits<'_>>,
    ) -> Option<PausePlan> {
        let unit = self.units.get_mut(number)?;
        unit.detaching.add(cost);
        let State::Detaching { since } = unit.state else {
            return None;
        };
        if let Some(counted) = counted {
            unit.loads.replace(counted);
        }
        let last = counted.map_or(0, |counted| counted.ns);
        let sums = self.sums();
        let Cycle { window, period, .. } = self.plan(number, &sums, since, last);
        self.plan_pauses();
        let unit = self.units.get_mut(number)?;
        let (thread, share) = unit.loads.largest().unwrap_or_default();
        Some(PausePlan {
            recorded: period.map_or(0.0, |period| window as f64 / period as f64),
            rate: unit.loads.rate,
            thread,
            share,
        })
    }

    /// Plans the ends of all pauses: what other units leave of the budget is not what it was when they began.
    pub(super) fn plan_pauses(&mut self) {
        let sums = self.sums();
        for number in 0..self.units.len() {
            if let Some(State::Paused { since, last, .. }) = self.state(number) {
                self.plan(number, &sums, since, last);
            }
        }
    }

    /// Plans the next window of a unit that is detached since then, after a window of `last` ns.
    fn plan(&mut self, number: usize, sums: &Sums, since: u64, last: u64) -> Cycle {
        let cycle = self.cycle(number, sums);
        // A window may be longer than planned if the recorder has to wait for a CPU.
        let owed = (last as f64 / cycle.part).min(MAX_PERIOD as f64) as u64;
        if let Some(unit) = self.units.get_mut(number) {
            unit.state = match cycle.period {
                Some(period) => State::Paused {
                    since,
                    last,
                    until: since
                        + period
                            .saturating_sub(cycle.window)
                            .max(owed.saturating_sub(last)),
                },
                None => State::Gone,
            };
            // What was measured before the first window may be of a thread that had only begun.
            unit.window = if last > 0 { cycle.window } else { WINDOW };
        }
        cycle
    }

    /// A unit could not be attached again: it is tried again after the longest pause.
    pub(super) fn not_attached(&mut self, unit: usize, now: u64) {
        let until = now + MAX_PERIOD;
        self.set(unit, State::Refused { until });
    }

    /// Time until the next pause or window is over, ns; `None` if there is none.
    pub(super) fn remaining(&self, now: u64) -> Option<u64> {
        let ends = self.units.iter().filter_map(|unit| match unit.state {
            State::Paused { until, .. } | State::Refused { until } | State::Window { until } => {
                Some(until.saturating_sub(now))
            }
            _ => None,
        });
        ends.min()
    }

    /// The next window and period of a unit.
    fn cycle(&self, number: usize, Sums { attached, cycled }: &Sums) -> Cycle {
        let sum = |sums: &HashMap<i32, f64>, tid| sums.get(&tid).copied().unwrap_or(0.0);
        let never = Cycle {
            window: WINDOW,
            part: 0.0,
            period: None,
        };
        let Some(unit) = self.units.get(number) else {
            return never;
        };
        let parts = unit.loads.shares().map(|(tid, _)| {
            let left = (self.budget - sum(attached, tid)).max(0.0);
            left / sum(cycled, tid).max(f64::MIN_POSITIVE)
        });
        let part = parts.fold(1.0, f64::min);
        // What attaching takes is not known before the first time.
        let detaching = unit.detaching.ns().unwrap_or(0);
        let cost = detaching + unit.attaching.ns().unwrap_or(detaching);
        let pays = cost as f64 * COST_PART / self.budget;
        // Other work may be in the first measurement.
        if pays > MAX_PERIOD as f64 && unit.detaching.is_known() {
            return never;
        }
        let period = (WINDOW as f64 / part).max(pays).max(MIN_PERIOD as f64);
        // Saturates.
        let period = (period.min(MAX_PERIOD as f64)) as u64;
        let window = ((period as f64 * part).round() as u64).max(WINDOW);
        Cycle {
            window,
            part,
            period: Some(period.max(window)),
        }
    }

    /// The sums by which pauses are planned.
    fn sums(&self) -> Sums {
        Sums {
            attached: self.sum(|state| state == State::Attached),
            cycled: self.sum(|state| {
                !matches!(state, State::Attached | State::Refused { .. } | State::Gone)
            }),
        }
    }

    /// The sums of the shares of each thread, of the units in some states.
    fn sum(&self, is_meant: impl Fn(State) -> bool) -> HashMap<i32, f64> {
        let mut sums = HashMap::new();
        for unit in self.units.iter().filter(|unit| is_meant(unit.state)) {
            for (tid, share) in unit.loads.shares() {
                *sums.entry(tid).or_insert(0.0) += share;
            }
        }
        sums
    }

    fn state(&self, unit: usize) -> Option<State> {
        self.units.get(unit).map(|unit| unit.state)
    }

    fn set(&mut self, unit: usize, state: State) {
        if let Some(unit) = self.units.get_mut(unit) {
            unit.state = state;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hits of thread 7.
    fn threads(hits: u64) -> HashMap<i32, u64> {
        HashMap::from([(7, hits)])
    }

    /// Of 1 µs each.
    const fn in_tenth_of_second(threads: &HashMap<i32, u64>) -> CountedHits<'_> {
        CountedHits {
            threads,
            ns: 100 * MS,
            hit_ns: 1000.0,
        }
    }

    /// The orders after these shares of thread 7 were measured in so many intervals.
    fn decided(shares: &[f64], intervals: usize) -> (Controller, Vec<usize>) {
        let mut controller = Controller::new(0.02, shares.len());
        let mut detached = Vec::new();
        for _ in 0..intervals {
            for (unit, share) in shares.iter().enumerate() {
                if controller.is_attached(unit) {
                    let threads = threads((share * 1e5) as u64);
                    controller.add(unit, in_tenth_of_second(&threads));
                }
            }
            let orders = controller.decide(0);
            assert!(orders.iter().all(|order| order.kind == SwitchKind::Detach));
            detached.extend(orders.iter().map(|order| order.unit));
        }
        (controller, detached)
    }

    #[test]
    fn the_unit_with_the_largest_share_is_paused_first() {
        assert_eq!(decided(&[0.001, 0.4, 0.01], 1).1, [1]);
        assert_eq!(decided(&[0.015, 0.4, 0.3, 0.004], 20).1, [1, 2]);
        assert_eq!(decided(&[0.012, 0.013], 20).1, [1]);
        assert!(decided(&[0.009, 0.01], 20).1.is_empty());
    }

    #[test]
    fn a_short_burst_and_threads_within_the_budget_pause_nothing() {
        let mut controller = Controller::new(0.02, 1);
        let burst = threads(6_000);
        controller.add(0, in_tenth_of_second(&burst));
        assert!(controller.decide(0).is_empty());
        let mut urged = Controller::new(0.02, 1);
        urged.add(0, in_tenth_of_second(&burst));
        urged.count_bursts();
        assert_eq!(urged.decide(0).len(), 1);
        let mut controller = Controller::new(0.02, 1);
        let of_many = (0..1000).map(|tid| (tid, 1_500)).collect();
        controller.add(0, in_tenth_of_second(&of_many));
        assert!(controller.decide(0).is_empty());
    }

    /// After it was detached at the cost of 1 ms.
    fn paused(share: f64, cost: u64) -> (Controller, Option<PausePlan>) {
        let (mut controller, detached) = decided(&[share], 1);
        assert_eq!(detached, [0]);
        let planned = controller.detached(0, cost, None);
        (controller, planned)
    }

    #[test]
    fn windows_are_within_the_budget() {
        let (controller, planned) = paused(0.8, MS / 10);
        let planned = planned.expect("it was being detached");
        assert!((planned.recorded - 0.025).abs() < 1e-3, "{planned:?}");
        assert!((planned.rate - 800_000.0).abs() < 1.0);
        assert_eq!((planned.thread, (planned.share * 10.0).round()), (7, 8.0));
        // 20 ms of 800 ms.
        assert_eq!(controller.remaining(0), Some(780 * MS));
        assert!(controller.due(779 * MS).is_empty());
        let [order] = *controller.due(780 * MS) else {
            panic!("its pause is over");
        };
        assert_eq!(order.kind, SwitchKind::Attach);
    }

    /// 5 ms each for detaching and attaching are a quarter of 2 % of 2 s.
    #[test]
    fn a_cycle_costs_less_than_a_quarter_of_the_budget() {
        let (controller, planned) = paused(0.8, 5 * MS);
        assert!((planned.expect("a plan").recorded - 0.025).abs() < 1e-3);
        assert_eq!(controller.remaining(0), Some(1950 * MS));
        let (mut controller, planned) = paused(0.8, 200 * MS);
        assert!(planned.expect("a plan").recorded > 0.0, "measured once");
        assert_eq!(controller.remaining(0), Some(MAX_PERIOD - 1500 * MS));
        let many = threads(80_000);
        controller.begin_attaching(0);
        controller.attached(0, MAX_PERIOD, 200 * MS);
        let counted = in_tenth_of_second(&many);
        assert!(controller.end_window(0, counted, MAX_PERIOD).is_some());
        let planned = controller.detached(0, 200 * MS, Some(counted));
        assert_eq!(planned.expect("a plan").recorded, 0.0);
        assert_eq!(controller.remaining(0), None);
        assert!(controller.due(u64::MAX).is_empty());
    }

    #[test]
    fn a_unit_comes_back_when_it_has_few_hits() {
        let (mut controller, _) = paused(0.8, MS / 10);
        controller.begin_attaching(0);
        controller.attached(0, 800 * MS, MS / 10);
        let [order] = *controller.due(820 * MS) else {
            panic!("its window is over");
        };
        assert_eq!(order.kind, SwitchKind::Detach);
        let (many, few) = (threads(90_000), threads(100));
        assert!(
            controller
                .end_window(0, in_tenth_of_second(&many), 820 * MS)
                .is_some()
        );
        let planned = controller.detached(0, MS / 10, Some(in_tenth_of_second(&many)));
        assert!((planned.expect("a plan").recorded - 0.0222).abs() < 1e-3);
        controller.begin_attaching(0);
        controller.attached(0, 1700 * MS, MS / 10);
        assert!(
            controller
                .end_window(0, in_tenth_of_second(&few), 1720 * MS)
                .is_none()
        );
        assert!(controller.is_attached(0));
    }

    /// So that one that is hot every other second does not come back for a tenth of each.
    #[test]
    fn a_unit_that_was_paused_again_soon_needs_more_quiet_windows() {
        let (mut controller, _) = paused(0.8, MS / 10);
        let (many, few) = (threads(90_000), threads(0));
        let mut now = 800 * MS;
        for needed in [1, 2, 4, 8] {
            controller.begin_attaching(0);
            controller.attached(0, now, MS / 10);
            for window in 1..=needed {
                now += WINDOW;
                assert!(!controller.is_attached(0));
                assert_eq!(controller.due(now).len(), 1);
                assert!(
                    controller
                        .end_window(0, in_tenth_of_second(&few), now)
                        .is_none()
                );
                assert_eq!(controller.is_attached(0), window == needed);
            }
            controller.add(0, in_tenth_of_second(&many));
            assert_eq!(controller.decide(now).len(), 1);
            controller.detached(0, MS / 10, None);
        }
    }

    #[test]
    fn a_window_that_was_too_long_is_made_up_for() {
        let (mut controller, _) = paused(0.8, MS / 10);
        controller.begin_attaching(0);
        controller.attached(0, 800 * MS, MS / 10);
        let many = threads(160_000);
        let counted = CountedHits {
            ns: 200 * MS,
            ..in_tenth_of_second(&many)
        };
        assert!(controller.end_window(0, counted, 1000 * MS).is_some());
        controller.detached(0, MS / 10, Some(counted));
        assert_eq!(controller.remaining(1000 * MS), Some(7800 * MS));
    }

    /// The first one was to wait for long, because the second one took nearly all of the budget.
    #[test]
    fn pauses_are_planned_anew_when_others_begin() {
        let mut controller = Controller::new(0.02, 2);
        for (unit, hits) in [(0, 500_000), (1, 19_999)] {
            let threads = threads(hits);
            let counted = CountedHits {
                ns: 1000 * MS,
                ..in_tenth_of_second(&threads)
            };
            for _ in 0..40 {
                controller.add(unit, counted);
            }
        }
        assert_eq!(controller.decide(0).len(), 1);
        controller.detached(0, MS / 10, None);
        assert_eq!(controller.remaining(0), Some(MAX_PERIOD - WINDOW));
        let many = threads(50_000);
        controller.add(1, in_tenth_of_second(&many));
        assert_eq!(controller.decide(100 * MS).len(), 1);
        controller.detached(1, MS / 10, None);
        // Both have half of the time each.
        let remaining = controller.remaining(100 * MS).expect("two pauses");
        assert!(remaining < 1000 * MS, "{remaining}");
    }

    /// Another unit had a burst when the pause began.
    #[test]
    fn a_pause_is_shorter_when_others_take_less_again() {
        let mut controller = Controller::new(0.02, 2);
        let (hot, burst, few) = (threads(50_000), threads(1_900), threads(10));
        controller.add(1, in_tenth_of_second(&burst));
        controller.count_bursts();
        controller.add(0, in_tenth_of_second(&hot));
        let orders = controller.decide(0);
        assert_eq!(orders.len(), 1);
        controller.detached(0, MS / 10, None);
        assert!(controller.remaining(0) > Some(5000 * MS));
        for _ in 0..40 {
            controller.add(1, in_tenth_of_second(&few));
        }
        controller.plan_pauses();
        assert!(controller.remaining(0) < Some(1000 * MS));
    }

    #[test]
    fn what_others_take_of_the_budget_is_left_to_them() {
        let (mut controller, detached) = decided(&[0.01, 0.5], 20);
        assert_eq!(detached, [1]);
        let recorded = controller
            .detached(1, MS / 10, None)
            .expect("a plan")
            .recorded;
        // Of 2 %, about 1 % is left.
        assert!((recorded - 0.02).abs() < 2e-3, "{recorded}");
    }

    #[test]
    fn a_unit_that_is_refused_is_tried_again_later() {
        let (mut controller, _) = paused(0.8, MS);
        controller.begin_attaching(0);
        assert_eq!(controller.remaining(0), None);
        controller.not_attached(0, 1000 * MS);
        controller.plan_pauses();
        assert_eq!(controller.remaining(1000 * MS), Some(MAX_PERIOD));
        assert_eq!(controller.due(1000 * MS + MAX_PERIOD).len(), 1);
    }
}
