//! Events that the recorder lost.

use usdtrec_analysis::losses::Losses;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::loss_ledger::LossSource;
use usdtrec_view::losses::{doubt, source_word};

/// Events that were lost while recording, of the whole trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LossCounts {
    /// Of each probe that was recorded, in the order of the file; at the end those of no probe that is known, if there are any.
    pub probes: Vec<ProbeLosses>,
    /// Whether these are all; else at least so many were lost.
    pub is_exact: bool,
    /// How they are known.
    pub counted: LossSource,
    /// Why more may be lost, as a sentence without a period; `None` if nothing says so.
    pub doubt: Option<String>,
}

/// Events of a probe that were lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeLosses {
    /// Name of the event (`sdt_PROVIDER:NAME`); `None`: of no probe that is known.
    pub event: Option<String>,
    /// Their number; `None` if it is not known.
    pub lost: Option<u64>,
}

impl LossCounts {
    /// The losses of a trace.
    #[must_use]
    pub fn new(session: &TraceSession) -> Self {
        let rows = Rows::new(session, |_| true);
        let losses = Losses::new(session, &rows);
        let others = (losses.others > 0).then_some((None, losses.others));
        let of_rows = rows.rows.iter().map(|row| Some(row.name.clone()));
        let probes = of_rows.zip(losses.rows.iter().copied()).chain(others);
        Self {
            probes: probes
                .map(|(event, lost)| ProbeLosses {
                    event,
                    lost: losses.ledger.known(lost),
                })
                .collect(),
            is_exact: losses.ledger.is_exact(),
            counted: losses.ledger.source,
            doubt: doubt(&losses.ledger).map(str::to_owned),
        }
    }

    /// How they are known, as the table `losses` of exports to Parquet has it.
    #[must_use]
    pub const fn counted_word(&self) -> &'static str {
        source_word(self.counted)
    }

    /// The losses of all probes; `None` if those of one are not known.
    #[must_use]
    pub fn lost(&self) -> Option<u64> {
        let sum = |all: u64, probe: &ProbeLosses| Some(all.saturating_add(probe.lost?));
        self.probes.iter().try_fold(0, sum)
    }
}
