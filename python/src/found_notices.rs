//! What is wrong with a trace, found while its rows are taken.

use std::sync::{Arc, Mutex, PoisonError};

use usdtrec_report::{HintWords, Notices, Sentences};

/// What is wrong with a trace, as far as it was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct FoundNotices(Arc<Mutex<Option<Vec<String>>>>);

impl FoundNotices {
    pub(crate) fn set(&self, notices: &Notices) {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *found = Some(notices.sentences(HintWords::default()));
    }

    /// `None` until they are found.
    pub(crate) fn sentences(&self) -> Option<Vec<String>> {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        found.clone()
    }
}
