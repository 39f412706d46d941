//! Lines of a bounded length.

use std::io::{self, BufRead, Read};

use super::event::BadLine;

/// Maximum length of a line, bytes.
const MAX_LINE: u64 = 1 << 20;

/// Reads lines of a bounded length.
#[derive(Debug)]
pub(super) struct BoundedLines<R> {
    input: R,
    bytes: Vec<u8>,
    is_long: bool,
    number: u64,
}

impl<R: BufRead> BoundedLines<R> {
    pub(super) const fn new(input: R) -> Self {
        Self {
            input,
            bytes: Vec::new(),
            is_long: false,
            number: 0,
        }
    }

    /// Reads the next line; `false` at the end.
    pub(super) fn advance(&mut self) -> io::Result<bool> {
        self.bytes.clear();
        let input = &mut self.input;
        let read = input.take(MAX_LINE).read_until(b'\n', &mut self.bytes)?;
        self.is_long = self.bytes.len() as u64 >= MAX_LINE && self.bytes.last() != Some(&b'\n');
        if self.is_long {
            self.input.skip_until(b'\n')?;
        }
        self.number += 1;
        Ok(read > 0)
    }

    /// Number of the line, from 1.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// The line, with its newline.
    pub(super) fn line(&self) -> Result<&[u8], BadLine> {
        if self.is_long {
            return Err(BadLine::TooLong);
        }
        Ok(&self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_skipped() {
        let mut text = vec![b'x'; 3 << 20];
        text.extend(b"\nshort\n\nend");
        let mut lines = BoundedLines::new(&text[..]);
        let mut found = Vec::new();
        while lines.advance().unwrap() {
            let line = lines.line().map(<[u8]>::to_vec).ok();
            found.push((lines.number(), line));
        }
        let expected = [
            (1, None),
            (2, Some(b"short\n".to_vec())),
            (3, Some(b"\n".to_vec())),
            (4, Some(b"end".to_vec())),
        ];
        assert_eq!(found, expected);
    }
}
