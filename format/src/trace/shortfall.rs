//! What a recording lacks although its probes were attached, as the recorder found it.
//!
//! A recorder looks into the recorded processes. Where a probe cannot work, it writes a record of type 65, which perf ignores, among the records of
//! processes:
//!
//! | offset in the body | bytes | |
//! |---|---|---|
//! | 0 | 8 | `USDTLACK` |
//! | 8 | | JSON of [`Shortfall`] with NUL, padded with zeros to a multiple of 8 and to at least 80 bytes of the whole record |
//! | last | | sample id; its time is that at which it was found |
//!
//! A later record with the same number replaces an earlier one.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::own_record::{Magic, is_own, own_json, padded_json, put_own};
use crate::build_id::BuildId;
use crate::definitions::path_bytes;
use crate::escape::{escape, shown};
use crate::perf::{RawRecord, SampleId, SampleType};

pub(super) const MAGIC: Magic = *b"USDTLACK";
/// Maximum length of the JSON, bytes: the size of a record is a `u16`.
const MAX_JSON: usize = 60_000;

/// What a recording lacks in some processes, without counting it as lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortfall {
    /// Number in the recording, from 0.
    pub number: u32,
    /// What is not as it must be.
    pub kind: ShortfallKind,
    /// The file with the probes; empty if it is about several.
    #[serde(
        with = "path_bytes",
        default,
        skip_serializing_if = "crate::trace::shortfall::is_empty"
    )]
    pub path: PathBuf,
    /// Events of the probes concerned, the first few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Number of sites concerned, in the process with the most.
    #[serde(default)]
    pub sites: u64,
    /// Processes, the first few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pids: Vec<i32>,
    /// Number of processes; of files that were not read, the number that [`found`](Self::found) has.
    #[serde(default)]
    pub processes: u64,
    /// Build-id of a file that appeared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<BuildId>,
    /// Time from the mapping of a file that appeared until its probes were attached, ns; `None` if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap_ns: Option<u64>,
    /// What was found, in the first process.
    pub found: String,
    /// What follows from it.
    pub effect: String,
    /// What can be done; empty if nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

/// What is not as it must be.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ShortfallKind {
    /// There is no breakpoint at a site.
    NoBreakpoint,
    /// A semaphore is 0.
    Semaphore,
    /// The process maps another file than the one with the breakpoints.
    OtherFile,
    /// The code of a site is not that of the file, but in other memory.
    MovedCode,
    /// Hits before the probe worked in a process.
    Gap,
    /// Processes that could not be checked and had no hits.
    NotChecked,
    /// A file appeared while recording: hits before its probes were attached.
    Followed,
    /// A file appeared while recording, and its probes were not attached.
    NotFollowed,
    /// Files that appeared while recording were not read: whether they have selected probes is not known.
    NotRead,
    /// A breakpoint was left in a process after the end of the recording.
    BreakpointLeft,
    /// A semaphore is not 0 in a process after the end of the recording.
    SemaphoreLeft,
    /// Only slow spans were recorded: hits of others are missing, as was asked for.
    ShortSpans,
    /// A process maps a file with breakpoints and does not execute it: what it reads and writes elsewhere has them, too.
    Reader,
    /// A pattern selected no probe until the end.
    NoProbe,
    /// The file holds less than the window that was asked for, because of its size.
    ShortWindow,
    /// Hits are lost because their filter could not be evaluated.
    Unjudged,
    /// Hits were still being captured when the recording ended.
    Unfinished,
    /// Children of recorded processes ran before they had probes, or without them.
    UnattachedChildren,
    /// Threads that mapped new files were not held until the probes of these were attached.
    UnheldMappings,
    /// Files that replaced programs of the filter were too many: processes that execute the later ones have no hits.
    ReplacedPrograms,
    /// A minimum or maximum that was found in the kernel may be wrong.
    InexactExtremes,
    /// Hits do not have how long their threads have waited.
    UnknownWaits,
    /// How long threads have waited may be wrong.
    MissedSwitches,
    /// Waits of threads are not among the events.
    LostWaits,
    /// Another one, of a later recorder.
    #[default]
    #[serde(other)]
    Other,
}

impl ShortfallKind {
    /// Whether hits of attached probes may be missing that are not counted as lost. Of files that were not read, and of patterns without a probe, none are
    /// attached.
    #[must_use]
    pub const fn lacks_hits(self) -> bool {
        match self {
            Self::NoBreakpoint
            | Self::Semaphore
            | Self::OtherFile
            | Self::MovedCode
            | Self::Gap
            | Self::NotChecked
            | Self::Followed
            | Self::NotFollowed
            | Self::Unfinished
            | Self::UnattachedChildren
            | Self::UnheldMappings
            | Self::ReplacedPrograms
            | Self::Other => true,
            // Counted as lost.
            Self::Unjudged
            | Self::NotRead
            | Self::BreakpointLeft
            | Self::SemaphoreLeft
            | Self::ShortSpans
            | Self::Reader
            | Self::NoProbe
            | Self::ShortWindow
            | Self::InexactExtremes
            | Self::UnknownWaits
            | Self::MissedSwitches
            | Self::LostWaits => false,
        }
    }
}

