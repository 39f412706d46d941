//! Several files as one trace: those of `record --switch-output`, or of recordings one after the other.
//!
//! The bytes of all files are one after the other, in the order of their times, and so are their blocks. What a file numbers means the same in all
//! of them: events and probes are put together, and sample ids that mean something else in another file are replaced when a block is read.
//! Each file begins with the processes that run ([`TracePart::begin`] says what readers make of them).

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use super::damage::Damage;
use super::joined_heads::{JoinedHead, JoinedHeads, unused_id};
use super::joined_names::JoinedNames;
use super::reader::Trace;
use super::time_range::TimeRange;
use super::trace_part::{PartBegin, ProbeDifference, TracePart};
use super::{ClockReading, Loss, TraceInfo};
use crate::clock_seconds;
use crate::escape::{escape, shown};
use crate::perf::{EventAttr, SampleType};

/// By how much the samples of two files of stock perf may overlap, ns: rings are read one after the other.
const MAX_SHARED: u64 = 2_000_000_000;
/// By how much the wall clock may run away from the trace's clock between two files of one boot, ns, if neither says which boot it was.
const MAX_DRIFT: u128 = 1_000_000_000;

/// An open trace and its path.
#[derive(Debug)]
pub struct NamedTrace {
    /// Its path.
    pub path: PathBuf,
    /// The trace.
    pub trace: Trace,
}

impl NamedTrace {
    /// From the begin to the end of its recording; else from its first to its last sample.
    fn time(&self) -> Option<TimeRange> {
        self.trace.recorded().or_else(|| self.trace.time())
    }

    /// A reading of both clocks.
    fn clocks(&self) -> Option<ClockReading> {
        let readings = self.trace.clock_readings();
        let of_head = || {
            let clock = self.trace.info().clock.filter(|clock| clock.wall_ns != 0)?;
            Some(ClockReading {
                clock_ns: clock.clock_ns,
                wall_ns: clock.wall_ns,
                error_ns: 0,
                wall_quality: None,
            })
        };
        readings.first().copied().or_else(of_head)
    }
}

impl Trace {
    /// Makes one trace of several, in the order of their times. A single one stays as it is.
    ///
    /// # Errors
    /// [`JoinError`] if they are not of one host and boot, or were recorded at the same time.
    pub fn join(mut traces: Vec<NamedTrace>) -> Result<Self, JoinError> {
        // Files without any time have no events. Stable: they stay in their order.
        traces.sort_by_key(|named| named.time().map_or(u64::MAX, |time| time.first));
        check_hosts(&traces)?;
        check_times(&traces)?;
        if traces.len() < 2 {
            let only = traces.pop().map(|named| named.trace);
            return only.ok_or(JoinError::NoFile);
        }
        Ok(Joining::join(traces))
    }

    /// The files that the trace is made of, in the order of their times; none if it is a single one.
    #[must_use]
    pub fn parts(&self) -> &[TracePart] {
        &self.parts
    }

    /// The file with an offset; `None` if the trace is a single one.
    #[must_use]
    pub fn part_at(&self, offset: u64) -> Option<usize> {
        let after = self
            .parts
            .partition_point(|part| part.bytes.start <= offset);
        after.checked_sub(1)
    }

    /// Closes its file between reads, so that very many traces can be open; `path` is its path. Directories stay open.
    ///
    /// # Errors
    /// The error of `fstat(2)`.
    pub fn close_between_reads(&mut self, path: &std::path::Path) -> std::io::Result<()> {
        self.source.close(path)
    }
}

/// A file among those that are joined.
struct Joining {
    heads: JoinedHeads,
    names: Option<JoinedNames>,
    all: Trace,
    /// Losses, as long as all files have them.
    losses: JoinedLosses,
    /// Losses up to the last count, where a recorder did not end.
    counted: JoinedLosses,
}

impl Joining {
    fn join(traces: Vec<NamedTrace>) -> Trace {
        let unused = unused_id(traces.iter().map(|named| named.trace.info()));
        let mut traces = traces.into_iter().peekable();
        let empty = TraceInfo::default();
        let first = traces.peek().map_or(&empty, |named| named.trace.info());
        let mut joining = Self {
            heads: JoinedHeads::new(first, unused),
            names: None,
            all: Trace::of_head(TraceInfo::default(), Vec::new()),
            losses: JoinedLosses::default(),
            counted: JoinedLosses::default(),
        };
        for named in traces {
            joining.add(named);
        }
        joining.end()
    }

