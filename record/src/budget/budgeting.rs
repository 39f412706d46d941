//! Keeps probes within the budget: counts what they take, has a thread detach and attach them, and writes the pauses to the trace.

use std::collections::HashMap;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use usdtrec_attach::budget::{Budget, Units};
use usdtrec_attach::engine::{Attached, SwitchResult, UnitSwitcher};
use usdtrec_attach::error::RecordError;
use usdtrec_format::perf::{SampleId, SampleType};
use usdtrec_format::trace::{MAX_PAUSED_IDS, Pause};
use usdtrec_kernel::KernelError;
use usdtrec_kernel::trace_clock;

use crate::budget::controller::{Controller, PausePlan, SwitchKind, SwitchOrder};
use crate::budget::loads::CountedHits;
use crate::budget::stage::PauseStage;
use crate::recording::outcome::{BudgetEvent, PausePlanned, PausedProbes, ThreadShare};
use crate::recording::session::Session;

/// Interval at which shares are measured, ns.
const LOOK_TIME: u64 = 20_000_000;
/// The same, ns, while so much of a ring is filled: hits of other probes would be lost, too.
const URGENT_LOOK_TIME: u64 = 10_000_000;
const URGENT_FILL: f64 = 0.125;
/// Interval at which the ends of all pauses are planned again, ns.
const PLAN_TIME: u64 = 1_000_000_000;
/// How long the end of the recording waits for the thread.
const END_LIMIT: Duration = Duration::from_secs(2);

/// The state of the budget of a recording.
#[derive(Debug)]
pub(crate) struct Budgeting {
    controller: Controller,
    units: Vec<BudgetUnit>,
    /// The unit of each probe that the recording began with.
    unit_of_probe: Units,
    switches: Switches,
    id_type: SampleType,
    /// When the probes were enabled, and when the recording ended.
    began: u64,
    ended: Option<u64>,
    looked: u64,
    planned: u64,
    /// Number of the next pause.
    next: u64,
    events: Vec<BudgetEvent>,
}

/// Probes that are detached together.
#[derive(Debug, Default)]
struct BudgetUnit {
    events: Vec<String>,
    ids: Vec<u64>,
    /// What a hit takes, ns.
    hit_ns: u64,
    /// Hits that were lost so far, and those that were known when hits were last taken.
    lost: u64,
    known_lost: u64,
    /// When its window began.
    window_from: Option<u64>,
    /// Length of that window, when it is over.
    window_ns: Option<u64>,
    pause: Option<OpenPause>,
    /// Pauses that are over or open, and the time of those that are over, ns.
    pauses: u64,
    paused_ns: u64,
    is_gone: bool,
    /// Whether the kernel has refused to attach it again.
    is_refused: bool,
}

/// What a look has changed.
#[derive(Debug, Default)]
pub(crate) struct Switched {
    /// Events that are detached for the first time.
    pub(crate) first_paused: Vec<String>,
    /// Sample ids of the probes whose pauses are over: no later hit of them has been read.
    pub(crate) attached: Vec<u64>,
}

/// A pause that has begun.
#[derive(Clone, Copy, Debug)]
struct OpenPause {
    /// Number of the first of its records.
    number: u64,
    from: u64,
}

/// The thread that detaches and attaches.
#[derive(Debug)]
struct Switches {
    orders: Option<Sender<SwitchOrder>>,
    done: Receiver<SwitchDone>,
    /// Has a byte for each that is done.
    woken: PipeReader,
}

#[derive(Debug)]
struct SwitchDone {
    order: SwitchOrder,
    result: SwitchResult,
}

impl Budgeting {
    /// `None` if the recording has no budget, or no probes so far.
    ///
    /// # Errors
    /// [`KernelError::Host`] if a thread cannot be started.
    pub(crate) fn new(session: &Session) -> Result<Option<Self>, RecordError> {
        let failed = KernelError::host("the budget (a thread)");
        let Some(budget) = session.options.engine.budget else {
            return Ok(None);
        };
        let attached = &session.attached;
        let Some(switcher) = attached.engine.unit_switcher().map_err(failed)? else {
            return Ok(None);
        };
        let unit_of_probe = Units::of_probes(attached.probes.iter().map(Arc::as_ref));
        let now = trace_clock::now();
        Ok(Some(Self {
            controller: Controller::new(budget.share, unit_of_probe.count()),
            units: units(session, &budget, &unit_of_probe),
            unit_of_probe,
            switches: Switches::start(switcher).map_err(failed)?,
            id_type: attached.processes.attr.attr.id_type(),
            began: now,
            ended: None,
            looked: now,
            planned: now,
            next: 0,
            events: Vec::new(),
        }))
    }

