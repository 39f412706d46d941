//! Finding the spans that enclose hits and the holders of locks, one hit after the other in the order of time.

use std::sync::Arc;

use foldhash::HashMap;
use usdtrec_trace::added::AddedState;
use usdtrec_trace::added::added_argument::{AddedPart, AddedValues};
use usdtrec_trace::added::hit_step::{HitStep, LockStep, SpanStep, StepPlace};
use usdtrec_trace::session::TraceSession;

use crate::enclosing::one_hit::{begun_frame, match_key, pending_end, segment};
use crate::enclosing::survey::Survey;
use crate::enclosing::threads::{BegunSpan, OpenOnThread, OpenThreads};
use crate::holders::lock_table::LockTable;
use crate::spans::matcher::OpenSpans;
use crate::spans::nesting::Nesting;
use crate::spans::pair_pauses::PairPauses;
use crate::spans::stack::{Ended, Frame, Totals};

/// The spans that are open, and the locks that are held, while hits are taken.
#[derive(Debug)]
pub(crate) struct ContextState {
    open: OpenSpans<BegunSpan>,
    threads: OpenThreads,
    /// What is known of the whole trace; `None` of a stream.
    survey: Option<Arc<Survey>>,
    /// Of each pair, whether spans that have ended were within each other.
    nesting: HashMap<u32, Nesting>,
    /// Number of parts. In a stream, they may become more.
    parts: usize,
    /// Number of spans that began.
    begun: u64,
    locks: LockTable,
}

/// Takes the spans that an end closes.
struct Closing<'c> {
    threads: &'c mut OpenThreads,
    nesting: &'c mut Nesting,
    /// The one that ended.
    ended: Option<BegunSpan>,
}

impl Totals<BegunSpan> for Closing<'_> {
    fn unfinished(&mut self, frame: &Frame<BegunSpan>, _: u64) {
        self.threads.end(&frame.what);
    }

    fn paused(&mut self, frame: Frame<BegunSpan>, _: u64) {
        self.threads.end(&frame.what);
    }

    fn finished(&mut self, frame: &mut Frame<BegunSpan>, _: Ended) {
        self.nesting.add(frame);
        self.threads.end(&frame.what);
        self.ended = Some(frame.what.clone());
    }
}

impl ContextState {
    /// `parts` is the number of parts.
    pub(crate) fn new(
        survey: Option<Arc<Survey>>,
        parts: usize,
        pauses: &PairPauses,
        locks: LockTable,
    ) -> Self {
        Self {
            open: OpenSpans::new(false, pauses.clone()),
            threads: OpenThreads::new(pauses.clone()),
            survey,
            nesting: HashMap::default(),
            parts,
            begun: 0,
            locks,
        }
    }

    /// A span begins.
    fn begin(&mut self, place: StepPlace, step: &SpanStep) {
        let Some(begin) = &step.begin else {
            return;
        };
        // In a stream that never ends, so may spans never do.
        if self.open.is_full(1) {
            self.threads.clear();
        }
        let nesting = self.nesting.entry(step.pair).or_default();
        let is_flat = match &self.survey {
            Some(survey) => survey.is_flat(step.pair),
            None => nesting.is_flat_unless(begin.is_call),
        };
        self.begun += 1;
        let span = BegunSpan {
            number: self.begun,
            tid: place.tid,
            process: place.process,
            values: Arc::clone(&begin.values),
        };
        let key = match_key(step);
        let open = OpenOnThread {
            span: span.clone(),
            key,
            part: step.part,
            time: place.time,
        };
        self.threads.begin(open, place, is_flat);
        let mut closing = Closing {
            threads: &mut self.threads,
            nesting,
            ended: None,
        };
        let segment = segment(key, Some(begun_frame(step, place.time, span)));
        self.open.take(segment, None, &mut closing);
    }

    /// A span ends. Returns what of it the hit gets that ends it.
    fn end(&mut self, place: StepPlace, step: &SpanStep) -> AddedPart {
        let key = match_key(step);
        let end = pending_end(step, place.time);
        let mut closing = Closing {
            threads: &mut self.threads,
            nesting: self.nesting.entry(step.pair).or_default(),
            ended: None,
        };
        self.open.take(segment(key, None), Some(&end), &mut closing);
        match closing.ended {
            // The thread of another process had the same number.
            Some(span) if span.tid == place.tid && span.process != place.process => {
                AddedPart::Unknown
            }
            Some(span) => AddedPart::Known(span.values),
            None => AddedPart::Unknown,
        }
    }
}

impl AddedState for ContextState {
    fn take(&mut self, place: StepPlace, steps: Vec<HitStep>) -> Option<Arc<AddedValues>> {
        let mut changed = Vec::new();
        let mut locks = Vec::new();
        for step in steps {
            match step {
                HitStep::Span(step) => self.take_span(place, &step, &mut changed),
                HitStep::Lock(step) => locks.push(step),
            }
        }
        let values = self
            .threads
            .values(place, self.parts, self.survey.as_deref());
        let values = with_parts(values, changed);
        self.take_locks(place, locks, values)
    }

    fn renew_pauses(&mut self, session: &TraceSession) {
        self.open.pauses.renew(session);
        self.threads.renew_pauses(session);
        self.locks.renew_pauses(session);
    }
}

impl ContextState {
    /// A span begins or ends. Adds what the hit gets of one that it ends.
    fn take_span(
        &mut self,
        place: StepPlace,
        step: &SpanStep,
        changed: &mut Vec<(usize, AddedPart)>,
    ) {
        self.parts = self.parts.max(step.part + 1);
        if step.begin.is_some() {
            return self.begin(place, step);
        }
        let values = self.end(place, step);
        // The hit may be the end of spans of other pairs, too: it is in the one that it ends.
        match changed.iter_mut().find(|(part, _)| *part == step.part) {
            Some((_, known)) if *known == AddedPart::Unknown => *known = values,
            Some(_) => {}
            None => changed.push((step.part, values)),
        }
    }

    /// Locks are waited for, acquired and released. `values` are those of the spans that the hit is in; returns them with those of the holders.
    fn take_locks(
        &mut self,
        place: StepPlace,
        locks: Vec<LockStep>,
        values: Option<Arc<AddedValues>>,
    ) -> Option<Arc<AddedValues>> {
        let mut changed = Vec::new();
        for step in locks {
            let holder = self.locks.take(place, step, values.as_ref());
            changed.extend(holder.map(|holder| (holder.part, holder.values)));
        }
        with_parts(values, changed)
    }
}

/// Values with some parts replaced.
fn with_parts(
    values: Option<Arc<AddedValues>>,
    changed: Vec<(usize, AddedPart)>,
) -> Option<Arc<AddedValues>> {
    if changed.is_empty() {
        return values;
    }
    let mut values = values.map_or_else(AddedValues::default, Arc::unwrap_or_clone);
    for (part, of_part) in changed {
        values.set(part, of_part);
    }
    Some(Arc::new(values))
}
