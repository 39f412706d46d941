//! The samples that a question is about.

use crate::events::selection::Filter;
use crate::trace::session::Session;

/// Samples of a trace that a filter lets through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Samples<'a> {
    pub(crate) session: &'a Session,
    pub(crate) filter: &'a Filter,
}