    /// The probes are enabled.
    pub(crate) fn begin(&mut self) {
        self.began = trace_clock::now();
        self.looked = self.began;
    }

    /// What counts hits, and drops those in pauses.
    pub(crate) fn stage(&self) -> PauseStage {
        let ids: Vec<Vec<u64>> = self.units.iter().map(|unit| unit.ids.clone()).collect();
        PauseStage::new(&ids)
    }

    /// Becomes readable when a unit was detached or attached.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.switches.woken.as_fd()
    }

    /// Time until a unit is to be detached or attached; `None` if none is.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        let remaining = self.controller.remaining(trace_clock::now())?;
        Some(Duration::from_nanos(remaining))
    }

    /// What happened since the last call.
    pub(crate) fn take_events(&mut self) -> Vec<BudgetEvent> {
        std::mem::take(&mut self.events)
    }

    /// The probes that were paused.
    pub(crate) fn paused(&self) -> Vec<PausedProbes> {
        let now = self.ended.unwrap_or_else(trace_clock::now);
        let all = now.saturating_sub(self.began).max(1);
        let paused = self.units.iter().filter(|unit| unit.pauses > 0);
        let paused = paused.map(|unit| {
            let open = unit.pause.map_or(0, |pause| now.saturating_sub(pause.from));
            PausedProbes {
                events: unit.events.clone(),
                pauses: unit.pauses,
                recorded: 1.0 - ((unit.paused_ns + open) as f64 / all as f64).min(1.0),
            }
        });
        paused.collect()
    }

    /// Appends the records of the pauses that last, for another file.
    pub(crate) fn put_open_pauses(&self, out: &mut Vec<u8>) {
        for unit in &self.units {
            if let Some(pause) = unit.pause {
                self.put(unit, pause, None, out);
            }
        }
    }

    /// Waits for the thread, but not for long. Nothing is detached or attached any more.
    pub(crate) fn end(&mut self) {
        self.ended.get_or_insert_with(trace_clock::now);
        self.switches.end();
    }

    /// Does what is due, after a pass over all rings. Appends records to `out`.
    pub(crate) fn look(
        &mut self,
        stage: &mut PauseStage,
        attached: &Attached,
        out: &mut Vec<u8>,
    ) -> io::Result<Switched> {
        let done = self.switches.take();
        // After what is done; all hits up to now may have been read, and no later one.
        let now = trace_clock::now();
        let mut detaching = Vec::new();
        let mut switched = Switched::default();
        for SwitchDone { order, result } in done {
            match order.kind {
                SwitchKind::Detach => self.detached(order.unit, &result, stage),
                SwitchKind::Attach => {
                    if self.attached(order.unit, &result, stage, now, out)
                        && let Some(unit) = self.units.get(order.unit)
                    {
                        switched.attached.extend(&unit.ids);
                    }
                }
            }
        }
        let is_urgent = attached.engine.fullest_ring() >= URGENT_FILL;
        let look_time = if is_urgent {
            URGENT_LOOK_TIME
        } else {
            LOOK_TIME
        };
        let is_due = now.saturating_sub(self.looked) >= look_time;
        let due = self.controller.due(now);
        if is_due || !due.is_empty() {
            self.read_losses(attached)?;
        }
        for order in due {
            match order.kind {
                SwitchKind::Attach => {
                    self.controller.begin_attaching(order.unit);
                    self.switches.order(order);
                }
                SwitchKind::Detach => {
                    if let Some(order) = self.end_window(order.unit, stage, now) {
                        detaching.push(order);
                    }
                }
            }
        }
        if is_due {
            self.measure(stage, now);
            if is_urgent {
                self.controller.count_bursts();
            }
            detaching.extend(self.controller.decide(now));
            if now.saturating_sub(self.planned) >= PLAN_TIME {
                self.planned = now;
                self.controller.plan_pauses();
            }
        }
        for order in detaching {
            let first = self.begin_pause(order, stage, out);
            switched.first_paused.extend(first);
        }
        Ok(switched)
    }

    /// Reads how many hits were lost.
    fn read_losses(&mut self, attached: &Attached) -> io::Result<()> {
        for unit in &mut self.units {
            unit.lost = 0;
        }
        for counted in attached.engine.counts()? {
            let unit = self.unit_of_probe.unit(counted.probe);
            if let Some(unit) = unit.and_then(|unit| self.units.get_mut(unit)) {
                unit.lost += counted.count.lost.unwrap_or(0);
            }
        }
        Ok(())
    }

    /// Measures the units that are attached until further notice.
    fn measure(&mut self, stage: &mut PauseStage, now: u64) {
        let ns = now.saturating_sub(self.looked);
        self.looked = now;
        for (number, unit) in self.units.iter_mut().enumerate() {
            if self.controller.is_attached(number) {
                let threads = stage.take_hits(number);
                let counted = unit.counted(&threads, ns);
                self.controller.add(number, counted);
                unit.known_lost = unit.lost;
            }
        }
    }

    /// Ends a window, unless the unit has few hits now. Returns the order to detach it.
    fn end_window(
        &mut self,
        number: usize,
        stage: &mut PauseStage,
        now: u64,
    ) -> Option<SwitchOrder> {
        let unit = self.units.get_mut(number)?;
        let ns = now.saturating_sub(unit.window_from.unwrap_or(now));
        let counted = unit.counted(stage.hits(number)?, ns);
        let order = self.controller.end_window(number, counted, now);
        match order {
            Some(_) => unit.window_ns = Some(ns),
            None => {
                stage.take_hits(number);
                unit.known_lost = unit.lost;
                unit.window_from = Some(now);
            }
        }
        order
    }

    /// Begins a pause. Returns the events, if it is their first one.
    fn begin_pause(
        &mut self,
        order: SwitchOrder,
        stage: &mut PauseStage,
        out: &mut Vec<u8>,
    ) -> Vec<String> {
        let Some(unit) = self.units.get_mut(order.unit) else {
            return Vec::new();
        };
        // No hit that comes later has been read.
        let from = trace_clock::now();
        let pause = OpenPause {
            number: self.next,
            from,
        };
        self.next += unit.ids.len().div_ceil(MAX_PAUSED_IDS) as u64;
        unit.pause = Some(pause);
        unit.pauses += 1;
        let is_first = unit.pauses == 1;
        stage.begin(order.unit, from);
        if let Some(unit) = self.units.get(order.unit) {
            self.put(unit, pause, None, out);
        }
        self.switches.order(order);
        let unit = self.units.get(order.unit).filter(|_| is_first);
        unit.map(|unit| unit.events.clone()).unwrap_or_default()
    }

    /// A unit is detached, and the hits before have been read.
    fn detached(&mut self, number: usize, result: &SwitchResult, stage: &mut PauseStage) {
        let Some(unit) = self.units.get_mut(number) else {
            return;
        };
        let threads = stage.take_hits(number);
        let window = unit.window_ns.take();
        let counted = window.map(|ns| unit.counted(&threads, ns));
        let cost = nanoseconds(result.cost);
        let plan = self.controller.detached(number, cost, counted);
        unit.known_lost = unit.lost;
        let Some(plan) = plan else {
            return;
        };
        let is_gone = plan.recorded == 0.0;
        if unit.pauses == 1 || is_gone && !unit.is_gone {
            self.events.push(planned(unit, plan));
        }
        unit.is_gone = is_gone;
    }

    /// A unit is attached again, or was refused. Returns whether it is attached.
    fn attached(
        &mut self,
        number: usize,
        result: &SwitchResult,
        stage: &mut PauseStage,
        now: u64,
        out: &mut Vec<u8>,
    ) -> bool {
        if let Some(error) = &result.refused {
            self.controller.not_attached(number, now);
            if let Some(unit) = self.units.get_mut(number).filter(|unit| !unit.is_refused) {
                unit.is_refused = true;
                self.events.push(BudgetEvent::NotAttached {
                    events: unit.events.clone(),
                    reason: error.to_string(),
                });
            }
            return false;
        }
        self.controller
            .attached(number, now, nanoseconds(result.cost));
        stage.end(number, now);
        stage.take_hits(number);
        let Some(unit) = self.units.get_mut(number) else {
            return false;
        };
        unit.window_from = Some(now);
        unit.known_lost = unit.lost;
        if let Some(pause) = unit.pause.take() {
            unit.paused_ns += now.saturating_sub(pause.from);
            if let Some(unit) = self.units.get(number) {
                self.put(unit, pause, Some(now), out);
            }
        }
        true
    }

    /// Appends the records of a pause.
    fn put(&self, unit: &BudgetUnit, pause: OpenPause, to_ns: Option<u64>, out: &mut Vec<u8>) {
        let id = SampleId {
            time: trace_clock::now(),
            ..SampleId::default()
        };
        for (number, ids) in (pause.number..).zip(unit.ids.chunks(MAX_PAUSED_IDS)) {
            let pause = Pause {
                number,
                ids: ids.to_vec(),
                from_ns: pause.from,
                to_ns,
            };
            // It has nothing that JSON has not.
            let _ = pause.encode(&id, self.id_type, out);
        }
    }
}

