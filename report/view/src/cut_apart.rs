//! Texts that are cut to a number of columns, so that those that differ still do.

use std::collections::{BTreeMap, BTreeSet};

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};
use usdtrec_format::escape::escape;

use crate::columns::cut;

/// The mark of what is left out.
const MARK: char = '…';

/// Texts, each in at most so many columns. One that is too long is cut, with `…`: at its end, or in its middle if another one would look the same then; if
/// both do, they get numbers. There must be room for a few characters.
#[must_use]
pub fn cut_apart(texts: &[&str], columns: usize) -> Vec<String> {
    let mut shown: Vec<String> = texts.iter().map(|text| cut(text, columns)).collect();
    for place in alike(texts, &shown) {
        let shared = place.shared;
        for at in place.texts {
            if texts[at].width() > columns {
                shown[at] = cut_middle(texts[at], shared[&texts[at]], columns);
            }
        }
    }
    number(texts, &mut shown, columns);
    shown
}

/// As [`cut_apart`], of texts as they are shown, with a number of characters instead of columns.
#[must_use]
pub fn shortened_apart(texts: &[&str], most: usize) -> Vec<String> {
    let escaped: Vec<_> = texts.iter().map(|text| escape(text)).collect();
    let escaped: Vec<&str> = escaped.iter().map(AsRef::as_ref).collect();
    cut_apart(&escaped, most + 1)
}

/// Texts that look the same and are not.
struct Alike<'t> {
    /// Their places.
    texts: Vec<usize>,
    /// How many bytes each of them shares with that of the others which it is most like.
    shared: BTreeMap<&'t str, usize>,
}

fn alike<'t>(texts: &[&'t str], shown: &[String]) -> Vec<Alike<'t>> {
    let mut by_look: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, look) in shown.iter().enumerate() {
        by_look.entry(look).or_default().push(at);
    }
    let all = by_look.into_values().filter_map(|places| {
        let different: BTreeSet<&str> = places.iter().map(|&at| texts[at]).collect();
        (different.len() > 1).then(|| Alike {
            texts: places,
            shared: shared(&different),
        })
    });
    all.collect()
}

/// How many bytes each text shares with its neighbours in their order, which are the most alike.
fn shared<'t>(different: &BTreeSet<&'t str>) -> BTreeMap<&'t str, usize> {
    let mut shared: BTreeMap<&str, usize> = different.iter().map(|&text| (text, 0)).collect();
    for (one, other) in different.iter().zip(different.iter().skip(1)) {
        let letters = one.chars().zip(other.chars());
        let same = letters.take_while(|(one, other)| one == other);
        let bytes: usize = same.map(|(letter, _)| letter.len_utf8()).sum();
        for text in [one, other] {
            let most = shared.entry(text).or_default();
            *most = (*most).max(bytes);
        }
    }
    shared
}

/// A text without its middle: its beginning, and what is around the byte `differs`, where it is another one than those that it is like.
fn cut_middle(text: &str, differs: usize, columns: usize) -> String {
    /// Columns before the difference.
    const BEFORE: usize = 6;
    let beginning = beginning(text, columns.saturating_sub(1) / 3);
    let room = columns.saturating_sub(beginning.width() + 1);
    // As much of the end as has room, from before the difference on.
    let last = end_from(text, text.len(), room);
    let from = end_from(text, differs, BEFORE.min(room / 3)).min(last);
    let from = from.max(beginning.len());
    format!("{beginning}{MARK}{}", cut(&text[from..], room))
}

/// The beginning of a text that has so many columns.
fn beginning(text: &str, columns: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|(_, letter)| {
        used += letter.width().unwrap_or(0);
        used > columns
    });
    &text[..end.map_or(text.len(), |(at, _)| at)]
}

/// The byte from which on what is before byte `end` has so many columns.
fn end_from(text: &str, end: usize, columns: usize) -> usize {
    let mut used = 0;
    let before = text[..end].char_indices().rev();
    let fitting = before.take_while(|(_, letter)| {
        used += letter.width().unwrap_or(0);
        used <= columns
    });
    fitting.last().map_or(end, |(at, _)| at)
}

/// Numbers the texts that still look like others.
fn number(texts: &[&str], shown: &mut [String], columns: usize) {
    let mut numbers: BTreeMap<&str, usize> = BTreeMap::new();
    let all: Vec<usize> = alike(texts, shown)
        .into_iter()
        .flat_map(|alike| alike.texts)
        .collect();
    for at in all.into_iter().filter(|&at| texts[at].width() > columns) {
        let next = numbers.len() + 1;
        let number = numbers.entry(texts[at]).or_insert(next);
        let end = format!(" #{number}");
        shown[at] = cut(texts[at], columns.saturating_sub(end.len())) + &end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays() {
        assert_eq!(cut_apart(&["ab", "abcd"], 4), ["ab", "abcd"]);
        assert_eq!(cut_apart(&["abcdefgh"], 4), ["abc…"]);
        assert_eq!(cut_apart(&[], 4), [""; 0]);
    }

    #[test]
    fn statements_that_differ_late_are_cut_in_the_middle() {
        let one = "select count(*) from orders_with_a_long_name where customer = 1 and state = 2 and region = 'north'";
        let other = "select count(*) from orders_with_a_long_name where customer = 1 and state = 3 and region = 'north'";
        let shown = cut_apart(&[one, other, "select 1"], 48);
        assert_eq!(
            shown,
            [
                "select count(*)…d state = 2 and region = 'north'",
                "select count(*)…d state = 3 and region = 'north'",
                "select 1",
            ]
        );
        // The same text twice is the same twice.
        let same = cut_apart(&[one, one], 20);
        assert_eq!(same, ["select count(*) fro…"; 2]);
    }

    #[test]
    fn numbers_tell_apart_what_nothing_else_does() {
        let lengths = [15, 10, 20];
        let texts = lengths.map(|length| "a".repeat(length));
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let shown = cut_apart(&texts, 8);
        let different: BTreeSet<&String> = shown.iter().collect();
        assert_eq!(different.len(), texts.len(), "{shown:?}");
    }

    /// Whatever the texts are: different ones look different, and none is too wide.
    #[test]
    fn different_texts_look_different() {
        let mut state: u64 = 20;
        // The numbers of Knuth's MMIX.
        let mut below = |bound: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        for _ in 0..2000 {
            let mut texts = Vec::new();
            for _ in 0..=below(6) {
                let length = below(40);
                let letters = (0..length).map(|_| match below(12) {
                    0 => 'b',
                    1 => '漢',
                    2 => 'é',
                    _ => 'a',
                });
                texts.push(letters.collect::<String>());
            }
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let columns = 12 + below(20) as usize;
            let shown = cut_apart(&texts, columns);
            for (at, look) in shown.iter().enumerate() {
                assert!(look.width() <= columns, "{look:?} of {columns}");
                for (other, other_look) in shown.iter().enumerate() {
                    assert_eq!(
                        look == other_look,
                        texts[at] == texts[other],
                        "{:?} and {:?} in {columns}: {look:?}",
                        texts[at],
                        texts[other]
                    );
                }
            }
        }
    }
}
