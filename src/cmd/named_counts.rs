//! Counts by stack: the thread that reads the stream of the recorder knows the processes, so it names the stacks and shows the counts.
//!
//! Counts wait until all is settled that was known when they were read. There the stream has a mark of that time.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Condvar, Mutex, PoisonError};

use usdtrec_record::{
    AggregateKey, Aggregation, CallGraph, CallGraphMethod, HitTotals, MeasuredArgument, SlowSpans,
};
use usdtrec_report::stat::{self, CountReader, StackNamer};

use super::kept_ends::keep_ends;
use super::live::{Aggregated, CountView, Live};
use super::stat::group_key::KnownStacks;
use crate::cli::{CaptureArgs, SpanStatArgs};
use crate::mutex::locked;
use crate::terminal::Usage;
use crate::units::least_ns;

/// Maximum number of counts that wait. They are totals, so those of an interval that is left out are in the next one; its extremes are added to that.
const MAX_WAITING: usize = 16;

/// How stacks are found that are keys: programs follow frame pointers.
const BY_FRAME_POINTERS: CallGraph = CallGraph {
    method: CallGraphMethod::FramePointers,
    frames: CallGraph::USUAL_FRAMES,
    rate: None,
};

/// Runs a verb whose counts `view` shows. If a key is the stack, `stacks` gets the names.
pub(super) fn run<'v>(
    verb: Live<'v>,
    aggregation: Aggregation,
    view: &'v mut (dyn CountView + Send),
    stacks: KnownStacks,
) -> anyhow::Result<ExitCode> {
    let path = Path::new(verb.verb);
    if !aggregation.by.contains(&AggregateKey::Stack) {
        let verb = Live {
            aggregated: Some(Aggregated {
                aggregation,
                view: Box::new(view),
            }),
            ..verb
        };
        return verb.run(|pipe, sources| stat::read(pipe, path, sources, None));
    }
    Usage::ensure(
        verb.slow_spans.is_none(),
        "--by stack counts hits, and the stacks that spans begin with are not kept: leave out --span",
    )?;
    let counts = NamedCounts {
        queue: Mutex::default(),
        changed: Condvar::new(),
        view: Mutex::new(view),
        stacks,
    };
    let verb = Live {
        graph: Some(BY_FRAME_POINTERS),
        aggregated: Some(Aggregated {
            aggregation,
            view: Box::new(Counting(&counts)),
        }),
        ..verb
    };
    verb.run(|pipe, sources| stat::read(pipe, path, sources, Some(&mut Naming(&counts))))
}

/// Counts on their way from the recorder to the view.
struct NamedCounts<'v> {
    queue: Mutex<Queue>,
    changed: Condvar,
    view: Mutex<&'v mut (dyn CountView + Send)>,
    stacks: KnownStacks,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<HitTotals>,
    /// All counts, once the recorder has passed them on, if they are known.
    last: Option<Option<HitTotals>>,
    /// Time of the counts before those that were shown last, ns of the trace's clock: all stacks of hits up to it have names.
    named_until: u64,
    /// Time of the counts that were shown last.
    shown_until: u64,
    /// What the view has failed with.
    failed: Option<io::Error>,
    has_failed: bool,
    /// Whether the view has ended.
    has_ended: bool,
    /// Whether the thread that reads the stream shows no more.
    is_over: bool,
}

impl NamedCounts<'_> {
    /// Names the stacks of counts, and shows them.
    fn show(&self, counted: &HitTotals, names: &mut StackNamer<'_>) {
        self.stacks.learn(counted, names);
        let has_failed = locked(&self.queue).has_failed;
        let shown = match has_failed {
            true => Ok(()),
            false => locked(&self.view).show(counted),
        };
        let mut queue = locked(&self.queue);
        queue.named_until = std::mem::replace(&mut queue.shown_until, counted.time);
        queue.note(shown);
    }

    /// Waits for all counts, names their stacks, and shows them.
    fn end(&self, names: &mut StackNamer<'_>) {
        let queue = locked(&self.queue);
        let queue = self.changed.wait_while(queue, |queue| queue.last.is_none());
        let mut queue = queue.unwrap_or_else(PoisonError::into_inner);
        let last = queue.last.take().flatten();
        let last = last.filter(|_| !queue.has_failed);
        drop(queue);
        if let Some(last) = &last {
            self.stacks.learn(last, names);
        }
        let shown = locked(&self.view).end(last.as_ref());
        let mut queue = locked(&self.queue);
        queue.has_ended = true;
        queue.note(shown);
    }
}

impl Queue {
    /// Appends counts. Of too many, the first are left out.
    fn push(&mut self, counted: HitTotals) {
        self.waiting.push_back(counted);
        if self.waiting.len() > MAX_WAITING
            && let Some(left_out) = self.waiting.pop_front()
            && let Some(next) = self.waiting.front_mut()
        {
            keep_ends(&left_out, next);
        }
    }

