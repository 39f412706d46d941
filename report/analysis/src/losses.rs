//! Lost events.

use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::loss_ledger::LossLedger;

/// Events lost, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Losses {
    /// Losses of each row.
    pub rows: Vec<u64>,
    /// Of no row.
    pub others: u64,
    /// All of the trace, and how they are known.
    pub ledger: LossLedger,
}

impl Losses {
    /// The losses of a trace, by the probes of these rows.
    pub fn new(session: &TraceSession, rows: &Rows) -> Self {
        let ledger = session.losses().clone();
        let (mut of_rows, mut others) = (vec![0u64; rows.rows.len()], 0);
        for (event, lost) in ledger.by_event() {
            let row = event.and_then(|event| *rows.of_event.get(event)?);
            let sum = row.and_then(|row| of_rows.get_mut(row));
            let sum = sum.unwrap_or(&mut others);
            *sum = sum.saturating_add(lost);
        }
        Self {
            rows: of_rows,
            others,
            ledger,
        }
    }
}
