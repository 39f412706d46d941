//! What the host knows about the error of its wall clock.

use std::mem::MaybeUninit;

use usdtrec_format::trace::WallQuality;

/// Asks `adjtimex(2)`; `None` where it is not allowed, as in many containers.
pub fn read() -> Option<WallQuality> {
    // SAFETY: `timex` consists of integers, for which zeros are valid. Mode 0 changes nothing.
    let mut answer: libc::timex = unsafe { MaybeUninit::zeroed().assume_init() };
    // SAFETY: the pointer is to a `timex`, which the call fills.
    if unsafe { libc::adjtimex(&raw mut answer) } < 0 {
        return None;
    }
    let microseconds = |error| u32::try_from(error).unwrap_or(u32::MAX);
    Some(WallQuality {
        is_synchronized: answer.status & libc::STA_UNSYNC == 0,
        estimated_us: microseconds(answer.esterror),
        maximum_us: microseconds(answer.maxerror),
    })
}
