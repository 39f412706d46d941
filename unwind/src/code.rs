//! What is known of the code at an address, and where the parts of a file are linked to.

use object::read::{Object, ObjectSegment};

use crate::unwind_tables::UnwindTables;

/// The code at an address of a file.
#[derive(Clone, Copy, Debug)]
pub struct Code<'t> {
    /// The tables of its file.
    pub tables: &'t UnwindTables,
    /// The address in the file: what symbols and tables have.
    pub address: u64,
}

impl Code<'_> {
    /// Whether handlers of signals return to this address.
    #[must_use]
    pub fn is_signal_return(&self) -> bool {
        self.tables.is_signal_return(self.address)
    }
}

/// What is mapped at an address of a process.
#[derive(Clone, Copy, Debug)]
pub enum MappedCode<'t> {
    /// Code of a file.
    File(Code<'t>),
    /// Code that the process made at run time, which is in no file and has no tables.
    Made,
    /// Code of which nothing is known: its file cannot be read.
    Unknown,
}

/// The code of a process.
pub trait ProcessCode<'t> {
    /// The code at an address; `None` if nothing is known to be mapped there. It is asked for the byte before a return address, which belongs to the call.
    fn at(&mut self, address: u64) -> Option<MappedCode<'t>>;

    /// Whether the process makes code at run time. Functions of its files that have no entry in their tables then are taken for those of a
    /// runtime, which keep frame pointers, as the built-in functions of V8 do.
    fn is_maker(&mut self) -> bool;
}

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

    /// Those of a program, from the program or its file of debug information. There `objcopy` leaves segments of code no contents, or few, and other
    /// offsets; then those are taken where linkers place segments. After data that programs write, they are not known.
    #[must_use]
    pub fn of_program<'data>(file: &impl Object<'data>) -> Self {
        let lacks_contents = file.segments().any(|segment| {
            let is_writable = segment.permissions().writable();
            let is_code = segment.permissions().executable() && !is_writable;
            is_code && segment.file_range().1 < segment.size()
        });
        if !lacks_contents {
            return Self::from_file(file);
        }
        let segments = file.segments();
        let read_only = segments.take_while(|segment| !segment.permissions().writable());
        let mut end = 0;
        let segments = read_only.map(|segment| {
            let (address, len) = (segment.address(), segment.size());
            let offset = next_offset(end, address, segment.align());
            end = offset.wrapping_add(len);
            Segment {
                offset,
                len,
                address,
            }
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

/// Where linkers place a segment after the previous one, which ends at `end`: at the first offset that has the place of its address in a page.
fn next_offset(end: u64, address: u64, align: u64) -> u64 {
    end.wrapping_add(address.wrapping_sub(end) % align.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_placed_in_order() {
        // Programs of GNU ld, with and without a fixed address, and of lld.
        assert_eq!(next_offset(0, 0x40_0000, 0x1000), 0);
        assert_eq!(next_offset(0x618, 0x1000, 0x1000), 0x1000);
        assert_eq!(next_offset(0x618, 0x40_1000, 0x1000), 0x1000);
        assert_eq!(next_offset(0x620, 0x1620, 0x1000), 0x620);
        assert_eq!(next_offset(0x570, 0x20_0570, 0x20_0000), 0x570);
        assert_eq!(next_offset(5, 7, 0), 5);
    }

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
