//! Sentences of a page.

use usdtrec_view::columns::shortened;

use crate::html::markup::Markup;

/// Maximum size of the paragraphs of one place, bytes.
const MAX_BYTES: usize = 16 << 10;
/// Maximum length of a sentence, characters.
const MAX_SENTENCE_CHARACTERS: usize = 1000;
/// Sentences that are seen at once; more can be opened.
const MAX_OPEN: usize = 6;

/// Appends paragraphs, as many as fit.
pub(crate) fn put_notes(
    class: &'static str,
    notes: impl IntoIterator<Item = String>,
    out: &mut Markup,
) {
    let notes: Vec<String> = notes.into_iter().collect();
    let (open, more) = notes.split_at(notes.len().min(MAX_OPEN));
    let mut left = MAX_BYTES;
    let mut left_out = 0;
    let mut put = |notes: &[String], out: &mut Markup| {
        for note in notes {
            let mut next = Markup::default();
            next.tag("<p")
                .attribute("class", class)
                .tag(">")
                .text(&shortened(note, MAX_SENTENCE_CHARACTERS))
                .tag("</p>\n");
            match left.checked_sub(next.len()) {
                Some(rest) if left_out == 0 => {
                    left = rest;
                    out.append(&next);
                }
                _ => left_out += 1,
            }
        }
    };
    put(open, out);
    if !more.is_empty() {
        let count = format!("{} more", more.len());
        out.tag("<details><summary>")
            .text(&count)
            .tag("</summary>\n");
        put(more, out);
        out.tag("</details>\n");
    }
    if left_out > 0 {
        let words = format!("{left_out} of these left out here");
        out.tag("<p class=\"note\">").text(&words).tag("</p>\n");
    }
}
