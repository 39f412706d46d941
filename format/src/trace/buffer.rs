//! Records that wait for a flush.

use std::ops::Range;

use super::tally::Tally;

/// Bytes after which a segment ends. Chunks are made of whole segments, so this is how finely they can be cut.
const SEGMENT: usize = 16 << 10;

/// Records in the order of their arrival, with marks between records at which they may be cut into chunks.
#[derive(Debug, Default)]
pub(crate) struct RecordBuffer {
    bytes: Vec<u8>,
    /// Ended segments.
    segments: Vec<Segment>,
    /// Records behind the last ended segment.
    open: Tally,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Offset behind its last byte.
    end: usize,
    tally: Tally,
}

impl RecordBuffer {
    /// The records.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Counts a record that a later [`extend`](Self::extend) brings. `at` is the offset of its first byte in the buffer.
    #[inline]
    pub(crate) fn count(&mut self, at: usize, size: usize, sample: bool, time: u64) {
        let start = self.segments.last().map_or(0, |segment| segment.end);
        if at + size - start > SEGMENT {
            self.end_segment(at);
        }
        self.open.count(sample, time);
    }

    /// Appends records that were counted.
    #[inline]
    pub(crate) fn extend(&mut self, records: &[u8]) {
        self.bytes.extend_from_slice(records);
    }

    fn end_segment(&mut self, end: usize) {
        if self.open.records != 0 {
            self.segments.push(Segment {
                end,
                tally: std::mem::take(&mut self.open),
            });
        }
    }

    /// Ends the last segment.
    pub(crate) fn seal(&mut self) {
        self.end_segment(self.bytes.len());
    }

    /// Segments; all records are in one after [`seal`](Self::seal).
    pub(crate) fn segments(&self) -> usize {
        self.segments.len()
    }

    /// The most segments from `first` on that together are not longer than `len`, but at least one.
    pub(crate) fn run(&self, first: usize, len: usize) -> Range<usize> {
        let start = self.start(first);
        let count = self.segments[first..]
            .iter()
            .take_while(|segment| segment.end - start <= len)
            .count();
        first..first + count.max(1)
    }

    /// The records of some segments and their tally.
    pub(crate) fn records(&self, segments: Range<usize>) -> (&[u8], Tally) {
        let start = self.start(segments.start);
        let mut tally = Tally::default();
        let mut end = start;
        for segment in &self.segments[segments] {
            tally.add(&segment.tally);
            end = segment.end;
        }
        (&self.bytes[start..end], tally)
    }

    fn start(&self, segment: usize) -> usize {
        match segment.checked_sub(1) {
            Some(before) => self.segments[before].end,
            None => 0,
        }
    }

    /// Forgets all records, keeping the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.segments.clear();
        self.open = Tally::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_hold_whole_records() {
        let mut buffer = RecordBuffer::default();
        let sizes = [16, SEGMENT, 8, SEGMENT - 8, 65528, 8];
        for (time, size) in sizes.into_iter().enumerate() {
            buffer.count(buffer.len(), size, true, time as u64);
            buffer.extend(&vec![time as u8; size]);
        }
        buffer.seal();
        let lens: Vec<usize> = (0..buffer.segments())
            .map(|segment| buffer.records(segment..segment + 1).0.len())
            .collect();
        assert_eq!(lens, [16, SEGMENT, SEGMENT, 65528, 8]);
        assert_eq!(buffer.run(0, SEGMENT + 16), 0..2);
        assert_eq!(buffer.run(3, 8), 3..4);
        let (_, tally) = buffer.records(0..5);
        assert_eq!((tally.records, tally.time()), (6, Some((1, 5))));
    }
}
