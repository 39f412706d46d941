//! Sentences about losses.

use usdtrec_trace::session::loss_ledger::{LossLedger, LossSource, Uncounted};

/// The number of lost events, and how exact it is: `3 lost`, `at least 3 lost`, `losses not known`.
pub fn words(losses: &LossLedger) -> String {
    match (losses.total(), losses.source) {
        (0, LossSource::Unknown) => "losses not known".to_owned(),
        (total, LossSource::AtTheLastFlush) => format!("{total} lost up to the last flush"),
        (total, _) if losses.is_exact() => format!("{total} lost"),
        (0, LossSource::KernelLostRecords) => "0 lost".to_owned(),
        (0, _) => "losses not known".to_owned(),
        (total, _) => format!("at least {total} lost"),
    }
}

/// Why more events may be lost than were counted; `None` if the count is exact.
pub fn doubt(losses: &LossLedger) -> Option<&str> {
    match (&losses.uncounted, losses.source) {
        (Some(Uncounted::Recorder(why)), _) => Some(why),
        (Some(Uncounted::CpusChanged), _) => Some(
            "CPUs went off line or came on line while perf events recorded: hits there are missing, uncounted",
        ),
        (Some(Uncounted::Shortfalls), _) => Some(
            "probes did not work in some processes, were attached while recording, or could not be checked: hits there are missing, uncounted",
        ),
        (None, LossSource::AtTheEnd | LossSource::KernelLostRecords) => None,
        (None, LossSource::AtTheLastFlush) => Some(
            "the recorder was killed, or is still running: events lost after its last flush were not counted",
        ),
        (None, LossSource::Unknown) => {
            Some("the recorder was killed, or is still running: lost events were not counted")
        }
    }
}

/// How losses are known, as tables of exports have it.
pub const fn source_word(counted: LossSource) -> &'static str {
    match counted {
        LossSource::AtTheEnd => "at the end",
        LossSource::AtTheLastFlush => "at the last flush",
        LossSource::KernelLostRecords => "as the kernel said",
        LossSource::Unknown => "not counted",
    }
}
