//! Lost events.

use usdtrec_format::trace::{Shortfall, ShortfallKind};
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;

/// How losses are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossSource {
    /// The recorder counted them when it ended.
    AtTheEnd,
    /// The recorder did not end, or has not yet: it had counted them at its last flush.
    AtTheLastFlush,
    /// The sum of the kernel's LOST records, of a recorder that counts nothing itself.
    KernelLostRecords,
    /// The recorder counts, but was killed before it wrote the counts: there are only the kernel's LOST records.
    Unknown,
}

/// Why lost hits are not all counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Uncounted {
    /// As the recorder wrote into the trace.
    Recorder(String),
    /// CPUs went offline or came online while perf events recorded.
    CpusChanged,
    /// The recorder found processes in which probes do not work.
    Shortfalls,
}

/// Events lost, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Losses {
    /// Losses of each row.
    pub rows: Vec<u64>,
    /// Of no row.
    pub others: u64,
    /// How they are known.
    pub counted: LossSource,
    /// Whether these are all; else there were at least so many.
    pub exact: bool,
    /// Why there may be lost or doubled hits that are not counted. Without a reason, the recorder of losses that are not exact was killed
    /// before it counted them.
    pub uncounted: Option<Uncounted>,
}

impl Losses {
    /// The losses of a trace, by the probes of these rows.
    pub fn new(session: &TraceSession, rows: &Rows) -> Self {
        let mut losses = Self {
            rows: vec![0; rows.rows.len()],
            others: 0,
            counted: LossSource::AtTheEnd,
            exact: true,
            uncounted: None,
        };
        let definitions = session.info().definitions.as_ref();
        if let Some(why) = definitions.and_then(|definitions| definitions.uncounted.as_ref()) {
            losses.exact = false;
            losses.uncounted = Some(Uncounted::Recorder(why.clone()));
        } else if session.trace().cpus_changed() {
            losses.exact = false;
            losses.uncounted = Some(Uncounted::CpusChanged);
        } else if session.shortfalls().any(lacks_hits) {
            losses.exact = false;
            losses.uncounted = Some(Uncounted::Shortfalls);
        }
        if let Some(exact) = session.trace().losses() {
            for loss in exact {
                losses.add(rows, Some(loss.event), loss.lost);
            }
            return losses;
        }
        losses.exact = false;
        if let Some(so_far) = session.trace().losses_so_far() {
            losses.counted = LossSource::AtTheLastFlush;
            for loss in so_far {
                losses.add(rows, Some(loss.event), loss.lost);
            }
            return losses;
        }
        losses.counted = counted(session);
        for (event, &lost) in session.lost_by_event() {
            losses.add(rows, event.map(|event| event as usize), lost);
        }
        losses
    }

    fn add(&mut self, rows: &Rows, event: Option<usize>, lost: u64) {
        let row = event.and_then(|event| *rows.of_event.get(event)?);
        let sum = row.and_then(|row| self.rows.get_mut(row));
        let sum = sum.unwrap_or(&mut self.others);
        // Files may claim any number.
        *sum = sum.saturating_add(lost);
    }

    /// A number of losses, unless it is 0 only because the recorder did not count.
    pub fn known(&self, lost: u64) -> Option<u64> {
        known(self.counted, lost)
    }

    /// All together.
    pub fn total(&self) -> u64 {
        let sum = |all: u64, lost: &u64| all.saturating_add(*lost);
        self.rows.iter().fold(self.others, sum)
    }
}

/// Whether hits of attached probes are missing because of a shortfall. Of files that were not read, none are attached.
fn lacks_hits(shortfall: &Shortfall) -> bool {
    use ShortfallKind::{BreakpointLeft, NotRead, SemaphoreLeft, ShortSpans};
    !matches!(
        shortfall.kind,
        BreakpointLeft | NotRead | SemaphoreLeft | ShortSpans
    )
}

/// Number of lost hits of some events, as far as it is known; `None` if it is not known.
pub(crate) fn lost(session: &TraceSession, of: impl Fn(usize) -> bool) -> Option<u64> {
    let sum = |all: u64, lost: u64| all.saturating_add(lost);
    let trace = session.trace();
    match trace.losses().or_else(|| trace.losses_so_far()) {
        Some(counted) => {
            let counted = counted.iter().filter(|loss| of(loss.event));
            Some(counted.map(|loss| loss.lost).fold(0, sum))
        }
        None => {
            let said = session.lost_by_event().iter();
            let said = said.filter(|(event, _)| event.is_none_or(|event| of(event as usize)));
            let lost = said.map(|(_, &lost)| lost).fold(0, sum);
            known(counted(session), lost)
        }
    }
}

fn known(counted: LossSource, lost: u64) -> Option<u64> {
    (lost > 0 || counted != LossSource::Unknown).then_some(lost)
}

/// How losses are known of a trace without counts.
fn counted(session: &TraceSession) -> LossSource {
    if session.lacks_counts() {
        LossSource::Unknown
    } else {
        LossSource::KernelLostRecords
    }
}