    fn add(&mut self, named: NamedTrace) {
        let time = named.time();
        let NamedTrace { path, trace } = named;
        let JoinedHead {
            events,
            ids,
            probes,
        } = self.heads.add(&trace.info);
        let all = &mut self.all;
        let before = all.parts.last();
        let begin = begin(before.map(|part| part.time), all.recorded, &trace, time);
        let is_first = before.is_none();
        let is_continued = begin == PartBegin::Continued;
        let len = trace.source.len();
        let base = all.source.append(trace.source);
        let began = time.map(|time| time.first).filter(|_| !is_first);
        if let Some(names) = trace.code_names {
            self.names.get_or_insert_default().add(names, began);
        }
        all.blocks.extend(trace.blocks.into_iter().map(|mut block| {
            block.offset = block.offset.saturating_add(base);
            block
        }));
        all.digests
            .extend(trace.digests.into_iter().map(|digest| digest.moved(base)));
        let moved = |damage: Damage| Damage::new(damage.offset.saturating_add(base), damage.kind);
        all.damage.extend(all.uncommitted.take());
        all.damage.extend(trace.damage.into_iter().map(moved));
        all.uncommitted = trace.uncommitted.map(moved);
        all.serial |= trace.serial;
        all.finished &= trace.finished;
        all.cpus_changed |= trace.cpus_changed;
        all.recorded = match (is_first, all.recorded, trace.recorded) {
            (true, _, recorded) => recorded,
            (false, Some(known), Some(recorded)) => Some(known.joined(recorded)),
            // It has nothing: its recorder was killed when it had begun the file.
            (false, known, None) if time.is_none() => known,
            _ => None,
        };
        all.sample_time = match (is_first, all.sample_time, trace.sample_time) {
            (true, _, time) => time,
            (false, Some(known), Some(time)) => Some(known.joined(time)),
            (false, known, None) if time.is_none() => known,
            _ => None,
        };
        all.clocks.extend(trace.clocks);
        if is_first {
            all.sections = trace.sections;
        }
        let renumbered = |losses: Vec<Loss>| -> Vec<Loss> {
            let losses = losses.into_iter();
            losses
                .map(|loss| Loss {
                    event: events.get(loss.event).copied().unwrap_or(loss.event),
                    id: ids.get(loss.id),
                    ..loss
                })
                .collect()
        };
        let losses = trace.losses.map(renumbered);
        let counted = losses.clone().or_else(|| trace.counted.map(renumbered));
        self.losses.add(losses.as_deref());
        self.counted.add(counted.as_deref());
        let probes = if is_first || is_continued {
            // A recorder adds probes of programs that appear.
            ProbeDifference {
                added: Vec::new(),
                lacking: probes.lacking,
            }
        } else {
            probes
        };
        self.all.parts.push(TracePart {
            path,
            bytes: base..base.saturating_add(len),
            time,
            begin,
            ids: (!ids.is_empty()).then_some(ids),
            probes,
        });
    }

    fn end(self) -> Trace {
        let mut all = self.all;
        all.info = Arc::new(self.heads.into_info());
        all.code_names = self.names.map(JoinedNames::into_names);
        all.losses = self.losses.into_losses();
        let counted = self.counted.into_losses();
        all.counted = counted.filter(|_| all.losses.is_none());
        all.clocks.sort_by_key(|reading| reading.clock_ns);
        // The same reading ends a file and begins the next.
        all.clocks.dedup();
        all
    }
}

/// How a file begins after one with a time; `recorded` is the time of recording of all files before it.
fn begin(
    before: Option<Option<TimeRange>>,
    recorded: Option<TimeRange>,
    trace: &Trace,
    time: Option<TimeRange>,
) -> PartBegin {
    let Some(before) = before else {
        return PartBegin::First;
    };
    match (recorded.and(before), trace.recorded.and(time)) {
        (Some(before), Some(time)) if before.last == time.first => PartBegin::Continued,
        (Some(before), Some(time)) => PartBegin::After(TimeRange::new(before.last, time.first)),
        _ => PartBegin::Later,
    }
}

/// Losses of files together, one for each event and id, as long as all files have some.
#[derive(Debug, Default)]
struct JoinedLosses {
    /// In the order of the files.
    all: Vec<Loss>,
    known: HashMap<(usize, u64), usize>,
    /// Whether a file has none.
    is_unknown: bool,
}

impl JoinedLosses {
    fn add(&mut self, losses: Option<&[Loss]>) {
        self.is_unknown |= losses.is_none();
        for loss in losses.unwrap_or_default() {
            let new = self.all.len();
            let at = *self.known.entry((loss.event, loss.id)).or_insert(new);
            match self.all.get_mut(at) {
                Some(known) => known.lost = known.lost.saturating_add(loss.lost),
                None => self.all.push(*loss),
            }
        }
    }

    fn into_losses(self) -> Option<Vec<Loss>> {
        (!self.is_unknown).then_some(self.all)
    }
}

