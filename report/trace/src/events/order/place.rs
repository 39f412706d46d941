//! Where samples are in a trace.

/// Where a sample is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SamplePlace {
    /// Index in the file of its block.
    pub block: u32,
    /// Offset of its record among those of the block.
    pub offset: u32,
}

/// The body of a sample's record, and where it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlacedBody<'a> {
    /// The body, without the header.
    pub body: &'a [u8],
    /// Where it is.
    pub place: SamplePlace,
}