impl BudgetUnit {
    /// Hits in a time, with those that were lost.
    fn counted<'t>(&self, threads: &'t HashMap<i32, u64>, ns: u64) -> CountedHits<'t> {
        let hits = threads.values().sum::<u64>().max(1) as f64;
        let lost = self.lost.saturating_sub(self.known_lost) as f64;
        CountedHits {
            threads,
            ns,
            hit_ns: self.hit_ns as f64 * (1.0 + lost / hits),
        }
    }
}

/// The units of the probes that a recording begins with.
fn units(session: &Session, budget: &Budget, of_probe: &Units) -> Vec<BudgetUnit> {
    let mut units: Vec<BudgetUnit> = Vec::new();
    units.resize_with(of_probe.count(), BudgetUnit::default);
    let attached = &session.attached;
    let probes = attached.probes.iter().zip(&attached.attrs).enumerate();
    for (at, (probe, attr)) in probes {
        let Some(unit) = of_probe.unit(at).and_then(|unit| units.get_mut(unit)) else {
            continue;
        };
        let event = probe.event();
        if !unit.events.contains(&event) {
            unit.events.push(event);
        }
        unit.ids.extend(attr.site_ids.iter().flatten());
        let hit_ns = budget.costs.of_probe(probe, session.options.engine.graph);
        unit.hit_ns = unit.hit_ns.max(hit_ns);
    }
    units
}

