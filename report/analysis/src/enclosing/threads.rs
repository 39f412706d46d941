//! The spans that are open on each thread.

use std::sync::Arc;

use foldhash::HashMap;
use usdtrec_format::Value;
use usdtrec_trace::added::added_argument::{AddedPart, AddedValues};
use usdtrec_trace::added::hit_step::StepPlace;
use usdtrec_trace::process::ProcessNumber;
use usdtrec_trace::session::TraceSession;

use crate::enclosing::survey::{KnownUntil, Survey};
use crate::spans::matcher::MatchKey;
use crate::spans::pair_pauses::PairPauses;

/// Threads that are kept in memory; beyond them, those without an open span are forgotten.
const MAX_THREADS: usize = 1 << 16;

/// A span that began.
#[derive(Clone, Debug)]
pub(crate) struct BegunSpan {
    /// Its number among all.
    pub(crate) number: u64,
    /// The thread that it began on.
    pub(crate) tid: i32,
    /// The process of that thread.
    pub(crate) process: ProcessNumber,
    pub(crate) values: Arc<[Value]>,
}

/// A span that is open on a thread.
#[derive(Debug)]
pub(crate) struct OpenOnThread {
    pub(crate) span: BegunSpan,
    pub(crate) key: MatchKey,
    pub(crate) part: usize,
    /// When it began, ns.
    pub(crate) time: u64,
}

/// The spans that are open on each thread.
#[derive(Debug, Default)]
pub(crate) struct OpenThreads {
    threads: HashMap<i32, ThreadSpans>,
    pauses: PairPauses,
}

/// The spans that are open on a thread, the oldest first.
#[derive(Debug, Default)]
struct ThreadSpans {
    open: Vec<OpenOnThread>,
    /// The process whose they are.
    process: ProcessNumber,
    /// What its hits get, if nothing begins or ends.
    values: Option<Arc<AddedValues>>,
    /// Time after the last for which that is so, ns; 0 if it is to be found anew.
    until: u64,
}

impl OpenThreads {
    /// Without threads.
    pub(crate) fn new(pauses: PairPauses) -> Self {
        Self {
            pauses,
            ..Self::default()
        }
    }

    /// Takes pauses of a stream that have become known.
    pub(crate) fn renew_pauses(&mut self, session: &TraceSession) {
        self.pauses.renew(session);
        for thread in self.threads.values_mut() {
            thread.until = 0;
        }
    }

    /// A span begins. `is_flat` says that it ends those that are open under its key.
    pub(crate) fn begin(&mut self, begun: OpenOnThread, place: StepPlace, is_flat: bool) {
        if self.threads.len() >= MAX_THREADS {
            self.threads.retain(|_, thread| !thread.open.is_empty());
        }
        let thread = self.threads.entry(place.tid).or_default();
        thread.run(place.process);
        if is_flat {
            thread.open.retain(|open| open.key != begun.key);
        }
        thread.open.push(begun);
        thread.until = 0;
    }

    /// A span has ended.
    pub(crate) fn end(&mut self, span: &BegunSpan) {
        if let Some(thread) = self.threads.get_mut(&span.tid) {
            thread.open.retain(|open| open.span.number != span.number);
            thread.until = 0;
        }
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.threads.clear();
    }

    /// What a hit gets that neither begins nor ends a span; `None` for nothing.
    pub(crate) fn values(
        &mut self,
        place: StepPlace,
        parts: usize,
        survey: Option<&Survey>,
    ) -> Option<Arc<AddedValues>> {
        let thread = match self.threads.get_mut(&place.tid) {
            Some(thread) => thread,
            // Threads without spans need no memory, unless something is known of them.
            None => {
                let survey = survey?;
                let mut parts = 0..parts;
                parts.find(|&part| survey.lost(part, place.tid, place.time).is_lost)?;
                self.threads.entry(place.tid).or_default()
            }
        };
        thread.run(place.process);
        if place.time >= thread.until {
            thread.find(place, parts, survey, &self.pauses);
        }
        thread.values.clone()
    }
}

impl ThreadSpans {
    /// Spans of a process that had the number before are open no more.
    fn run(&mut self, process: ProcessNumber) {
        if self.process != process {
            self.process = process;
            self.open.clear();
            self.until = 0;
        }
    }

    fn find(
        &mut self,
        place: StepPlace,
        parts: usize,
        survey: Option<&Survey>,
        pauses: &PairPauses,
    ) {
        let mut values = AddedValues::default();
        self.until = u64::MAX;
        for part in 0..parts {
            let mut newest = self.open.iter().rev().filter(|open| open.part == part);
            if let Some(open) = newest.next() {
                if survey.is_some_and(|survey| survey.is_overlapping(open.key.pair))
                    && newest.any(|other| other.key != open.key)
                {
                    values.set(part, AddedPart::Unknown);
                    continue;
                }
                let pause = pauses.between(open.key.pair, open.time, u64::MAX);
                if let Some(pause) = pause {
                    // It may have ended in the pause, and another one may have begun.
                    if pause.first < place.time {
                        values.set(part, AddedPart::Unknown);
                        continue;
                    }
                    self.until = self.until.min(pause.first.saturating_add(1));
                }
                values.set(part, AddedPart::Known(Arc::clone(&open.span.values)));
            } else if let Some(survey) = survey {
                let KnownUntil { is_lost, until } = survey.lost(part, place.tid, place.time);
                self.until = self.until.min(until);
                if is_lost {
                    values.set(part, AddedPart::Unknown);
                }
            }
        }
        self.values = (!values.0.is_empty()).then(|| Arc::new(values));
    }
}
