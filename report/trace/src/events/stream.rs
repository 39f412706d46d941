//! A stream shown while it is written: samples are seen as they come, in the order of time and in bounded memory.
//!
//! A recorder ends a round when it has looked at all its rings. What it found in a ring after that may be older than what
//! it found in another one before, but not older than the round before. So when a round has ended, everything up to the
//! latest time of the rounds before it is settled and shown; the rest waits.
//!
//! An event is therefore printed when the round after its own has ended: until then an earlier event of another CPU may
//! arrive.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

use usdtrec_format::perf::{
    DeferredChain, Lost, LostSamples, RawRecord, RecordType, Records, Sample, SampleId, SampleType,
};
use usdtrec_format::trace::{Pause, PipeReader, TraceInfo};

use crate::added::hit_step::StepPlace;
use crate::added::{AddedState, FindAdded, add_arguments, added_of};
use crate::error::ReportError;
use crate::events::no_events::NoEventsReason;
use crate::events::notices::Notices;
use crate::events::selection::{EventSelection, SampleFilter};
use crate::events::stream_queue::{DueRecords, Queue, Settled};
use crate::process::hit_names::HitNames;
use crate::question_error::QuestionError;
use crate::session::hit::{Hit, ParsedHit};
use crate::session::hit_context::HitContext;
use crate::session::ids::SampleTarget;
use crate::session::resolver::Resolver;
use crate::session::{Sources, TraceSession};
use crate::time_span::TimeSpan;

/// Bytes of records that wait at most for the end of a round.
const MAX_WAITING: usize = 256 << 20;

/// Counts and faults of a stream.
#[derive(Clone, Debug, Default)]
pub struct StreamSummary {
    /// The faults that were found.
    pub notices: Notices,
    /// Samples that were shown.
    pub shown: u64,
    /// Events lost while recording, as far as the stream says.
    pub lost: u64,
    /// If no sample was shown: the known reasons.
    pub reasons: Vec<NoEventsReason>,
    /// If spans were shown instead of samples.
    pub spans: Option<SpanTotals>,
}

/// Numbers of spans of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanTotals {
    /// Spans that were shown.
    pub shown: u64,
    /// Spans that were shorter than those shown.
    pub shorter: u64,
    /// Spans that were not matched, because too many were open at once.
    pub forgotten: u64,
}

/// What takes the samples of a stream.
pub trait StreamView {
    /// Takes samples that no earlier ones can follow, in the order of time.
    fn show(&mut self, samples: StreamSamples<'_>) -> Result<(), ReportError>;

    /// Takes that events were lost; of `None` it is not known which.
    fn lose(&mut self, session: &TraceSession, event: Option<usize>, lost: u64);

    /// Called when events were added to the session. Former ones keep their numbers, and samples of the new ones follow. Returns the names of
    /// arguments that cannot be shown.
    fn add_events(
        &mut self,
        session: &TraceSession,
        filter: &SampleFilter,
    ) -> Result<BTreeSet<String>, ReportError>;

    /// Called before samples are shown when it has become known that probes were detached or attached.
    fn renew_pauses(&mut self, _session: &TraceSession) {}

    /// Called when all up to a time was shown; the time is `u64::MAX` at the end. Returns the time of the earliest hit that processes and mappings must
    /// still be known for.
    fn settle(&mut self, _session: &TraceSession, until: u64) -> Result<u64, ReportError> {
        Ok(until)
    }

    /// The names of the hits that are kept from round to round. Names that no thread has any more are forgotten from time to time, and the others get new
    /// numbers.
    fn kept_names(&mut self) -> Vec<HitNames<'_>> {
        Vec::new()
    }

    /// Called after each part of the stream. Returns whether to continue.
    fn goes_on(&mut self) -> Result<bool, ReportError> {
        Ok(true)
    }

    /// Called when the stream has ended and all is shown.
    fn end(&mut self, _session: &TraceSession) -> Result<(), ReportError> {
        Ok(())
    }
}

/// Samples to be shown.
pub struct StreamSamples<'a> {
    /// The trace, as far as it is written.
    pub session: &'a TraceSession,
    filter: &'a SampleFilter,
    due: &'a DueRecords,
    streamed: &'a mut StreamSummary,
    /// What finds the values of arguments that were added to events, if any were.
    added: Option<&'a mut Box<dyn AddedState>>,
}

