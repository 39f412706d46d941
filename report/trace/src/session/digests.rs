//! Which digests of a trace are read instead of its metadata blocks.

use usdtrec_format::trace::{Block, Digest, Trace};

/// The digests that are worth reading, in the order of the file.
#[derive(Debug)]
pub(crate) struct Digests<'t>(Vec<&'t Digest>);

impl<'t> Digests<'t> {
    /// The digests with a block that is `wanted`.
    pub(crate) fn new(trace: &'t Trace, wanted: impl Fn(&Block) -> bool) -> Self {
        let digests = trace.digests().iter().filter(|digest| {
            // A digest is read at its first block, which must be there.
            let mut blocks = covered(trace, digest).peekable();
            let first = blocks.peek().map(|block| block.offset);
            first == Some(digest.covers().start) && blocks.any(&wanted)
        });
        Self(digests.collect())
    }

    /// The digest that a block is in.
    pub(crate) fn covering(&self, block: &Block) -> Option<&'t Digest> {
        if !may_be_covered(block) {
            return None;
        }
        let is_before = |digest: &&Digest| digest.covers().end <= block.offset;
        let digest = self.0.get(self.0.partition_point(is_before))?;
        digest.covers().contains(&block.offset).then_some(*digest)
    }
}

/// The blocks that are in a digest.
pub(crate) fn covered<'t>(trace: &'t Trace, digest: &Digest) -> impl Iterator<Item = &'t Block> {
    let covers = digest.covers();
    let first = trace
        .blocks()
        .partition_point(|block| block.offset < covers.start);
    let blocks = trace.blocks().iter().skip(first);
    blocks
        .take_while(move |block| block.offset < covers.end)
        .filter(|block| may_be_covered(block))
}

fn may_be_covered(block: &Block) -> bool {
    block.metadata && block.samples == Some(0)
}
