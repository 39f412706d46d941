//! Samples of one event and site, whose parts are at the same places: they are read part by part instead of sample by sample.

pub use usdtrec_decode::RawInteger;
use usdtrec_format::IntegerBits;
use usdtrec_format::perf::Sample;

use crate::events::order::pending::{RECORD_HEADER, record_at};
use crate::session::TraceSession;
use crate::session::events::Event;
use crate::session::ids::SampleTarget;

/// Samples of one event, and of one site as far as their ids say that. Each is as long as its event requires.
#[derive(Clone, Copy, Debug)]
pub struct SiteSamples<'a> {
    /// The event and the site.
    pub target: SampleTarget,
    event: &'a Event,
    /// The records of a block, and the offsets of the samples' records among them.
    records: &'a [u8],
    offsets: &'a [u32],
}

/// The thread of a sample, and when it was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedThread {
    /// Thread id; -1 if unknown.
    pub tid: i32,
    /// Time, ns of the trace's clock.
    pub time: u64,
}

/// An integer argument that is at the same place in all samples.
#[derive(Clone, Copy, Debug)]
pub struct IntegerColumn<'a> {
    samples: SiteSamples<'a>,
    /// Offset of the raw data in a sample's record, after their length.
    raw: usize,
    integer: RawInteger,
}

impl<'a> SiteSamples<'a> {
    /// Samples whose records are at these offsets, and fit into their event's layout.
    pub(crate) fn new(
        session: &'a TraceSession,
        target: SampleTarget,
        records: &'a [u8],
        offsets: &'a [u32],
    ) -> Option<Self> {
        let event = session.events().events.get(target.event as usize)?;
        Some(Self {
            target,
            event,
            records,
            offsets,
        })
    }

    /// Number of samples.
    pub const fn count(self) -> usize {
        self.offsets.len()
    }

    /// The samples.
    #[inline]
    pub fn samples(self) -> impl Iterator<Item = Sample<'a>> {
        let offsets = self.offsets.iter();
        offsets.map(move |offset| self.parsed(*offset))
    }

    /// The sample at a place.
    pub fn sample(self, place: usize) -> Sample<'a> {
        let offset = self.offsets.get(place);
        offset.map_or_else(Sample::default, |offset| self.parsed(*offset))
    }

    /// What the sample at a place counts for, as perf weighs it.
    #[inline]
    pub fn weight(self, place: usize) -> u64 {
        let only = self.event.only_weight();
        only.unwrap_or_else(|| self.event.weight(&self.sample(place)))
    }

    #[inline]
    fn parsed(self, offset: u32) -> Sample<'a> {
        let body = record_at(self.records, offset);
        // They fit.
        let sample = body.and_then(|body| self.event.layout.parse(body));
        sample.unwrap_or_default()
    }

    /// The threads of the samples.
    #[inline]
    pub fn threads(self) -> impl Iterator<Item = TimedThread> {
        let tid = self.event.layout.tid_offset();
        let time = self.event.layout.time_offset();
        let word = move |record: u32, part: Option<usize>| {
            let at = record as usize + RECORD_HEADER + part?;
            let word = self.records.get(at..)?.first_chunk::<8>()?;
            Some(u64::from_le_bytes(*word))
        };
        self.offsets.iter().map(move |&record| TimedThread {
            tid: word(record, tid).map_or(-1, |ids| (ids >> 32) as i32),
            time: word(record, time).unwrap_or(0),
        })
    }

    /// The argument at this place, if it is an integer that is at the same place in all samples; see [`Decoder::raw_integer`].
    ///
    /// [`Decoder::raw_integer`]: usdtrec_decode::Decoder::raw_integer
    pub fn integers(self, session: &TraceSession, argument: usize) -> Option<IntegerColumn<'a>> {
        let site = session.events().sites.get(self.target.site? as usize)?;
        Some(IntegerColumn {
            samples: self,
            raw: RECORD_HEADER + self.event.layout.raw_offset()?,
            integer: site.decoder.raw_integer(argument)?,
        })
    }
}

impl IntegerColumn<'_> {
    /// The argument of each sample; `None` where it is missing.
    #[inline]
    pub fn values(self) -> impl Iterator<Item = Option<IntegerBits>> {
        let Self {
            samples,
            raw,
            integer,
        } = self;
        samples.offsets.iter().map(move |&record| {
            let at = record as usize + raw;
            let length = samples.records.get(..at)?.last_chunk::<4>()?;
            let length = u32::from_le_bytes(*length) as usize;
            integer.read(samples.records.get(at..)?.get(..length)?)
        })
    }
}
