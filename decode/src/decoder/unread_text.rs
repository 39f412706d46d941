//! Addresses of texts that a sample does not have: nobody could read them at the hit, or nothing tried to.

use usdtrec_format::Value;
use usdtrec_format::perf::Sample;

use super::Decoder;

/// What says that an argument is the address of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextEvidence {
    /// Its type.
    Declared,
    /// Nothing but the size of an address: the bytes must look like a text.
    Size,
}

/// An argument whose text a sample does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadText {
    /// Index of the argument, from 0.
    pub argument: usize,
    /// The address.
    pub address: u64,
    /// Why a text may be there.
    pub evidence: TextEvidence,
    /// Maximum length of the text, bytes.
    pub limit: u16,
}

/// Maximum length of a text where the recording has no limit, bytes: perf events record no texts.
const LIMIT: u16 = 255;
/// Least address of a text: nothing is mapped below (`vm.mmap_min_addr`).
const LEAST: u64 = 1 << 16;

impl Decoder {
    /// Whether samples may have an address of a text without the text.
    #[must_use]
    pub const fn may_lack_texts(&self) -> bool {
        self.may_lack_texts
    }

    /// Calls `found` with each text that a sample lacks. `values` are those of the sample.
    pub fn unread_texts(
        &self,
        sample: &Sample<'_>,
        values: &[Value],
        mut found: impl FnMut(UnreadText),
    ) {
        let raw = self.raw.iter();
        let raw = raw.filter_map(|operation| operation.unread_text(sample.raw));
        let words = self.operations.iter().filter_map(|operation| {
            let Some(Value::Unsigned(address)) = values.get(operation.slot) else {
                return None;
            };
            Some(UnreadText {
                argument: operation.slot,
                address: *address,
                evidence: operation.text?,
                limit: LIMIT,
            })
        });
        raw.chain(words)
            .filter(|text| text.address >= LEAST)
            .for_each(&mut found);
    }
}
