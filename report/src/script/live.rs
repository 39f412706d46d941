//! `script` of a stream while it is written: samples are printed as they come, in the order of time and in bounded memory.
//!
//! A recorder ends a round when it has looked at all its rings. What it found in a ring after that may be older than what
//! it found in another one before, but not older than the round before. So when a round has ended, everything up to the
//! latest time of the rounds before it is settled and printed; the rest waits.

use std::io::{Read, Write};
use std::path::Path;

use usdtrec_format::perf::{
    Lost, LostSamples, RawRecord, RecordType, Records, SampleId, SampleType,
};
use usdtrec_format::trace::{PipeReader, ReadError};

use super::{Lines, ScriptOptions, Style};
use crate::error::ReportError;
use crate::notice::Notices;
use crate::order::Before;
use crate::process::ProcessLog;
use crate::select::{Filter, Selection, TimeSpan};
use crate::session::{Resolver, Session, Sources};
use crate::text::Text;

/// Bytes of records that wait at most for the end of a round.
const MOST_WAITING: usize = 256 << 20;

/// How a stream went.
#[derive(Clone, Debug, Default)]
pub struct Streamed {
    /// What was found wrong.
    pub notices: Notices,
    /// Events lost while recording, as far as the stream tells.
    pub lost: u64,
}

/// Prints the samples of a stream that a selection asks for, until it ends. `path` is what the stream is called.
///
/// # Errors
/// [`ReportError::Read`] if it is no stream of ours or of `perf record -o -`; [`ReportError::Ask`] if it has no event that is
/// asked for or does not tell the time of day that is, or for a part of its length, which is not known; [`ReportError::Write`] if `out` fails.
pub fn live(
    input: impl Read,
    path: &Path,
    sources: &Sources,
    (selection, options): (&Selection, &ScriptOptions),
    out: &mut dyn Write,
) -> Result<Streamed, ReportError> {
    if let Some(TimeSpan::Percent(..)) = selection.time {
        let what = "the length of a stream is not known before its end: give times, FROM,TO";
        return Err(ReportError::Ask(what.to_owned()));
    }
    let mut pipe = PipeReader::open(input)?;
    let session = Session::of_trace(path, pipe.take_head(), sources);
    let filter = Filter::new(selection, &session)?;
    let style = Style::new(&session, &filter, options)?;
    if let Style::Csv(style) = &style {
        out.write_all(style.header().as_bytes())?;
    }
    let mut live = Live {
        queue: Queue::new(&session),
        streamed: Streamed {
            notices: Notices::new(&session),
            lost: 0,
        },
        session,
        selection,
        filter,
        style,
        before: Before::default(),
        text: Text::default(),
    };
    let mut records = Vec::new();
    while pipe
        .read(&mut records)
        .map_err(|error| ReportError::Read(ReadError::from(error)))?
    {
        live.take(&records, out)?;
        records.clear();
        live.streamed.notices.add_damage(pipe.take_damage());
    }
    live.show(u64::MAX, out)?;
    live.streamed.notices.add_damage(pipe.take_damage());
    Ok(live.streamed)
}

/// A stream being printed.
struct Live<'a> {
    session: Session,
    selection: &'a Selection,
    filter: Filter,
    style: Style,
    queue: Queue,
    streamed: Streamed,
    /// What was shown before.
    before: Before,
    text: Text,
}

