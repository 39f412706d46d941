//! Faults of a trace, or of an answer about it: damage, unknown samples, disorder.

use std::collections::BTreeSet;
use std::path::PathBuf;

use usdtrec_format::schema::Disagreement;
use usdtrec_format::trace::{Damage, Shortfall};

use crate::events::outcome::ReadOutcome;
use crate::events::selection::SampleFilter;
use crate::session::TraceSession;
use crate::session::joined_files::{JoinedFiles, PlacedDamage};
use crate::session::recorded_part::PausedProbe;

/// Places of damage that are kept of a stream, which may never end.
const MAX_KEPT: usize = 4096;

/// The faults that were found in a trace and in an answer about it.
#[derive(Clone, Debug, Default)]
pub struct Notices {
    /// Damage of the file, in the order of the file.
    pub damage: Vec<Damage>,
    /// The files that the trace is made of, which offsets of damage are in the concatenation of.
    pub files: JoinedFiles,
    /// Files of directories and globs that are not in the trace, because they are no traces or are empty.
    pub left_out: Vec<PathBuf>,
    /// Number of further places with damage in a stream, beyond those in `damage`.
    pub more_damage: u64,
    /// Samples that belong to no event of the trace or are shorter than their event says.
    pub unknown: u64,
    /// Whether samples may follow later ones: too many blocks overlap to wait for all of them.
    pub disordered: bool,
    /// Begins of spans that were not matched, because too many spans were open at once.
    pub forgotten: u64,
    /// Spans of a stream that overlap on their threads, and were matched by the thread.
    pub overlaps: Vec<SpanOverlap>,
    /// Pids that several processes of one name had, one after the other, where processes are grouped by pid.
    pub reused_pids: u64,
    /// Where schemas that were given do not agree with the trace.
    pub disagreements: Vec<Disagreement>,
    /// What the recorder found not to work in recorded processes.
    pub shortfalls: Vec<Shortfall>,
    /// Probes of which a part of the hits was recorded.
    pub paused: Vec<PausedProbe>,
    /// Arguments of events that were added to a stream, for which its columns, which were printed before, have no place.
    pub without_column: BTreeSet<String>,
    /// Why an export is empty.
    pub empty: Option<EmptyExport>,
}

/// Why an export has nothing of what its format shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmptyExport {
    /// No hit was selected.
    NoHits,
    /// The format has spans alone.
    NoSpans,
}

/// Spans that overlap on their threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanOverlap {
    /// Name of the spans.
    pub span: String,
    /// The argument that identifies them.
    pub argument: String,
}

impl Notices {
    /// The faults of an open trace.
    pub fn new(session: &TraceSession) -> Self {
        Self {
            damage: session.damage().to_vec(),
            files: session.files().clone(),
            left_out: session.left_out().to_vec(),
            disagreements: session.events().disagreements.clone(),
            shortfalls: session.shortfalls().cloned().collect(),
            ..Self::default()
        }
    }

    /// Sets which of the selected probes were detached within the selected time.
    pub fn set_paused(&mut self, session: &TraceSession, filter: &SampleFilter) {
        self.paused = PausedProbe::selected(session, filter);
    }

    /// The damage with its files.
    pub fn placed_damage(&self) -> impl Iterator<Item = PlacedDamage> {
        self.damage.iter().map(|damage| self.files.place(damage))
    }

    /// Adds what went wrong in a walk.
    pub fn add(&mut self, outcome: ReadOutcome) {
        self.damage.extend(outcome.damage);
        self.damage.sort_by_key(|damage| damage.offset);
        self.damage.dedup();
        self.unknown += outcome.unknown;
        self.disordered |= outcome.forced;
    }

    /// Adds what came of one of several walks over the same.
    pub fn add_once(&mut self, outcome: ReadOutcome) {
        let unknown = self.unknown.max(outcome.unknown);
        self.add(outcome);
        self.unknown = unknown;
    }

    /// Adds what was found wrong while another question about the same trace was answered.
    pub fn join(&mut self, other: Self) {
        self.damage.extend(other.damage);
        self.damage.sort_by_key(|damage| damage.offset);
        self.damage.dedup();
        self.more_damage = self.more_damage.max(other.more_damage);
        self.unknown = self.unknown.max(other.unknown);
        self.disordered |= other.disordered;
        self.forgotten = self.forgotten.max(other.forgotten);
        self.reused_pids = self.reused_pids.max(other.reused_pids);
    }

    /// Adds begins of spans that were not matched.
    pub fn add_forgotten(&mut self, spans: u64) {
        self.forgotten += spans;
    }

    /// Adds what was found wrong in a stream.
    pub(crate) fn add_damage(&mut self, damage: Vec<Damage>) {
        let room = MAX_KEPT.saturating_sub(self.damage.len());
        self.more_damage += damage.len().saturating_sub(room) as u64;
        self.damage.extend(damage.into_iter().take(room));
    }
}
