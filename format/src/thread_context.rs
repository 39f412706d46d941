//! OpenTelemetry's thread context: which request a thread was working on at a hit ("OTEP 4947: Thread Context: Sharing Thread-Level Information
//! with External Readers", `oteps/profiles/4947-thread-ctx.md` of `open-telemetry/opentelemetry-specification`).
//!
//! A program exports a thread-local pointer, `otel_thread_ctx_v1`, to a record that is packed: `trace-id` 16 bytes, `span-id` 8, `valid` 1 (1, any
//! other value is invalid), `trace-flags` 1, `attrs-data-size` 2, attributes. A null pointer, and ids of zeros, mean that there is no request.
//!
//! Of the bpf engine's samples, the raw part has [`ThreadContext::BYTES`] bytes at the layout's offset
//! ([`RawLayout::thread_context`](crate::RawLayout)): the trace id, the span id, and a `u32`, the [`ContextStatus`].

/// The ids of the request that a thread was working on, as W3C Trace Context has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadContext {
    /// Id of the trace, not all 0.
    pub trace_id: [u8; 16],
    /// Id of the span that was active.
    pub span_id: [u8; 8],
}

/// Why a hit has no thread context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoContext {
    /// The recording did not read thread contexts.
    #[default]
    NotRecorded,
    /// The recorder knew no variable of the process: the process exports none, or the recorder had not found it yet.
    NoVariable,
    /// The thread was working on no request.
    NoRequest,
    /// The record was not valid: it was being changed.
    Invalid,
    /// The memory of the variable or of the record could not be read.
    Unreadable,
}

/// The digits of an id of at most 16 bytes, in lower case, as W3C Trace Context has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HexId {
    digits: [u8; 2 * MAX_ID_BYTES],
    len: usize,
}

/// Maximum number of bytes of an id.
const MAX_ID_BYTES: usize = 16;

impl HexId {
    /// Bytes beyond the first 16 are left out.
    #[must_use]
    pub fn new(id: &[u8]) -> Self {
        let mut digits = [0; 2 * MAX_ID_BYTES];
        let digit = |value: u8| char::from_digit(value.into(), 16).map_or(b'?', |c| c as u8);
        let (pairs, _) = digits.as_chunks_mut::<2>();
        for (pair, byte) in pairs.iter_mut().zip(id) {
            *pair = [digit(byte >> 4), digit(byte & 15)];
        }
        Self {
            digits,
            len: 2 * id.len().min(MAX_ID_BYTES),
        }
    }

    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let digits = self.digits.get(..self.len).unwrap_or_default();
        std::str::from_utf8(digits).unwrap_or_default()
    }
}

/// What a program found when it read a thread context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ContextStatus {
    /// The process is not in the map of variables.
    NoVariable = 0,
    /// The ids are those of the record.
    Valid = 1,
    /// The pointer is null, or the thread has no memory for the variable yet.
    NoRequest = 2,
    /// The record's `valid` is not 1.
    Invalid = 3,
    /// Memory could not be read.
    Unreadable = 4,
}

impl ThreadContext {
    /// Name of the variable in `.dynsym`.
    pub const VARIABLE: &'static str = "otel_thread_ctx_v1";
    /// Size in the raw part, bytes.
    pub const BYTES: u16 = 28;
    /// Offset of the span id.
    pub const SPAN_ID: u16 = 16;
    /// Offset of the status; in the record of the program, of `valid`.
    pub const STATUS: u16 = 24;

    /// Decodes the context at an offset of the raw part.
    ///
    /// # Errors
    /// [`NoContext`]; a raw part that is too short has none that can be read.
    pub fn decode(raw: &[u8], offset: u16) -> Result<Self, NoContext> {
        const NO_VARIABLE: u32 = ContextStatus::NoVariable as u32;
        const VALID: u32 = ContextStatus::Valid as u32;
        const NO_REQUEST: u32 = ContextStatus::NoRequest as u32;
        const INVALID: u32 = ContextStatus::Invalid as u32;
        let bytes = raw.get(offset.into()..).unwrap_or_default();
        let Some(bytes) = bytes.first_chunk::<{ Self::BYTES as usize }>() else {
            return Err(NoContext::Unreadable);
        };
        let (ids, status) = bytes.split_at(Self::STATUS.into());
        let status = status.first_chunk().copied().map(u32::from_le_bytes);
        let (trace, span) = ids.split_at(Self::SPAN_ID.into());
        let (Some(trace_id), Some(span_id)) = (trace.first_chunk(), span.first_chunk()) else {
            return Err(NoContext::Unreadable);
        };
        let (trace_id, span_id) = (*trace_id, *span_id);
        let is_none = trace_id == [0; 16] || span_id == [0; 8];
        match status {
            Some(VALID) if is_none => Err(NoContext::NoRequest),
            Some(VALID) => Ok(Self { trace_id, span_id }),
            Some(NO_VARIABLE) => Err(NoContext::NoVariable),
            Some(NO_REQUEST) => Err(NoContext::NoRequest),
            Some(INVALID) => Err(NoContext::Invalid),
            _ => Err(NoContext::Unreadable),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(status: u32, trace_id: [u8; 16], span_id: [u8; 8]) -> Vec<u8> {
        [&[9; 8][..], &trace_id, &span_id, &status.to_le_bytes()].concat()
    }

    #[test]
    fn digits_are_those_of_the_bytes() {
        assert_eq!(HexId::new(&[0, 0xa1, 0xff]).as_str(), "00a1ff");
        assert_eq!(HexId::new(&[]).as_str(), "");
        assert_eq!(HexId::new(&[7; 17]).as_str(), "07".repeat(16));
    }

    #[test]
    fn each_status_is_a_context_or_a_reason() {
        let trace_id = *b"0123456789abcdef";
        let span_id = *b"span id.";
        let decode = |status| ThreadContext::decode(&raw(status, trace_id, span_id), 8);
        assert_eq!(decode(1), Ok(ThreadContext { trace_id, span_id }));
        let reasons = [0, 2, 3, 4, 5, u32::MAX].map(|status| decode(status).unwrap_err());
        let expected = [
            NoContext::NoVariable,
            NoContext::NoRequest,
            NoContext::Invalid,
            NoContext::Unreadable,
            NoContext::Unreadable,
            NoContext::Unreadable,
        ];
        assert_eq!(reasons, expected);
    }

    #[test]
    fn ids_of_zeros_are_no_request() {
        let mut trace_id = [0; 16];
        for (trace_id, span_id) in [(trace_id, [1; 8]), ([1; 16], [0; 8])] {
            let none = ThreadContext::decode(&raw(1, trace_id, span_id), 8);
            assert_eq!(none, Err(NoContext::NoRequest));
        }
        trace_id[15] = 1;
        assert!(ThreadContext::decode(&raw(1, trace_id, [1; 8]), 8).is_ok());
    }

    #[test]
    fn a_raw_part_that_is_too_short_has_none() {
        let whole = raw(1, [1; 16], [1; 8]);
        for len in 0..whole.len() {
            let none = ThreadContext::decode(&whole[..len], 8);
            assert_eq!(none, Err(NoContext::Unreadable), "{len}");
        }
        let beyond = ThreadContext::decode(&whole, u16::MAX);
        assert_eq!(beyond, Err(NoContext::Unreadable));
    }
}
