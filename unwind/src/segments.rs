//! Where the parts of an ELF file are linked to.

use object::read::{Object, ObjectSegment};

/// Where the parts of a file are linked to. A file of debug information has other offsets than the program that it is
/// about, but the same addresses.
#[derive(Clone, Debug, Default)]
pub struct Segments(Vec<Segment>);

#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    len: u64,
    address: u64,
}

impl Segments {
    /// Those of a file.
    #[must_use]
    pub fn from_file<'data>(file: &impl Object<'data>) -> Self {
        let segments = file.segments().map(|segment| Segment {
            offset: segment.file_range().0,
            len: segment.file_range().1,
            address: segment.address(),
        });
        Self(segments.collect())
    }

    /// The link-time address of a file offset.
    #[must_use]
    pub fn address(&self, offset: u64) -> Option<u64> {
        self.0.iter().find_map(|segment| {
            let within = offset.checked_sub(segment.offset)?;
            (within < segment.len).then(|| segment.address.wrapping_add(within))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_may_wrap() {
        let segment = Segment {
            offset: 0,
            len: u64::MAX,
            address: u64::MAX - 1,
        };
        assert_eq!(Segments(vec![segment]).address(7), Some(5));
    }
}
