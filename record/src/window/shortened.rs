//! A window that holds less than its time, because its records have reached its size.

use std::time::Duration;

use usdtrec_format::scaled::{duration, size};
use usdtrec_format::trace::{Shortfall, ShortfallKind};

use super::limits::WindowLimits;

/// Number of the shortfall in a file; those of the recording are numbered from 0.
const NUMBER: u32 = u32::MAX;

/// A window that holds less than its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortenedWindow {
    /// The time that it holds.
    pub held: Duration,
    /// The time that it is to hold.
    pub asked: Duration,
    /// Its maximum memory, bytes.
    pub bytes: usize,
}

impl ShortenedWindow {
    /// What is said of a window that holds this time; `None` if nothing fell out of it too early.
    pub(super) fn new(limits: WindowLimits, held: Duration, fell_out: u64) -> Option<Self> {
        let asked = Duration::from_nanos(limits.nanoseconds());
        (fell_out > 0 && held < asked).then_some(Self {
            held,
            asked,
            bytes: limits.bytes(),
        })
    }

    /// The same for the trace.
    pub(super) fn shortfall(self) -> Shortfall {
        let Self { held, asked, bytes } = self;
        let ns = |time: Duration| duration(time.as_nanos() as f64);
        Shortfall {
            number: NUMBER,
            kind: ShortfallKind::ShortWindow,
            found: format!(
                "the file holds the last {} instead of {}: its records take the {} of memory that they may take",
                ns(held),
                ns(asked),
                size(bytes as f64)
            ),
            effect: "earlier hits are not in it".to_owned(),
            ..Shortfall::default()
        }
    }
}