impl fmt::Display for Shortfall {
    /// One line; names are escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind == ShortfallKind::Reader {
            // It names the program and the file.
            write!(f, "{}: {}", escape(&self.found), escape(&self.effect))?;
            return self.put_remedy(f);
        }
        let named = self.pids.len() as u64;
        match *self.pids {
            [] if self.processes == 0 || self.kind == ShortfallKind::NotRead => {}
            [] if self.processes == 1 => f.write_str("1 process: ")?,
            [] => write!(f, "{} processes: ", self.processes)?,
            [pid] => write!(f, "process {pid}")?,
            [first, ref others @ ..] => {
                write!(f, "processes {first}")?;
                others.iter().try_for_each(|pid| write!(f, ", {pid}"))?;
            }
        }
        if named > 0 {
            match self.processes.saturating_sub(named) {
                0 => f.write_str(": ")?,
                more => write!(f, " and {more} more: ")?,
            }
        }
        if !self.path.as_os_str().is_empty() {
            write!(f, "{}: ", shown(&self.path))?;
        }
        f.write_str(&escape(&self.found))?;
        if let [first, others @ ..] = self.events.as_slice() {
            write!(f, " ({}", escape(first))?;
            for event in others {
                write!(f, ", {}", escape(event))?;
            }
            let named = self.events.len() as u64;
            if self.sites > named {
                write!(f, ", {} sites", self.sites)?;
            }
            f.write_str(")")?;
        }
        write!(f, "; {}", escape(&self.effect))?;
        self.put_remedy(f)
    }
}

impl Shortfall {
    fn put_remedy(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.remedy.as_str() {
            "" => Ok(()),
            remedy => write!(f, "; {}", escape(remedy)),
        }
    }

    /// Whether this is such a record, which may be damaged.
    #[must_use]
    pub fn is(record: &RawRecord<'_>) -> bool {
        is_own(record, MAGIC)
    }

    /// Parses a record; `None` if it is another one or is damaged.
    ///
    /// `sample_type` is [`Attr::id_type`](crate::perf::Attr::id_type).
    #[must_use]
    pub fn parse(record: &RawRecord<'_>, sample_type: SampleType) -> Option<Self> {
        own_json(record, MAGIC, sample_type)
    }

    /// Appends the record. Names that are too many for a record are left out.
    ///
    /// # Errors
    /// Errors of serialization.
    pub fn encode(
        &self,
        id: &SampleId,
        sample_type: SampleType,
        out: &mut Vec<u8>,
    ) -> Result<(), serde_json::Error> {
        let mut json = padded_json(self)?;
        if json.len() > MAX_JSON {
            let short = Self {
                path: PathBuf::new(),
                events: Vec::new(),
                pids: Vec::new(),
                ..self.clone()
            };
            json = padded_json(&short)?;
            json.truncate(MAX_JSON);
        }
        put_own(MAGIC, &json, id, sample_type, out);
        Ok(())
    }
}

fn is_empty(path: &std::path::Path) -> bool {
    path.as_os_str().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::Records;

    const IDS: SampleType =
        SampleType(SampleType::TID.0 | SampleType::TIME.0 | SampleType::IDENTIFIER.0);

    fn shortfall() -> Shortfall {
        Shortfall {
            number: 3,
            kind: ShortfallKind::Semaphore,
            path: "/bin/a\nb".into(),
            events: vec!["sdt_a:b".to_owned(), "sdt_a:\u{202e}".to_owned()],
            sites: 5,
            pids: vec![7, 8],
            processes: 4,
            build_id: Some("00ff".parse().unwrap()),
            gap_ns: Some(u64::MAX),
            found: "the semaphore at 0x10 is 0".to_owned(),
            effect: "the probe is not executed".to_owned(),
            remedy: "record -p 7".to_owned(),
        }
    }

    fn encoded(shortfall: &Shortfall) -> Vec<u8> {
        let mut out = Vec::new();
        let id = SampleId::default();
        shortfall.encode(&id, IDS, &mut out).unwrap();
        out
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        for shortfall in [shortfall(), Shortfall::default()] {
            let bytes = encoded(&shortfall);
            assert!(bytes.len() >= 80 && bytes.len().is_multiple_of(8));
            let record = Records::new(&bytes).next().unwrap();
            assert_eq!(Shortfall::parse(&record, IDS), Some(shortfall));
        }
    }

    #[test]
    fn what_is_damaged_or_too_long_is_none() {
        let mut bytes = encoded(&shortfall());
        bytes[20] = b'}';
        let record = Records::new(&bytes).next().unwrap();
        assert_eq!(Shortfall::parse(&record, IDS), None);
        let long = Shortfall {
            events: vec!["x".repeat(100_000)],
            ..shortfall()
        };
        let bytes = encoded(&long);
        let record = Records::new(&bytes).next().unwrap();
        let read = Shortfall::parse(&record, IDS).unwrap();
        assert_eq!((read.events, read.processes), (Vec::<String>::new(), 4));
        // Longer than a path may be.
        let long = Shortfall {
            events: vec!["x".repeat(30_000)],
            ..shortfall()
        };
        let bytes = encoded(&long);
        let record = Records::new(&bytes).next().unwrap();
        assert!(Shortfall::parse(&record, IDS) == Some(long));
        let long = Shortfall {
            found: "x".repeat(100_000),
            ..shortfall()
        };
        let bytes = encoded(&long);
        let record = Records::new(&bytes).next().unwrap();
        assert_eq!(Shortfall::parse(&record, IDS), None);
    }

    #[test]
    fn a_line_says_where_what_and_what_to_do() {
        assert_eq!(
            shortfall().to_string(),
            "processes 7, 8 and 2 more: /bin/a\\nb: the semaphore at 0x10 is 0 (sdt_a:b, sdt_a:\\u{202e}, 5 sites); the probe is not executed; \
             record -p 7"
        );
    }

    #[test]
    fn kinds_of_later_recorders_are_read() {
        let json = r#"{"number":1,"kind":"new","found":"f","effect":"e"}"#;
        let read: Shortfall = serde_json::from_str(json).unwrap();
        assert_eq!(read.kind, ShortfallKind::Other);
        let word = serde_json::to_value(ShortfallKind::NoBreakpoint).unwrap();
        assert_eq!(word, "no_breakpoint");
    }
}