impl StreamSamples<'_> {
    /// Calls `show` with each selected sample.
    pub fn each(
        self,
        mut show: impl FnMut(SampleTarget, &Sample<'_>) -> Result<(), ReportError>,
    ) -> Result<(), ReportError> {
        self.each_with(
            |_| false,
            |Hit { target, sample }, _, _| show(target, sample),
        )
    }

    /// Calls `show` with each selected sample, and with samples of the same time, and earlier ones, of events that `of_use` names; the last argument says whether the sample is selected.
    pub fn each_with(
        self,
        of_use: impl Fn(usize) -> bool,
        mut show: impl FnMut(Hit<'_>, HitContext<'_>, bool) -> Result<(), ReportError>,
    ) -> Result<(), ReportError> {
        let (session, filter) = (self.session, self.filter);
        let time = filter.time();
        let mut resolver = Resolver::new(session);
        let mut added = added_of(session).zip(self.added);
        for body in self.due.samples() {
            let Some(ParsedHit { target, sample }) = session.sample(body) else {
                self.streamed.notices.unknown += 1;
                continue;
            };
            let hit = Hit {
                target,
                sample: &sample,
            };
            let values = added.as_mut().and_then(|(added, state)| {
                let steps = match added.has(target.event as usize) {
                    true => added.steps(&mut resolver, hit),
                    false => Vec::new(),
                };
                state.take(StepPlace::new(&mut resolver, &sample), steps)
            });
            let context = HitContext {
                path: None,
                added: values.as_ref(),
            };
            resolver.set_context(context);
            if filter.early(target, sample.time)
                && (filter.is_simple() || filter.late(target, &sample, &mut resolver))
            {
                self.streamed.shown += 1;
                show(hit, context, true)?;
            } else if of_use(target.event as usize) && sample.time <= time.last {
                show(hit, context, false)?;
            }
        }
        Ok(())
    }
}

/// Shows the selected samples of a stream, until it ends or `view` has enough. `path` is what the stream is called; `find` says which arguments
/// events get besides their own.
///
/// # Errors
/// [`ReportError::Read`] if it is no stream of ours or of `perf record -o -`; [`ReportError::Question`] if it has no event that is
/// requested, or for a part of its length, which is not known; and those of `view`.
pub fn watch<V: StreamView>(
    input: impl Read,
    path: &Path,
    sources: &Sources,
    selection: &EventSelection,
    find: &dyn FindAdded,
    view: impl FnOnce(&TraceSession, &SampleFilter) -> Result<V, ReportError>,
) -> Result<StreamSummary, ReportError> {
    if selection.time.as_ref().is_some_and(TimeSpan::is_relative) {
        return Err(QuestionError::PartOfStream.into());
    }
    let mut pipe = PipeReader::open(input)?;
    let mut session = TraceSession::of_trace(path, pipe.take_head(), sources);
    session.note_living();
    add_arguments(&mut session, find)?;
    let filter = SampleFilter::new(selection, &session)?;
    let mut live = Live {
        view: view(&session, &filter)?,
        queue: Queue::new(&session),
        streamed: StreamSummary {
            notices: Notices::new(&session),
            ..StreamSummary::default()
        },
        lost: [0; 2],
        are_pauses_new: false,
        added: added_of(&session).map(|added| added.begin(&session)),
        session,
        find,
        selection,
        filter,
    };
    let mut records = Vec::new();
    while pipe.read(&mut records).map_err(ReportError::Read)? {
        live.take(&records)?;
        records.clear();
        if let Some(info) = pipe.take_added() {
            live.add_events(info)?;
        }
        live.streamed.notices.add_damage(pipe.take_damage());
        if !live.view.goes_on()? {
            return Ok(live.streamed);
        }
    }
    live.show(u64::MAX)?;
    live.view.end(&live.session)?;
    live.streamed
        .notices
        .set_paused(&live.session, &live.filter);
    live.streamed.notices.shortfalls = live.session.shortfalls().cloned().collect();
    if live.streamed.shown == 0 {
        live.streamed.reasons = NoEventsReason::find(&live.session, |_| true);
    }
    live.streamed.notices.add_damage(pipe.take_damage());
    Ok(live.streamed)
}

/// A stream being shown.
struct Live<'a, V> {
    session: TraceSession,
    /// Says which arguments events get besides their own.
    find: &'a dyn FindAdded,
    /// What finds the values of these.
    added: Option<Box<dyn AddedState>>,
    selection: &'a EventSelection,
    filter: SampleFilter,
    view: V,
    queue: Queue,
    streamed: StreamSummary,
    /// Losses as LOST and as LOST_SAMPLES records say.
    lost: [u64; 2],
    /// Whether the view does not know the latest pauses.
    are_pauses_new: bool,
}

