//! What was lost.

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
        for (event, &lost) in session.lost_by_event() {
            losses.add(rows, event.map(|event| event as usize), lost);
        }
        losses
    }

    fn add(&mut self, rows: &Rows, event: Option<usize>, lost: u64) {
        let row = event.and_then(|event| *rows.of_event.get(event)?);
        let sum = row.and_then(|row| self.rows.get_mut(row));
        let sum = sum.unwrap_or(&mut self.others);
        // Files may claim any number.
        *sum = sum.saturating_add(lost);
    }

    /// All together.
    pub(crate) fn total(&self) -> u64 {
        let sum = |all: u64, lost: &u64| all.saturating_add(*lost);
        self.rows.iter().fold(self.others, sum)
    }
}

/// How many hits of some events were lost, as far as is known.
pub(crate) fn lost(session: &Session, of: impl Fn(usize) -> bool) -> u64 {
    let sum = |all: u64, lost: u64| all.saturating_add(lost);
    match session.trace().losses() {
        Some(exact) => {
            let exact = exact.iter().filter(|loss| of(loss.event));
            exact.map(|loss| loss.lost).fold(0, sum)
        }
        None => {
            let known = session.lost_by_event().iter();
            let known = known.filter(|(event, _)| event.is_none_or(|event| of(event as usize)));
            known.map(|(_, &lost)| lost).fold(0, sum)
        }
    }
}
