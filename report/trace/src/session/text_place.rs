//! Texts that were not read at a hit, and are in the file that is mapped there.

use std::sync::Arc;

use usdtrec_decode::{StringEvidence, UnreadString};
use usdtrec_format::StringAt;

use crate::address_cache::{TimedAddress, TimedAnswer};
use crate::process::DsoId;
use crate::session::TraceSession;
use crate::symbols::file_text::FileText;

/// A text in a file.
#[derive(Clone, Debug)]
pub struct TextPlace {
    pub file: DsoId,
    /// File offset that its address has if the mapping of the file's code goes on to there.
    pub at: u64,
    pub text: Arc<FileText>,
}

impl TextPlace {
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
                text: session.symbols().text(mapping, address, limit)?,
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

    /// The value of an argument whose text this is; `None` if the bytes may be something else.
    pub(crate) fn value(&self, unread: &UnreadString) -> Option<StringAt> {
        let is_declared = unread.evidence == StringEvidence::Declared;
        let is_text = match unread.evidence {
            StringEvidence::Declared => true,
            StringEvidence::OtherHits => self.text.looks_like_text(),
            StringEvidence::Size => self.text.is_sure(unread.address),
        };
        is_text.then(|| StringAt {
            address: unread.address,
            bytes: self.text.bytes.clone(),
            cut: self.text.cut,
            guessed: !is_declared,
            from_file: true,
        })
    }
}
