//! A hit as plain data.

use std::ops::Range;

use usdtrec_format::Value;
use usdtrec_format::perf::Sample;
use usdtrec_trace::field_value::{FieldSource, ThreadFacts};
use usdtrec_trace::process::hit_names::HitNames;
use usdtrec_trace::process::names::NameId;
use usdtrec_trace::process::process_field::ProcessFacts;
use usdtrec_trace::session::hit::Hit;
use usdtrec_trace::session::ids::SampleTarget;
use usdtrec_trace::session::resolver::Resolver;
use usdtrec_trace::unwind::stack::StackPart;

/// A hit without its values and its stack.
#[derive(Clone, Copy, Debug)]
pub struct HitRow {
    /// Index of the event among those of the trace.
    pub event: usize,
    /// On the trace's clock, ns.
    pub time: u64,
    /// The process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
    /// `None` where the samples of the event have none.
    pub cpu: Option<u32>,
    /// Address of the hit.
    pub ip: u64,
    /// Index of the site among those of the trace; `None` if it is not known.
    pub site: Option<u32>,
    /// What the thread is called; `None` if the trace does not say.
    pub comm: Option<NameId>,
    /// Strings about the process.
    pub process: ProcessFacts,
}

impl HitRow {
    /// The sample, as far as it is known without arguments and stack.
    #[must_use]
    pub fn sample(&self) -> Sample<'static> {
        Sample {
            ip: self.ip,
            pid: self.pid,
            tid: self.tid,
            time: self.time,
            cpu: self.cpu.unwrap_or_default(),
            ..Sample::default()
        }
    }

    /// Its event and site.
    #[must_use]
    pub const fn target(&self) -> SampleTarget {
        SampleTarget {
            event: self.event as u32,
            site: self.site,
        }
    }

    /// What is known of its thread.
    #[must_use]
    pub const fn thread(&self) -> ThreadFacts {
        ThreadFacts {
            comm: self.comm,
            process: self.process,
        }
    }

    /// What its fields are got from; `sample` is its [`sample`](Self::sample).
    pub const fn source<'h, 's>(
        &self,
        sample: &'h Sample<'h>,
        resolver: &'h mut Resolver<'s>,
    ) -> FieldSource<'h, 's> {
        let target = self.target();
        FieldSource {
            resolver,
            hit: Hit { target, sample },
            known: Some(self.thread()),
        }
    }
}

/// A hit of a window: its values and its stack are in lists of all hits.
#[derive(Clone, Debug)]
struct TableHit {
    row: HitRow,
    values: Range<usize>,
    stack: Range<usize>,
}

/// A hit with its values and its stack.
#[derive(Clone, Copy, Debug)]
pub struct RowHit<'a> {
    /// The hit.
    pub row: &'a HitRow,
    /// Of each argument of the event, its value or why that is missing.
    pub values: &'a [Value],
    /// The innermost frame first; empty if the event has no stacks, or none are requested.
    pub stack: &'a [StackPart],
}

/// A hit that outlives its window.
#[derive(Clone, Debug)]
pub(crate) struct OwnedHit {
    row: HitRow,
    values: Vec<Value>,
    stack: Vec<StackPart>,
    /// Number of the hit among all that were read, in the order of time.
    pub(crate) number: u64,
}

/// Hits of a window.
#[derive(Debug, Default)]
pub(crate) struct HitTable {
    hits: Vec<TableHit>,
    values: Vec<Value>,
    stacks: Vec<StackPart>,
}

impl HitTable {
    /// Appends a hit; gives its index.
    // A copy of the row by wide words would wait until its fields are stored.
    #[inline(always)]
    pub(crate) fn push(&mut self, row: HitRow, values: &[Value], stack: &[StackPart]) -> usize {
        let first_value = self.values.len();
        self.values.extend_from_slice(values);
        let first_part = self.stacks.len();
        self.stacks.extend_from_slice(stack);
        self.hits.push(TableHit {
            row,
            values: first_value..self.values.len(),
            stack: first_part..self.stacks.len(),
        });
        self.hits.len() - 1
    }

    /// Number of hits.
    pub(crate) fn len(&self) -> usize {
        self.hits.len()
    }

    /// A hit by its index.
    pub(crate) fn hit(&self, index: usize) -> Option<RowHit<'_>> {
        let hit = self.hits.get(index)?;
        Some(RowHit {
            row: &hit.row,
            values: self.values.get(hit.values.clone()).unwrap_or_default(),
            stack: self.stacks.get(hit.stack.clone()).unwrap_or_default(),
        })
    }

    /// Empties it; the memory stays.
    pub(crate) fn clear(&mut self) {
        self.hits.clear();
        self.values.clear();
        self.stacks.clear();
    }
}

impl RowHit<'_> {
    /// A copy that outlives the window.
    pub(crate) fn owned(self, number: u64) -> Box<OwnedHit> {
        Box::new(OwnedHit {
            row: *self.row,
            values: self.values.to_vec(),
            stack: self.stack.to_vec(),
            number,
        })
    }
}

impl OwnedHit {
    /// The hit.
    pub(crate) fn hit(&self) -> RowHit<'_> {
        RowHit {
            row: &self.row,
            values: &self.values,
            stack: &self.stack,
        }
    }

    /// The numbers of its names, which are replaced when others are forgotten.
    pub(crate) const fn names_mut(&mut self) -> HitNames<'_> {
        HitNames {
            comm: &mut self.row.comm,
            recorded: &mut self.row.process.recorded,
        }
    }
}
