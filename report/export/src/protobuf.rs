//! Messages in the wire format of Protocol Buffers.

/// A message being written. Fields are written in any order; those of repeated ones in theirs.
#[derive(Debug, Default)]
pub(crate) struct Proto {
    bytes: Vec<u8>,
}

/// Wire types.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH: u32 = 2;

impl Proto {
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// Empties it; the memory stays.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    pub(crate) const fn len(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    #[inline]
    fn tag(&mut self, field: u32, wire: u32) {
        self.varint(u64::from(field << 3 | wire));
    }

    /// Appends a field of type `uint64`, `uint32`, `bool` or an enumeration.
    #[inline]
    pub(crate) fn unsigned(&mut self, field: u32, value: u64) {
        // Most are two bytes, which are appended at once.
        match (field << 3 | VARINT, value) {
            (tag @ ..0x80, ..0x80) => self.bytes.extend_from_slice(&[tag as u8, value as u8]),
            (tag, _) => {
                self.varint(tag.into());
                self.varint(value);
            }
        }
    }

    /// Appends a field of type `int64` or `int32`.
    #[inline]
    pub(crate) fn signed(&mut self, field: u32, value: i64) {
        self.unsigned(field, value.cast_unsigned());
    }

    /// Appends a field of type `fixed64`.
    pub(crate) fn fixed64(&mut self, field: u32, value: u64) {
        self.tag(field, FIXED64);
        self.bytes.extend(value.to_le_bytes());
    }

    /// Appends a field of type `double`.
    pub(crate) fn double(&mut self, field: u32, value: f64) {
        self.fixed64(field, value.to_bits());
    }

    /// Appends a field of type `string` or `bytes`.
    #[inline]
    pub(crate) fn bytes(&mut self, field: u32, value: &[u8]) {
        self.tag(field, LENGTH);
        self.varint(value.len() as u64);
        self.bytes.extend_from_slice(value);
    }

    /// Appends the fields of another message.
    pub(crate) fn append(&mut self, other: &Self) {
        self.bytes.extend_from_slice(&other.bytes);
    }

    /// Appends a message.
    #[inline]
    pub(crate) fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        self.tag(field, LENGTH);
        self.bytes.push(0);
        let mut start = self.bytes.len();
        write(self);
        let mut length = self.bytes.len() - start;
        if length >= 0x80 {
            // The length takes more than the one byte that is there.
            let more = length.ilog2() as usize / 7;
            self.bytes.resize(start + length + more, 0);
            self.bytes.copy_within(start..start + length, start + more);
            for place in self.bytes.iter_mut().skip(start - 1).take(more) {
                *place = length as u8 | 0x80;
                length >>= 7;
            }
            start += more;
        }
        if let Some(last) = self.bytes.get_mut(start - 1) {
            *last = length as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_any_length() {
        for length in [0, 1, 127, 128, 20_000] {
            let text = vec![b'x'; length];
            let mut proto = Proto::default();
            proto.message(3, |inner| {
                if !text.is_empty() {
                    inner.bytes(1, &text);
                }
            });
            proto.unsigned(4, 300);
            let mut inner = Proto::default();
            if !text.is_empty() {
                inner.bytes(1, &text);
            }
            let mut expected = Proto::default();
            expected.bytes(3, inner.as_slice());
            expected.bytes.extend([0x20, 0xac, 0x02]);
            assert_eq!(proto.as_slice(), expected.as_slice(), "{length}");
        }
    }

    #[test]
    fn numbers() {
        let mut proto = Proto::default();
        proto.signed(1, -1);
        proto.double(2, 1.0);
        let mut expected = vec![0x08];
        expected.extend([0xff; 9]);
        expected.extend([0x01, 0x11, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
        assert_eq!(proto.as_slice(), expected);
    }
}
