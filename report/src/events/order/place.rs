//! Where samples are in a trace.

/// Where a sample is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SamplePlace {
    /// Index in the file of its block.
    pub(crate) block: u32,
    /// Offset of its record among those of the block.
    pub(crate) offset: u32,
}

/// The body of a sample's record, and where it is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlacedBody<'a> {
    pub(crate) body: &'a [u8],
    pub(crate) place: SamplePlace,
}