/// What all files of a trace have in common, in words.
fn common(info: &TraceInfo) -> [(&'static str, String); 7] {
    let layout = |event: &EventAttr| event.attr.id_type().0;
    let has_id = |event: &EventAttr| event.attr.sample_type.has(SampleType::IDENTIFIER);
    let layouts = match info.events.iter().all(has_id) {
        true => "each with its id".to_owned(),
        // They are read as those of the first event.
        false => {
            let kinds = info.events.iter().map(|event| event.attr.sample_type.0);
            format!("{:#x}", kinds.fold(0, |all, kind| all | kind))
        }
    };
    let clock = info.clock.map_or(0, |clock| clock.id);
    [
        ("the host", info.hostname.clone()),
        ("the kernel", info.os_release.clone()),
        ("the architecture", info.machine.clone()),
        ("the clock", clock.to_string()),
        (
            "the recorder",
            match info.definitions {
                Some(_) => "usdtrec".to_owned(),
                // A file that is cut does not say.
                None if info.version.is_empty() => String::new(),
                None => "another one".to_owned(),
            },
        ),
        ("the layout of samples", layouts),
        (
            "the layout of other records",
            info.events
                .first()
                .map_or(String::new(), |event| format!("{:#x}", layout(event))),
        ),
    ]
}

/// Refuses files of different hosts and boots.
fn check_hosts(traces: &[NamedTrace]) -> Result<(), JoinError> {
    let Some(first) = traces.first() else {
        return Err(JoinError::NoFile);
    };
    let of_first = common(first.trace.info());
    for other in traces.iter().skip(1) {
        let of_other = common(other.trace.info());
        let differs = of_first.iter().zip(of_other);
        for ((what, of_a), (_, of_b)) in differs {
            // What a damaged file does not say is no difference.
            if *of_a != of_b && !of_a.is_empty() && !of_b.is_empty() {
                return Err(differing(first, other, what, of_a.clone(), of_b));
            }
        }
        check_boots(first, other)?;
    }
    Ok(())
}

/// Refuses files of two boots.
fn check_boots(a: &NamedTrace, b: &NamedTrace) -> Result<(), JoinError> {
    let boot = |named: &NamedTrace| {
        let definitions = named.trace.info().definitions.as_ref();
        definitions.and_then(|all| all.boot.clone())
    };
    match (boot(a), boot(b)) {
        (Some(of_a), Some(of_b)) if of_a != of_b => Err(differing(a, b, "the boot", of_a, of_b)),
        (Some(_), Some(_)) => Ok(()),
        _ => match (a.clocks(), b.clocks()) {
            (Some(of_a), Some(of_b)) if of_a.ahead().abs_diff(of_b.ahead()) > MAX_DRIFT => {
                let began = |clocks: ClockReading| {
                    format!("{} s after 1970", clocks.ahead() / 1_000_000_000)
                };
                let what = "the moment at which the trace's clock was 0 (another boot, a clock that was set, or a host that slept)";
                Err(differing(a, b, what, began(of_a), began(of_b)))
            }
            _ => Ok(()),
        },
    }
}

fn differing(
    a: &NamedTrace,
    b: &NamedTrace,
    what: &'static str,
    of_a: String,
    of_b: String,
) -> JoinError {
    JoinError::Differs {
        what,
        a: a.path.clone(),
        of_a,
        b: b.path.clone(),
        of_b,
    }
}

/// Refuses files that were recorded at the same time; they are in the order of their times.
fn check_times(traces: &[NamedTrace]) -> Result<(), JoinError> {
    let mut last: Option<(&NamedTrace, TimeRange)> = None;
    for named in traces {
        let Some(time) = named.time() else { continue };
        if let Some((before, of_before)) = last {
            let are_exact = before
                .trace
                .recorded()
                .and(named.trace.recorded())
                .is_some();
            let shared = of_before.last.saturating_sub(time.first);
            let is_later = time.last > of_before.last || time.last == time.first;
            if shared > 0 && (are_exact || shared > MAX_SHARED || !is_later) {
                return Err(JoinError::Overlap {
                    a: before.path.clone(),
                    b: named.path.clone(),
                    from: time.first,
                    to: of_before.last.min(time.last),
                });
            }
        }
        if last.is_none_or(|(_, of_last)| time.last >= of_last.last) {
            last = Some((named, time));
        }
    }
    Ok(())
}

/// Files that do not belong together.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JoinError {
    /// There is no file.
    #[error("expected at least one file, found none")]
    NoFile,
    /// Two files differ in what all files of a trace have in common.
    #[error(
        "{} and {} are not parts of one trace: {what} is {} in the first and {} in the second; read them one by one, or compare them with diff",
        shown(.a), shown(.b), escape(.of_a), escape(.of_b)
    )]
    Differs {
        /// What differs.
        what: &'static str,
        /// One file.
        a: PathBuf,
        /// What it has.
        of_a: String,
        /// The other file.
        b: PathBuf,
        /// What it has.
        of_b: String,
    },
    /// Two files were recorded at the same time.
    #[error(
        "{} and {} are not parts of one trace: both were recorded from {} to {} s of the trace's clock; read them one by one",
        shown(.a), shown(.b), clock_seconds(*.from), clock_seconds(*.to)
    )]
    Overlap {
        /// One file.
        a: PathBuf,
        /// The other file.
        b: PathBuf,
        /// Begin of the time that both have, ns.
        from: u64,
        /// End of that time, ns.
        to: u64,
    },
}
