//! What was lost.

use rustc_hash::FxHashMap;

use super::summary::Rows;
use crate::session::Session;

/// Events lost, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Losses {
    /// Of each row.
    pub(crate) rows: Vec<u64>,
    /// Of no row.
    pub(crate) others: u64,
    /// Whether these are all; else there were at least so many, and the recorder did not live to count.
    pub(crate) exact: bool,
}

impl Losses {
    pub(crate) fn new(session: &Session, rows: &Rows) -> Self {
        let mut losses = Self {
            rows: vec![0; rows.rows.len()],
            others: 0,
            exact: true,
        };
        if let Some(exact) = session.trace().losses() {
            for loss in exact {
                losses.add(rows, Some(loss.event), loss.lost);
            }
            return losses;
        }
        losses.exact = false;
        let mut by_id: FxHashMap<u64, u64> = FxHashMap::default();
        for &(id, lost) in session.lost_by_id() {
            *by_id.entry(id).or_default() += lost;
        }
        for (id, lost) in by_id {
            let event = session.target(id).map(|target| target.event as usize);
            losses.add(rows, event, lost);
        }
        losses
    }

    fn add(&mut self, rows: &Rows, event: Option<usize>, lost: u64) {
        let row = event.and_then(|event| *rows.of_event.get(event)?);
        match row.and_then(|row| self.rows.get_mut(row)) {
            Some(row) => *row += lost,
            None => self.others += lost,
        }
    }

    /// All together.
    pub(crate) fn total(&self) -> u64 {
        self.rows.iter().sum::<u64>() + self.others
    }
}
