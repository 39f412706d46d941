//! A sample, and the event that it is of.

use usdtrec_format::perf::Sample;

use crate::trace::session::ids::Target;

/// A sample, with the event and site that it is of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit<'h> {
    pub(crate) target: Target,
    pub(crate) sample: &'h Sample<'h>,
}

/// A sample that was parsed, with the event and site that it is of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParsedHit<'a> {
    pub(crate) target: Target,
    pub(crate) sample: Sample<'a>,
}