impl<V: StreamView> Live<'_, V> {
    /// Takes the head with events that were added, whose samples come later.
    fn add_events(&mut self, info: TraceInfo) -> Result<(), ReportError> {
        self.session.add_events(info);
        add_arguments(&mut self.session, self.find)?;
        if self.added.is_none() {
            self.added = added_of(&self.session).map(|added| added.begin(&self.session));
        }
        self.queue.set_files(&self.session);
        self.filter = SampleFilter::new(self.selection, &self.session)?;
        let notices = &mut self.streamed.notices;
        notices
            .disagreements
            .clone_from(&self.session.events().disagreements);
        let hidden = self.view.add_events(&self.session, &self.filter)?;
        self.streamed.notices.without_column.extend(hidden);
        Ok(())
    }

    /// Takes records, and shows what they settle.
    fn take(&mut self, records: &[u8]) -> Result<(), ReportError> {
        let mut due = None;
        // Our recorder counts losses itself, exactly; what its rings said of them is the same once more.
        let is_ours = self.session.info().definitions.is_some();
        for record in Records::new(records) {
            match record.kind {
                RecordType::FINISHED_ROUND => due = Some(self.queue.end_round()),
                RecordType::SAMPLE => match self.session.time_of(record.body) {
                    Some(timed) => self.queue.push(&record, timed.time),
                    None => self.streamed.notices.unknown += 1,
                },
                RecordType::LOST if is_ours => {}
                RecordType::LOST | RecordType::LOST_SAMPLES => self.lose(&record),
                RecordType::CALLCHAIN_DEFERRED => {
                    let chain = DeferredChain::parse(&record, self.queue.id_type);
                    chain
                        .iter()
                        .for_each(|chain| self.session.learn_chain(chain));
                }
                _ if let Some(pause) = Pause::parse(&record, self.queue.id_type) => {
                    // Samples may be earlier than the record and later than the pause.
                    self.session.learn_pause(&pause);
                    self.are_pauses_new = true;
                }
                _ => {
                    let split = SampleId::split(record.body, self.queue.id_type);
                    self.queue
                        .push(&record, split.map_or(0, |split| split.id.time));
                }
            }
        }
        if self.queue.len() > MAX_WAITING {
            self.streamed.notices.disordered = true;
            due = Some(u64::MAX);
        }
        match due {
            Some(until) => self.show(until),
            None => Ok(()),
        }
    }

    fn lose(&mut self, record: &RawRecord<'_>) {
        let Some(LostOfId { id, lost }) = losses(record, self.queue.id_type) else {
            return;
        };
        // Both kinds of records are about the same losses. A stream may claim any number.
        let [noticed, counted] = &mut self.lost;
        let sum = if record.kind == RecordType::LOST {
            noticed
        } else {
            counted
        };
        *sum = sum.saturating_add(lost);
        let more = sum.saturating_sub(self.streamed.lost);
        if more > 0 {
            self.streamed.lost += more;
            let event = self.session.event_of(id);
            self.view.lose(&self.session, event, more);
        }
    }

    /// Shows everything up to a time.
    fn show(&mut self, until: u64) -> Result<(), ReportError> {
        let Settled { log, due } = self.queue.up_to(until);
        self.session.learn(log);
        if !self.selection.comms.is_empty() {
            // Names may have come that are requested.
            self.filter = SampleFilter::new(self.selection, &self.session)?;
        }
        if std::mem::take(&mut self.are_pauses_new) {
            self.view.renew_pauses(&self.session);
            if let Some(added) = &mut self.added {
                added.renew_pauses(&self.session);
            }
        }
        if let Some(time) = due.time() {
            self.session.learn_time(time);
        }
        self.view.show(StreamSamples {
            session: &self.session,
            filter: &self.filter,
            due: &due,
            streamed: &mut self.streamed,
            added: self.added.as_mut(),
        })?;
        let needed = self.view.settle(&self.session, until)?;
        if until != u64::MAX {
            let view = &mut self.view;
            self.session
                .forget_before(needed.min(until), || view.kept_names());
        }
        Ok(())
    }
}

/// Samples of one id that were lost.
struct LostOfId {
    id: u64,
    lost: u64,
}

/// What a record says was lost.
fn losses(record: &RawRecord<'_>, id_type: SampleType) -> Option<LostOfId> {
    if let Some(lost) = Lost::parse(record, id_type) {
        return Some(LostOfId {
            id: lost.event_id,
            lost: lost.lost,
        });
    }
    let lost = LostSamples::parse(record, id_type)?;
    Some(LostOfId {
        id: lost.id.identifier.max(lost.id.id),
        lost: lost.lost,
    })
}