    /// All counts, after those that wait still, which are not shown.
    fn last_of_all(&mut self, last: &HitTotals) -> HitTotals {
        let mut last = last.clone();
        for left_out in self.waiting.drain(..) {
            keep_ends(&left_out, &mut last);
        }
        last
    }

    fn note(&mut self, shown: io::Result<()>) {
        if let Err(error) = shown {
            self.has_failed = true;
            self.failed = Some(error);
        }
    }

    /// What the view has failed with since the last call.
    fn take_failure(&mut self) -> io::Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

/// The side of the recorder.
struct Counting<'c, 'v>(&'c NamedCounts<'v>);

impl CountView for Counting<'_, '_> {
    fn show(&mut self, counted: &HitTotals) -> io::Result<()> {
        let mut queue = locked(&self.0.queue);
        queue.push(counted.clone());
        queue.take_failure()
    }

    /// Returns when all counts are shown.
    fn end(&mut self, counted: Option<&HitTotals>) -> io::Result<()> {
        let counts = self.0;
        let mut queue = locked(&counts.queue);
        queue.last = Some(counted.cloned());
        counts.changed.notify_all();
        let queue = counts.changed.wait_while(queue, |queue| !queue.is_over);
        let mut queue = queue.unwrap_or_else(PoisonError::into_inner);
        let failed = queue.take_failure();
        if queue.has_ended {
            return failed;
        }
        // The stream could not be read.
        let last = counted.map(|counted| queue.last_of_all(counted));
        drop(queue);
        failed.and(locked(&counts.view).end(last.as_ref()))
    }

    fn give_up(&mut self) {
        locked(&self.0.queue).last = Some(None);
        self.0.changed.notify_all();
    }
}

/// The side of the thread that reads the stream.
struct Naming<'c, 'v>(&'c NamedCounts<'v>);

impl CountReader for Naming<'_, '_> {
    fn settle(&mut self, until: u64, names: &mut StackNamer<'_>) -> u64 {
        let next = || {
            let mut queue = locked(&self.0.queue);
            let is_known = queue.waiting.front()?.time <= until;
            is_known.then(|| queue.waiting.pop_front())?
        };
        while let Some(counted) = next() {
            self.0.show(&counted, names);
        }
        if until == u64::MAX {
            self.0.end(names);
        }
        locked(&self.0.queue).named_until
    }
}

impl Drop for Naming<'_, '_> {
    fn drop(&mut self) {
        locked(&self.0.queue).is_over = true;
        self.0.changed.notify_all();
    }
}

/// The spans that are aggregated; `None` for none.
///
/// # Errors
/// [`Usage`] if a filter asks for spans and there are none.
pub(super) fn spans(
    args: &SpanStatArgs,
    capture: &CaptureArgs,
) -> anyhow::Result<Option<SlowSpans>> {
    if args.span.is_empty() {
        Usage::ensure(
            capture.span_least == 0,
            "--filter 'span > TIME' needs --span",
        )?;
        return Ok(None);
    }
    Ok(Some(SlowSpans {
        spans: args.span.clone(),
        key: args.key.clone(),
        least: least_ns(args.min.as_ref(), capture.span_least)?,
        is_required: true,
    }))
}

/// What is measured, with the numbers of spans if there are any: with `--off-cpu` the parts of their durations, and last these.
pub(super) fn with_durations(
    mut measured: Vec<MeasuredArgument>,
    spans: Option<&SlowSpans>,
    capture: &CaptureArgs,
) -> Vec<MeasuredArgument> {
    if spans.is_some() {
        let parts = capture.off_cpu.then(MeasuredArgument::parts);
        measured.extend(parts.into_iter().flatten());
        measured.push(MeasuredArgument::duration());
    }
    measured
}

#[cfg(test)]
mod tests {
    use super::super::kept_ends::tests::{counted, ends};
    use super::*;

    #[test]
    fn counts_that_are_left_out_keep_their_extremes() {
        let mut queue = Queue::default();
        for time in 0..MAX_WAITING as u64 + 2 {
            let number = i128::from(time);
            queue.push(counted(time, &[(7, Some((number, number)))]));
        }
        assert_eq!(queue.waiting.len(), MAX_WAITING);
        let first = &queue.waiting[0];
        assert_eq!((first.time, ends(first)), (2, vec![Some((0, 2))]));
        let last = queue.last_of_all(&counted(99, &[(7, None)]));
        let greatest = MAX_WAITING as i128 + 1;
        assert_eq!((last.time, ends(&last)), (99, vec![Some((0, greatest))]));
        assert!(queue.waiting.is_empty());
    }
}
