//! The first fields of a sample, which those of all our events have.

/// Process and time of a sample of ours. It begins with `IDENTIFIER`, `IP`, `TID` and `TIME`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SampleHead {
    /// Process; 0 if the sample is too short.
    pub(crate) pid: i32,
    /// ns of the trace's clock; 0 if the sample is too short.
    pub(crate) time: u64,
}

impl SampleHead {
    pub(crate) fn from_body(body: &[u8]) -> Self {
        let pid = body.get(16..20).and_then(|pid| pid.first_chunk());
        let time = body.get(24..32).and_then(|time| time.first_chunk());
        Self {
            pid: pid.map_or(0, |pid| i32::from_ne_bytes(*pid)),
            time: time.map_or(0, |time| u64::from_ne_bytes(*time)),
        }
    }
}
