//! Records that are buffered until a flush.

use std::ops::Range;

use super::record_counts::RecordCounts;

/// Maximum length of a segment, bytes. Chunks consist of whole segments.
const SEGMENT: usize = 16 << 10;

/// Records in the order of arrival, divided into segments at which they can be split into chunks.
#[derive(Debug, Default)]
pub(crate) struct RecordBuffer {
    bytes: Vec<u8>,
    /// Complete segments.
    segments: Vec<Segment>,
    /// Counts of the records after the last complete segment.
    open: RecordCounts,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Offset after its last byte.
    end: usize,
    counts: RecordCounts,
}

impl RecordBuffer {
    /// The records.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Length of the records, bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Counts a record that a later [`extend`](Self::extend) appends. `at` is the offset of its first byte in the buffer.
    #[inline]
    pub(crate) fn count(&mut self, at: usize, size: usize, sample: bool, time: u64) {
        let start = self.segments.last().map_or(0, |segment| segment.end);
        if at + size - start > SEGMENT {
            self.end_segment(at);
        }
        self.open.count(sample, time);
    }

    /// Appends records that were already counted.
    #[inline]
    pub(crate) fn extend(&mut self, records: &[u8]) {
        self.bytes.extend_from_slice(records);
    }

    fn end_segment(&mut self, end: usize) {
        if self.open.records != 0 {
            self.segments.push(Segment {
                end,
                counts: std::mem::take(&mut self.open),
            });
        }
    }

    /// Completes the last segment.
    pub(crate) fn seal(&mut self) {
        self.end_segment(self.bytes.len());
    }

    /// Number of complete segments. After [`seal`](Self::seal) they contain all records.
    pub(crate) fn segments(&self) -> usize {
        self.segments.len()
    }

    /// As many of the first segments of a range, which is not empty, as fit into `len` bytes, but at least one.
    pub(crate) fn run(&self, segments: Range<usize>, len: usize) -> Range<usize> {
        let first = segments.start;
        let start = self.start(first);
        let count = self.segments[segments]
            .iter()
            .take_while(|segment| segment.end - start <= len)
            .count();
        first..first + count.max(1)
    }

    /// The records of a range of segments, and their counts.
    pub(crate) fn records(&self, segments: Range<usize>) -> (&[u8], RecordCounts) {
        let start = self.start(segments.start);
        let mut counts = RecordCounts::default();
        let mut end = start;
        for segment in &self.segments[segments] {
            counts.add(&segment.counts);
            end = segment.end;
        }
        (&self.bytes[start..end], counts)
    }

    fn start(&self, segment: usize) -> usize {
        match segment.checked_sub(1) {
            Some(before) => self.segments[before].end,
            None => 0,
        }
    }

    /// Removes all records, keeping the allocated memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.segments.clear();
        self.open = RecordCounts::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::TimeRange;

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
        assert_eq!(buffer.run(0..5, SEGMENT + 16), 0..2);
        assert_eq!(buffer.run(3..5, 8), 3..4);
        let (_, counts) = buffer.records(0..5);
        let time = Some(TimeRange { first: 1, last: 5 });
        assert_eq!((counts.records, counts.time()), (6, time));
    }
}
