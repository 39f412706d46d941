//! Losses with their times, of which a window has the last ones.

use std::collections::VecDeque;

use usdtrec_format::trace::Loss;

/// Maximum number of reports that are kept: they come once a second. Further ones are joined with the last one.
const MAX_REPORTS: usize = 4096;

/// The losses of a window.
#[derive(Debug, Default)]
pub(super) struct TimedLosses(VecDeque<Report>);

/// Losses since the report before.
#[derive(Debug)]
struct Report {
    /// ns of the trace's clock.
    time: u64,
    losses: Vec<Loss>,
}

impl TimedLosses {
    /// Adds what was lost since the last call up to a time.
    pub(super) fn add(&mut self, time: u64, losses: &[Loss]) {
        if losses.is_empty() {
            return;
        }
        let losses = losses.to_vec();
        if self.0.len() < MAX_REPORTS {
            self.0.push_back(Report { time, losses });
        } else if let Some(last) = self.0.back_mut() {
            last.time = time;
            last.losses.extend(losses);
        }
    }

    /// Forgets what was lost before a time.
    pub(super) fn forget_before(&mut self, time: u64) {
        while self.0.front().is_some_and(|oldest| oldest.time < time) {
            self.0.pop_front();
        }
    }

    /// All losses.
    pub(super) fn all(&self) -> Vec<Loss> {
        let losses = self.0.iter().flat_map(|report| &report.losses);
        losses.copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_losses_are_forgotten() {
        let loss = |lost| Loss {
            event: 0,
            id: 1,
            lost,
        };
        let mut losses = TimedLosses::default();
        losses.add(10, &[loss(1)]);
        losses.add(20, &[]);
        losses.add(30, &[loss(2), loss(3)]);
        assert_eq!(losses.all().len(), 3);
        losses.forget_before(30);
        assert_eq!(losses.all(), [loss(2), loss(3)]);
    }
}
