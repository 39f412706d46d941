//! How wide text is in a terminal.

use unicode_width::UnicodeWidthStr as _;

/// The width of text without control characters, columns. Most of it is ASCII, which need not be looked up.
pub(crate) fn width(text: &str) -> usize {
    match text.is_ascii() {
        true => text.len(),
        false => text.width(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_wide_or_have_no_width() {
        let texts = ["", " ~12,3", "\u{e9}", "\u{4e2d}a", "e\u{301}", "~…"];
        for text in texts {
            assert_eq!(width(text), text.width(), "{text}");
        }
    }
}
