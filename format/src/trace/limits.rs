//! What a trace can have at most. Readers ignore what exceeds a limit, because the numbers of a file do not decide how much memory is taken;
//! so writers refuse it, with the same constants. A recorder asks before it adds the events of a file ([`HeadSize`]).

use std::io;

use super::section_records::MAX_PIECE;
use super::{Loss, TraceInfo};
use crate::definitions::{FileDefinition, ProbeDefinition};
use crate::perf::{Attr, EventAttr, TracepointFormat};

crate::listed! {
    /// A limit.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Limit {
        /// Events.
        Events,
        /// Bytes of the longest name of an event.
        EventName,
        /// Sample ids of one event.
        IdsOfEvent,
        /// Bytes of the longest format of a tracepoint.
        Format,
        /// Bytes of the names, attrs and sample ids of all events.
        EventNames,
        /// Bytes of the formats of all tracepoints.
        Formats,
        /// Bytes of the definitions of all probes.
        Definitions,
        /// Values in these definitions.
        Values,
        /// Arguments of all probes.
        Arguments,
        /// Bytes of the head of a stream, or of what is added to it at once.
        StreamHead,
    }
}

/// A limit that something exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a trace has at most {} {}, and these are {found}", .limit.max(), .limit.what())]
pub struct LimitExceeded {
    /// The limit.
    pub limit: Limit,
    /// What there would be.
    pub found: u64,
}

impl Limit {
    /// The most that a trace has.
    #[must_use]
    pub const fn max(self) -> u64 {
        match self {
            Self::Events => 65_536,
            // Names, ids and formats must fit between two places for the header of a record.
            Self::EventName => MAX_PIECE as u64 / 4,
            Self::IdsOfEvent => (MAX_PIECE / 2 / size_of::<u64>()) as u64,
            Self::Format => MAX_PIECE as u64,
            Self::EventNames | Self::Formats | Self::Definitions | Self::StreamHead => 64 << 20,
            Self::Values => 4 << 20,
            Self::Arguments => 1 << 18,
        }
    }

    /// What is limited, in the plural.
    const fn what(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::EventName => "bytes in the name of an event",
            Self::IdsOfEvent => "sample ids of an event that is added",
            Self::Format => "bytes in the format of a tracepoint",
            Self::EventNames => "bytes of names and sample ids of events",
            Self::Formats => "bytes of formats of tracepoints",
            Self::Definitions => "bytes of definitions of probes",
            Self::Values => "values in the definitions of probes",
            Self::Arguments => "arguments of probes",
            Self::StreamHead => "bytes in the head of a stream",
        }
    }

    /// Whether it is about each event, and not about all together.
    const fn is_of_each(self) -> bool {
        matches!(self, Self::EventName | Self::IdsOfEvent | Self::Format)
    }

    /// Compares a number with the limit.
    ///
    /// # Errors
    /// [`LimitExceeded`].
    pub const fn check(self, found: u64) -> Result<(), LimitExceeded> {
        if found > self.max() {
            return Err(LimitExceeded { limit: self, found });
        }
        Ok(())
    }
}

/// What events and their descriptions take of each limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadSize([u64; Limit::ALL.len()]);

impl HeadSize {
    /// Of a whole head.
    #[must_use]
    pub fn of(info: &TraceInfo) -> Self {
        let mut size = Self::default();
        size.add_events(&info.events);
        size.add_formats(&info.tracepoints);
        if let Some(definitions) = &info.definitions {
            // The numbers and names at the start.
            size.take(Limit::Definitions, 1024);
            size.take(Limit::Values, 16);
            size.add_files(&definitions.files);
            size.add_probes(&definitions.probes);
        }
        size
    }

    /// What is taken of a limit.
    #[must_use]
    pub const fn of_limit(&self, limit: Limit) -> u64 {
        self.0[limit as usize]
    }

    /// Adds a number of something.
    pub fn take(&mut self, limit: Limit, found: u64) {
        let all = &mut self.0[limit as usize];
        *all = match limit.is_of_each() {
            true => found.max(*all),
            false => all.saturating_add(found),
        };
    }

    /// Adds what others take.
    pub fn add(&mut self, other: &Self) {
        for limit in Limit::ALL {
            self.take(limit, other.of_limit(limit));
        }
    }

