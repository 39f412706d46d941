//! A position in a line.

use memchr::memmem;

/// What of a line is not read yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) const fn new(line: &'a [u8]) -> Self {
        Self(line)
    }

    pub(super) const fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Skips a text; `false` if another one follows.
    pub(super) fn skip(&mut self, text: &[u8]) -> bool {
        let rest = self.0.strip_prefix(text);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// Takes so many bytes, or all that there are.
    pub(super) fn take(&mut self, bytes: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(bytes.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Takes what is before a text, and skips the text.
    pub(super) fn until(&mut self, text: &[u8]) -> Option<&'a [u8]> {
        let at = memmem::find(self.0, text)?;
        let taken = self.take(at);
        self.take(text.len());
        Some(taken)
    }
}
