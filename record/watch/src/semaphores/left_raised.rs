//! The report of semaphores that stay incremented.

use std::io;

use usdtrec_format::trace::ShortfallKind;

use crate::shortfalls::FoundShortfall;

/// The report of a living process whose semaphores could not be decremented.
pub(crate) fn not_lowered(pid: i32, error: &io::Error) -> FoundShortfall {
    FoundShortfall {
        kind: ShortfallKind::SemaphoreLeft,
        pid: Some(pid),
        processes: 1,
        found: format!(
            "semaphores could not be decremented after the end of the recording: {error}"
        ),
        effect: "the program prepares arguments of hits that nobody records".to_owned(),
        ..FoundShortfall::default()
    }
}