    /// Adds attrs, names and ids.
    pub fn add_events(&mut self, events: &[EventAttr]) {
        /// Lengths, the padding of a name, and the header of a record.
        const OTHERS: usize = 96;
        for event in events {
            let (name, ids) = (event.name.len(), event.ids.len());
            let bytes = Attr::WRITTEN + OTHERS + name + size_of::<u64>() * ids;
            self.take(Limit::Events, 1);
            self.take(Limit::EventName, name as u64);
            self.take(Limit::EventNames, bytes as u64);
        }
    }

    /// Adds the ids of events that are added while recording, which are in records.
    pub fn add_ids(&mut self, events: &[EventAttr]) {
        for event in events {
            self.take(Limit::IdsOfEvent, event.ids.len() as u64);
        }
    }

    /// Adds formats of tracepoints.
    pub fn add_formats(&mut self, formats: &[TracepointFormat]) {
        for format in formats {
            let bytes = format.len() as u64;
            self.take(Limit::Format, bytes);
            self.take(Limit::Formats, bytes);
        }
    }

    /// Adds descriptions of files.
    pub fn add_files(&mut self, files: &[FileDefinition]) {
        files.iter().for_each(|file| self.add_json(file));
    }

    /// Adds definitions of probes.
    pub fn add_probes(&mut self, probes: &[ProbeDefinition]) {
        for probe in probes {
            self.take(Limit::Arguments, arguments(probe) as u64);
            self.add_json(probe);
        }
    }

    fn add_json(&mut self, value: &impl serde::Serialize) {
        let mut counter = JsonCounter::default();
        // What cannot be written is found when it is.
        let _ = serde_json::to_writer(&mut counter, value);
        // A comma follows.
        self.take(Limit::Definitions, counter.bytes + 1);
        self.take(Limit::Values, counter.commas + 1);
    }

    /// Compares with all limits.
    ///
    /// # Errors
    /// [`LimitExceeded`], with the first one.
    pub fn check(&self) -> Result<(), LimitExceeded> {
        let mut limits = Limit::ALL.into_iter();
        limits.try_for_each(|limit| limit.check(self.of_limit(limit)))
    }

    /// About how long a head is in a stream, or more: definitions are compressed.
    #[must_use]
    pub const fn stream_bytes(&self) -> u64 {
        const RATIO: u64 = 4;
        let definitions = self.of_limit(Limit::Definitions) / RATIO;
        // Attrs and ids are there twice.
        2 * self.of_limit(Limit::EventNames) + self.of_limit(Limit::Formats) + definitions
    }

    /// About how long a head is in a file, bytes: definitions are compressed.
    pub(crate) fn bytes(&self) -> u64 {
        const RATIO: u64 = 8;
        let definitions = self.of_limit(Limit::Definitions) / RATIO;
        let attrs = self.of_limit(Limit::Events) * Attr::WRITTEN as u64;
        self.of_limit(Limit::EventNames) + self.of_limit(Limit::Formats) + attrs + definitions
    }
}

/// The number of arguments of a probe: a reader makes something of each one that a list shows, at each site.
pub(crate) fn arguments(probe: &ProbeDefinition) -> usize {
    let shown = probe.shown.as_ref().map_or(0, Vec::len);
    let at_sites = shown.saturating_mul(probe.sites.len());
    probe.arguments.len().saturating_add(at_sites)
}

/// Number of values in JSON, or more: no definitions are parsed of too many.
pub(crate) fn values(json: &[u8]) -> u64 {
    json.iter().filter(|&&byte| byte == b',').count() as u64
}

/// Counts JSON that is written to it.
#[derive(Default)]
struct JsonCounter {
    bytes: u64,
    commas: u64,
}

impl io::Write for JsonCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len() as u64;
        self.commas += values(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Losses that fit into a node of the index, of which `others` are all other bytes: those of each sample id, else of each event.
pub(crate) fn fitting_losses(losses: Vec<Loss>, room: usize) -> Vec<Loss> {
    if size_of_val(losses.as_slice()) <= room {
        return losses;
    }
    let mut by_event: Vec<Loss> = Vec::new();
    for loss in losses {
        match by_event.last_mut() {
            Some(last) if last.event == loss.event => {
                last.lost = last.lost.saturating_add(loss.lost);
            }
            _ => by_event.push(Loss { id: 0, ..loss }),
        }
    }
    by_event
}