fn planned(unit: &BudgetUnit, plan: PausePlan) -> BudgetEvent {
    BudgetEvent::Paused(PausePlanned {
        events: unit.events.clone(),
        takes: ThreadShare {
            rate: plan.rate,
            thread: plan.thread,
            thread_name: thread_name(plan.thread),
            share: plan.share,
        },
        recorded: plan.recorded,
    })
}

/// The name of a thread; empty if it has ended.
pub(crate) fn thread_name(tid: i32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{tid}/comm"));
    name.unwrap_or_default().trim_end().to_owned()
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Switches {
    fn start(switcher: UnitSwitcher) -> io::Result<Self> {
        let (orders, ordered) = channel::<SwitchOrder>();
        let (sender, done) = channel();
        let (woken, wake) = io::pipe()?;
        thread::Builder::new()
            .name("budget".to_owned())
            .spawn(move || switch_all(&switcher, &ordered, &sender, &wake))?;
        Ok(Self {
            orders: Some(orders),
            done,
            woken,
        })
    }

    fn order(&self, order: SwitchOrder) {
        if let Some(orders) = &self.orders {
            // The thread ends when this is dropped.
            let _ = orders.send(order);
        }
    }

    /// Takes the switches that are done.
    fn take(&mut self) -> Vec<SwitchDone> {
        let mut all = Vec::new();
        while let Ok(done) = self.done.try_recv() {
            // It is written after that.
            let _ = self.woken.read(&mut [0]);
            all.push(done);
        }
        all
    }

    fn end(&mut self) {
        self.orders = None;
        let deadline = Instant::now() + END_LIMIT;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.done.recv_timeout(left) {
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

/// Runs in the thread.
fn switch_all(
    switcher: &UnitSwitcher,
    ordered: &Receiver<SwitchOrder>,
    sender: &Sender<SwitchDone>,
    mut wake: &PipeWriter,
) {
    for order in ordered {
        let result = match order.kind {
            SwitchKind::Detach => switcher.detach(order.unit),
            SwitchKind::Attach => switcher.attach(order.unit),
        };
        // The recorder may have ended.
        if sender.send(SwitchDone { order, result }).is_err() || wake.write_all(&[0]).is_err() {
            return;
        }
    }
}
