//! A sample, and the event that it is of.

use usdtrec_format::perf::Sample;

use crate::session::ids::SampleTarget;

/// A sample, with the event and site that it is of.
#[derive(Clone, Copy, Debug)]
pub struct Hit<'h> {
    /// The event and the site.
    pub target: SampleTarget,
    /// The sample.
    pub sample: &'h Sample<'h>,
}

/// A sample that was parsed, with the event and site that it is of.
#[derive(Clone, Copy, Debug)]
pub struct ParsedHit<'a> {
    /// The event and the site.
    pub target: SampleTarget,
    /// The sample.
    pub sample: Sample<'a>,
}
