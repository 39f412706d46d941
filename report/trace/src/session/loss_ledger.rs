//! What was lost of a trace: the counts of the recorder when it ended, else its last ones, else the sum of the kernel's LOST records.

use std::collections::{BTreeMap, HashMap};

use usdtrec_format::trace::{Shortfall, ShortfallKind, Trace};

use crate::session::events::Events;
use crate::session::scan::LostByEvent;

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

/// Lost hits of a trace, and how they are known. Files may claim any number: sums end at the largest one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LossLedger {
    /// By the index of their event; `None`: it is not known of which. An event may have several.
    lost: Vec<(Option<usize>, u64)>,
    /// How they are known.
    pub source: LossSource,
    /// Why there may be lost or doubled hits that are not counted. Without a reason, the recorder of losses that are not exact was killed
    /// before it counted them.
    pub uncounted: Option<Uncounted>,
}

impl LossLedger {
    /// The losses of a trace; `recorded` are the sums of its LOST records.
    pub(crate) fn new(trace: &Trace, recorded: LostByEvent) -> Self {
        let counted = trace.losses().map(|counts| (LossSource::AtTheEnd, counts));
        let so_far = || Some((LossSource::AtTheLastFlush, trace.losses_so_far()?));
        let recorded = recorded
            .into_iter()
            .map(|(event, lost)| (event.map(|event| event as usize), lost));
        let (source, lost) = match counted.or_else(so_far) {
            Some((source, counts)) => {
                let counts = counts.iter().map(|loss| (Some(loss.event), loss.lost));
                (source, counts.collect())
            }
            // A stream has counts among its records.
            None if trace.is_finished() => (LossSource::KernelLostRecords, recorded.collect()),
            None => (LossSource::Unknown, recorded.collect()),
        };
        Self {
            lost,
            source,
            uncounted: None,
        }
    }

    /// Finds out why hits may be missing uncounted.
    pub(crate) fn doubt(&mut self, trace: &Trace, shortfalls: &BTreeMap<u32, Shortfall>) {
        let definitions = trace.info().definitions.as_ref();
        self.uncounted = match definitions.and_then(|definitions| definitions.uncounted.as_ref()) {
            Some(why) => Some(Uncounted::Recorder(why.clone())),
            None if trace.cpus_changed() => Some(Uncounted::CpusChanged),
            None => (shortfalls.values().any(lacks_hits)).then_some(Uncounted::Shortfalls),
        };
    }

    /// Lost hits by the index of their event, `None` if it is not known of which, in the order of the file. An event may have several.
    pub fn by_event(&self) -> impl Iterator<Item = (Option<usize>, u64)> {
        self.lost.iter().copied()
    }

    /// Lost hits by the name of their event, `None` if it is not known of which; without those that lost nothing.
    pub fn by_name<'e>(&self, events: &'e Events) -> Vec<(Option<&'e str>, u64)> {
        let mut named: Vec<(Option<&str>, u64)> = Vec::new();
        let mut known: HashMap<Option<&str>, usize> = HashMap::new();
        for (event, lost) in self.by_event().filter(|(_, lost)| *lost > 0) {
            let name = event.and_then(|event| events.events.get(event));
            let name = name.map(|event| &*event.name);
            let new = named.len();
            let at = *known.entry(name).or_insert(new);
            match named.get_mut(at) {
                Some((_, sum)) => *sum = sum.saturating_add(lost),
                None => named.push((name, lost)),
            }
        }
        named
    }

    /// Lost hits of some events, with those of which the event is not known; `None` if their number is not known.
    pub fn lost_of(&self, is_of: impl Fn(usize) -> bool) -> Option<u64> {
        let lost = self
            .by_event()
            .filter(|(event, _)| event.is_none_or(&is_of));
        self.known(sum(lost))
    }

    /// All lost hits: exactly, or at least so many.
    pub fn total(&self) -> u64 {
        sum(self.by_event())
    }

    /// All lost hits; `None` if their number is not known.
    pub fn known_total(&self) -> Option<u64> {
        self.known(self.total())
    }

    /// A number of lost hits, unless it is 0 only because the recorder did not count.
    pub fn known(&self, lost: u64) -> Option<u64> {
        (lost > 0 || self.source != LossSource::Unknown).then_some(lost)
    }

    /// Whether these are all; else there were at least so many.
    pub fn is_exact(&self) -> bool {
        self.source == LossSource::AtTheEnd && self.uncounted.is_none()
    }
}

fn sum(lost: impl Iterator<Item = (Option<usize>, u64)>) -> u64 {
    lost.fold(0, |all, (_, lost)| all.saturating_add(lost))
}

/// Whether hits of attached probes are missing because of a shortfall, and not counted.
fn lacks_hits(shortfall: &Shortfall) -> bool {
    // Its threads were held meanwhile.
    let is_held = shortfall.kind == ShortfallKind::Followed && shortfall.gap_ns == Some(0);
    !is_held && shortfall.kind.lacks_hits()
}
