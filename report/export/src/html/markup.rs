//! HTML being written. Constants are markup; all else is text, which cannot become markup.

use usdtrec_format::escape::escape;

/// HTML being written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Markup {
    html: String,
}

impl Markup {
    /// Appends markup, which is a constant: no data is ever markup.
    pub(crate) fn tag(&mut self, markup: &'static str) -> &mut Self {
        self.html.push_str(markup);
        self
    }

    /// Appends text. Control characters, bidirectional overrides and invisible characters are written out.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        for c in escape(text).chars() {
            match c {
                '&' => self.html.push_str("&amp;"),
                '<' => self.html.push_str("&lt;"),
                '>' => self.html.push_str("&gt;"),
                '"' => self.html.push_str("&quot;"),
                '\'' => self.html.push_str("&#39;"),
                c => self.html.push(c),
            }
        }
        self
    }

    /// Appends an attribute to a tag that is not closed yet.
    pub(crate) fn attribute(&mut self, name: &'static str, value: &str) -> &mut Self {
        self.html.push(' ');
        self.html.push_str(name);
        self.html.push_str("=\"");
        self.text(value);
        self.html.push('"');
        self
    }

    /// Appends what was written apart.
    pub(crate) fn append(&mut self, other: &Self) -> &mut Self {
        self.html.push_str(&other.html);
        self
    }

    /// Length, bytes.
    pub(crate) const fn len(&self) -> usize {
        self.html.len()
    }

    /// The HTML.
    pub(crate) fn into_string(self) -> String {
        self.html
    }
}

/// A part of a whole in percent of a length, for attributes.
pub(crate) fn percent_length(part: f64) -> String {
    let text = format!("{part:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_no_markup() {
        let mut out = Markup::default();
        out.tag("<a");
        out.attribute("title", "\"><script>");
        out.tag(">").text("</a>&'\u{202e}\x1b\u{7f}").tag("</a>");
        assert_eq!(
            out.into_string(),
            "<a title=\"&quot;&gt;&lt;script&gt;\">&lt;/a&gt;&amp;&#39;\\u{202e}\\x1b\\x7f</a>"
        );
    }

    #[test]
    fn lengths_have_no_more_digits_than_they_need() {
        assert_eq!(percent_length(100.0 / 3.0), "33.3333%");
        assert_eq!(percent_length(50.0), "50%");
        assert_eq!(percent_length(0.0), "0%");
    }
}
