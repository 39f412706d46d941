//! Strings that were not read at a hit, and are in the file that is mapped there.

use std::sync::Arc;

use usdtrec_decode::{StringEvidence, UnreadString};
use usdtrec_format::StringAt;

use crate::address_cache::{TimedAddress, TimedAnswer};
use crate::process::DsoId;
use crate::session::TraceSession;
use crate::symbols::file_string::FileString;

/// A string in a file.
#[derive(Clone, Debug)]
pub struct StringPlace {
    pub file: DsoId,
    /// File offset that its address has if the mapping of the file's code continues to there.
    pub at: u64,
    pub string: Arc<FileString>,
}

impl StringPlace {
    /// What is at an address; `None` if it is in no file, or in a part of it that the process can write.
    pub(crate) fn find(
        session: &TraceSession,
        at: TimedAddress,
        limit: u16,
    ) -> TimedAnswer<Option<Self>> {
        let TimedAddress { pid, address, time } = at;
        let mappings = session.mappings();
        let answer = mappings.find_mapped(pid, time, |mapping| {
            Some(Self {
                file: mapping.dso,
                at: mapping.file_offset(address),
                string: session.symbols().string(mapping, address, limit)?,
            })
        });
        // Where another file was mapped since, its code is.
        let covering = mappings.mapping(pid, address, time);
        let is_covered = |place: &Self| covering.is_some_and(|other| other.dso != place.file);
        TimedAnswer {
            from: time,
            until: mappings.mappings_until(pid, time),
            answer: answer.filter(|place| !is_covered(place)),
        }
    }

    /// The value of an argument whose string this is; `None` if the bytes may be something else.
    pub(crate) fn value(&self, unread: &UnreadString) -> Option<StringAt> {
        let is_declared = unread.evidence == StringEvidence::Declared;
        let is_string = match unread.evidence {
            StringEvidence::Declared => true,
            StringEvidence::OtherHits => self.string.looks_like_string(),
            StringEvidence::Size => self.string.is_sure(),
        };
        is_string.then(|| StringAt {
            address: unread.address,
            bytes: self.string.bytes.clone(),
            cut: self.string.cut,
            guessed: !is_declared,
            from_file: true,
        })
    }
}
