//! An id as hexadecimal digits.

/// Maximum number of bytes of an id.
const MAX_BYTES: usize = crate::BuildId::MAX;

/// The digits of an id of at most 64 bytes, in lower case, as perf has build-ids and W3C Trace Context its ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HexId {
    digits: [u8; 2 * MAX_BYTES],
    len: usize,
}

impl HexId {
    /// Bytes beyond the first 64 are left out.
    #[must_use]
    pub fn new(id: &[u8]) -> Self {
        let mut digits = [0; 2 * MAX_BYTES];
        let digit = |value: u8| char::from_digit(value.into(), 16).map_or(b'?', |c| c as u8);
        let (pairs, _) = digits.as_chunks_mut::<2>();
        for (pair, byte) in pairs.iter_mut().zip(id) {
            *pair = [digit(byte >> 4), digit(byte & 15)];
        }
        Self {
            digits,
            len: 2 * id.len().min(MAX_BYTES),
        }
    }

    /// The digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let digits = self.digits.get(..self.len).unwrap_or_default();
        std::str::from_utf8(digits).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_bytes() {
        assert_eq!(HexId::new(&[0, 0xa1, 0xff]).as_str(), "00a1ff");
        assert_eq!(HexId::new(&[]).as_str(), "");
        assert_eq!(HexId::new(&[7; 65]).as_str(), "07".repeat(64));
    }
}
