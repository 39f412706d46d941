//! A buffer that text is appended to, fast: short pieces are copied with their padding, so that each copy is of a length that
//! the compiler knows.

/// Text being written. The bytes after its end are allocated and initialised, with any content.
#[derive(Debug, Default)]
pub struct Text {
    bytes: Vec<u8>,
    len: usize,
}

/// Bytes that every short piece is stored and copied with.
const PIECE_BYTES: usize = 48;

/// A piece of text that is appended often.
#[derive(Clone, Debug)]
pub struct Piece {
    len: usize,
    short: [u8; PIECE_BYTES],
    /// The text, if it is longer than a short piece.
    long: Box<[u8]>,
}

impl Piece {
    /// A piece with this text.
    pub fn new(text: &[u8]) -> Self {
        let mut piece = Self {
            len: text.len(),
            short: [0; PIECE_BYTES],
            long: Box::default(),
        };
        match piece.short.get_mut(..text.len()) {
            Some(short) => short.copy_from_slice(text),
            None => piece.long = text.into(),
        }
        piece
    }
}

impl Default for Piece {
    fn default() -> Self {
        Self::new(&[])
    }
}

impl Text {
    /// Empties it; the memory stays.
    pub const fn clear(&mut self) {
        self.len = 0;
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// The text.
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// The text as a string; what is not UTF-8 becomes U+FFFD.
    pub fn into_string(self) -> String {
        String::from_utf8_lossy(self.as_slice()).into_owned()
    }

    /// The byte at a place, if the text has one there.
    pub(crate) fn byte_at(&mut self, place: usize) -> Option<&mut u8> {
        self.bytes.get_mut(..self.len)?.get_mut(place)
    }

    /// Drops the last bytes.
    #[inline]
    pub const fn drop_last(&mut self, count: usize) {
        self.len = self.len.saturating_sub(count);
    }

    /// Lets `write` fill bytes after the end; it returns how many of them it appends.
    #[inline(always)]
    pub(crate) fn append<const N: usize>(&mut self, write: impl FnOnce(&mut [u8; N]) -> usize) {
        if self.bytes.len() - self.len < N {
            self.grow(N);
        }
        let room = self.bytes.get_mut(self.len..);
        if let Some(room) = room.and_then(<[u8]>::first_chunk_mut) {
            self.len += write(room).min(N);
        }
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        let needed = self.len + more.max(PIECE_BYTES);
        self.bytes.resize(needed.max(2 * self.bytes.len()), 0);
    }

    /// Appends a piece.
    #[inline]
    pub fn piece(&mut self, piece: &Piece) {
        if piece.len <= 16 {
            self.append(|room: &mut [u8; 16]| {
                if let Some(start) = piece.short.first_chunk() {
                    *room = *start;
                }
                piece.len
            });
        } else if piece.len <= PIECE_BYTES {
            self.append(|room: &mut [u8; PIECE_BYTES]| {
                *room = piece.short;
                piece.len
            });
        } else {
            self.bytes(&piece.long);
        }
    }

    /// Appends bytes whose number the compiler knows.
    #[inline(always)]
    pub fn fixed<const N: usize>(&mut self, bytes: &[u8; N]) {
        self.append(|room: &mut [u8; N]| {
            *room = *bytes;
            N
        });
    }

    /// Appends a byte.
    #[inline(always)]
    pub fn byte(&mut self, byte: u8) {
        self.fixed(&[byte]);
    }

    /// Appends bytes.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        // Two copies of known length that overlap cost less than one of unknown length.
        if let Some((first, last)) = ends::<16>(bytes).filter(|_| bytes.len() <= 32) {
            self.append(|room: &mut [u8; 32]| put(room, bytes.len(), first, last));
        } else if let Some((first, last)) = ends::<4>(bytes).filter(|_| bytes.len() <= 8) {
            self.append(|room: &mut [u8; 8]| put(room, bytes.len(), first, last));
        } else if let Some((first, last)) = ends::<8>(bytes).filter(|_| bytes.len() <= 16) {
            self.append(|room: &mut [u8; 16]| put(room, bytes.len(), first, last));
        } else {
            self.any_bytes(bytes);
        }
    }

    fn any_bytes(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if end > self.bytes.len() {
            self.grow(bytes.len());
        }
        if let Some(room) = self.bytes.get_mut(self.len..end) {
            room.copy_from_slice(bytes);
            self.len = end;
        }
    }

    /// Appends a string.
    pub fn string(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Appends a string, right-aligned in `width` columns.
    pub(crate) fn right(&mut self, text: &str, width: usize) {
        for _ in text.chars().count()..width {
            self.byte(b' ');
        }
        self.string(text);
    }

    /// Characters from a place on.
    pub(crate) fn columns(&self, start: usize) -> usize {
        let bytes = self.as_slice().get(start..).unwrap_or_default();
        // All but those that continue with a character.
        bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
    }

    /// Puts bytes before and after the text from `start` on.
    pub(crate) fn pad(&mut self, start: usize, before: usize, after: usize, fill: u8) {
        for _ in 0..before + after {
            self.byte(fill);
        }
        if let Some(text) = self.bytes.get_mut(start..self.len) {
            text.rotate_right(before);
        }
    }
}

/// The first and the last bytes, which overlap unless there are twice as many.
#[inline(always)]
fn ends<const N: usize>(bytes: &[u8]) -> Option<(&[u8; N], &[u8; N])> {
    bytes.first_chunk().zip(bytes.last_chunk())
}

/// Puts the ends of `len` bytes, which are all of them, at the start of `room`.
#[inline(always)]
fn put<const N: usize>(room: &mut [u8], len: usize, first: &[u8; N], last: &[u8; N]) -> usize {
    if let Some(start) = room.first_chunk_mut() {
        *start = *first;
    }
    if let Some(end) = room.get_mut(..len).and_then(<[u8]>::last_chunk_mut) {
        *end = *last;
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_all_lengths_follow_each_other() {
        let mut text = Text::default();
        let mut expected = Vec::new();
        for len in (0..200).chain([5000, 3]) {
            let piece: Vec<u8> = (0..len).map(|at| b'a' + (at % 26) as u8).collect();
            text.piece(&Piece::new(&piece));
            text.byte(b'|');
            text.bytes(&piece);
            expected.extend([&piece[..], b"|", &piece].concat());
        }
        assert_eq!(text.as_slice(), expected);
        assert_eq!(text.len(), expected.len());
        text.clear();
        text.right("größe", 7);
        text.right("long", 2);
        assert_eq!(text.columns(2), 9);
        text.pad(3, 2, 1, b'.');
        assert_eq!(text.into_string(), "  g..rößelong.");
    }
}