impl Live<'_> {
    /// Takes records, and shows what they settle.
    fn take(&mut self, records: &[u8], out: &mut dyn Write) -> Result<(), ReportError> {
        let mut due = None;
        for record in Records::new(records) {
            match record.kind {
                RecordType::FINISHED_ROUND => due = Some(self.queue.end_round()),
                RecordType::SAMPLE => match self.session.time_of(record.body) {
                    Some((_, time)) => self.queue.push(&record, time),
                    None => self.streamed.notices.unknown += 1,
                },
                RecordType::LOST => {
                    let lost = Lost::parse(&record, self.queue.id_type);
                    self.lose(lost.map_or(0, |lost| lost.lost));
                }
                RecordType::LOST_SAMPLES => {
                    let lost = LostSamples::parse(&record, self.queue.id_type);
                    self.lose(lost.map_or(0, |lost| lost.lost));
                }
                _ => {
                    let id = SampleId::split(record.body, self.queue.id_type);
                    self.queue.push(&record, id.map_or(0, |(_, id)| id.time));
                }
            }
        }
        if self.queue.bytes.len() > MOST_WAITING {
            self.streamed.notices.disordered = true;
            due = Some(u64::MAX);
        }
        match due {
            Some(until) => self.show(until, out),
            None => Ok(()),
        }
    }

    fn lose(&mut self, events: u64) {
        // A stream may claim any number.
        self.streamed.lost = self.streamed.lost.saturating_add(events);
    }

    /// Shows everything up to a time.
    fn show(&mut self, until: u64, out: &mut dyn Write) -> Result<(), ReportError> {
        let (log, due) = self.queue.up_to(until);
        self.session.learn(log);
        if !self.selection.comms.is_empty() {
            // Names may have come that are asked for.
            self.filter = Filter::new(self.selection, &self.session)?;
        }
        let session = &self.session;
        let mut lines = Lines::new(session, &self.style);
        let mut resolver = Resolver::new(session);
        for body in due.samples() {
            let Some((target, sample)) = session.sample(body) else {
                self.streamed.notices.unknown += 1;
                continue;
            };
            if self.filter.early(target, sample.time)
                && (self.filter.is_simple() || self.filter.late(target, &sample, &mut resolver))
            {
                lines.line(target, &sample, self.before, &mut self.text);
                self.before.pass(sample.time);
            }
        }
        if self.text.len() > 0 {
            out.write_all(self.text.as_slice())?;
            out.flush()?;
            self.text.clear();
        }
        if until != u64::MAX {
            self.session.forget_before(until);
        }
        Ok(())
    }
}

/// Records that wait.
#[derive(Debug, Default)]
struct Queue {
    id_type: SampleType,
    /// Records of all kinds as they came.
    bytes: Vec<u8>,
    samples: Vec<Waiting>,
    others: Vec<Waiting>,
    /// Latest time of all records so far.
    latest: u64,
    /// Latest time when the last round ended.
    settled: u64,
}

/// A record that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    time: u64,
    /// Offset in the records.
    offset: usize,
}

/// What need not wait any longer.
#[derive(Debug)]
struct Due {
    /// Records of all kinds.
    bytes: Vec<u8>,
    /// The samples in the order of time.
    samples: Vec<Waiting>,
}

impl Queue {
    fn new(session: &Session) -> Self {
        let first = session.info().events.first();
        Self {
            id_type: first.map_or_else(SampleType::default, |event| event.attr.id_type()),
            ..Self::default()
        }
    }

    fn push(&mut self, record: &RawRecord<'_>, time: u64) {
        let waiting = Waiting {
            time,
            offset: self.bytes.len(),
        };
        if record.kind == RecordType::SAMPLE {
            self.samples.push(waiting);
        } else {
            self.others.push(waiting);
        }
        self.latest = self.latest.max(time);
        record.put(&mut self.bytes);
    }

    /// Ends a round and gives the time up to which records are settled.
    const fn end_round(&mut self) -> u64 {
        std::mem::replace(&mut self.settled, self.latest)
    }

    /// Takes out what lies up to a time: what happened to processes, and samples.
    fn up_to(&mut self, until: u64) -> (ProcessLog, Due) {
        let bytes = std::mem::take(&mut self.bytes);
        let samples = take(&mut self.samples, until);
        let mut log = ProcessLog::default();
        for waiting in take(&mut self.others, until) {
            if let Some(record) = record_at(&bytes, waiting) {
                // One that is too short tells nothing.
                let _ = log.record(&record, self.id_type);
            }
        }
        for waiting in self.samples.iter_mut().chain(&mut self.others) {
            let record = record_at(&bytes, *waiting);
            waiting.offset = self.bytes.len();
            if let Some(record) = record {
                record.put(&mut self.bytes);
            }
        }
        (log, Due { bytes, samples })
    }
}

impl Due {
    /// The bodies of the samples' records.
    fn samples(&self) -> impl Iterator<Item = &[u8]> {
        let records = self.samples.iter();
        records.filter_map(|waiting| Some(record_at(&self.bytes, *waiting)?.body))
    }
}

/// Takes out what lies up to a time, in the order of time; of equal times, of coming.
fn take(all: &mut Vec<Waiting>, until: u64) -> Vec<Waiting> {
    let mut due: Vec<Waiting> = all
        .extract_if(.., |waiting| waiting.time <= until)
        .collect();
    // Stable, and quick where rings were drained one after the other.
    due.sort_by_key(|waiting| waiting.time);
    due
}

fn record_at(bytes: &[u8], waiting: Waiting) -> Option<RawRecord<'_>> {
    Records::new(bytes.get(waiting.offset..)?).next()
}
