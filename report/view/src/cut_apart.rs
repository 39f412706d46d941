//! Texts that are cut to a number of columns, so that those that differ still do.

use std::collections::{BTreeMap, BTreeSet};

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};
use usdtrec_format::escape::escape;

/// The mark of what is left out.
const MARK: char = '…';
/// How often texts are cut again, because they look like others then that they did not look like before.
const ROUNDS: usize = 3;

/// The beginning of a text that fits in so many columns, with `…` if it is not all.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut used = MARK.width().unwrap_or(0);
    let fitting = text.chars().take_while(|letter| {
        used += letter.width().unwrap_or(0);
        used <= columns
    });
    fitting.chain([MARK]).collect()
}

/// Texts, each in at most so many columns. One that is too long is cut, with `…`: at its end, or if others would look the same then, also in its middle, so
/// that the places are shown where it differs from them; if there are too many, they get numbers. There must be room for a few characters.
#[must_use]
pub fn cut_apart(texts: &[&str], columns: usize) -> Vec<String> {
    let mut shown: Vec<String> = texts.iter().map(|text| cut(text, columns)).collect();
    let mut all_alike = BTreeSet::new();
    for _ in 0..ROUNDS {
        let alike = alike(texts, &shown);
        if alike.is_empty() {
            return shown;
        }
        all_alike.extend(alike);
        let forks = forks(all_alike.iter().map(|&at| texts[at]), columns);
        for &at in &all_alike {
            if texts[at].width() > columns {
                shown[at] = cut_middle(texts[at], &forks[texts[at]], columns);
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

/// The places of texts that look like others and are not the same.
fn alike(texts: &[&str], shown: &[String]) -> Vec<usize> {
    let mut by_look: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, look) in shown.iter().enumerate() {
        by_look.entry(look).or_default().push(at);
    }
    let all = by_look.into_values();
    all.filter(|places| places.iter().any(|&at| texts[at] != texts[places[0]]))
        .flatten()
        .collect()
}

/// Of each text, the bytes at which it begins to differ from others, behind its beginning: of very many, the first and the last ones.
fn forks<'t>(
    texts: impl Iterator<Item = &'t str>,
    columns: usize,
) -> BTreeMap<&'t str, BTreeSet<usize>> {
    let different: BTreeSet<&str> = texts.collect();
    let different: Vec<&str> = different.into_iter().collect();
    let mut forks: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
    let mut add = |texts: &mut dyn Iterator<Item = &&'t str>| {
        let mut before: Option<&str> = None;
        // What a text shares with those before it: with one that is farther away in their order, less.
        let mut shared: Vec<usize> = Vec::new();
        for &text in texts {
            if let Some(before) = before.replace(text) {
                let bytes = same_bytes(before, text);
                while shared.last().is_some_and(|&last| last >= bytes) {
                    shared.pop();
                }
                shared.push(bytes);
            }
            let least = least(text, columns).len();
            let behind = &shared[shared.partition_point(|&fork| fork < least)..];
            let shown = behind.iter().take(most_forks(columns));
            let of_text = forks.entry(text).or_default();
            of_text.extend(shown.chain(behind.last()));
        }
    };
    add(&mut different.iter());
    add(&mut different.iter().rev());
    forks
}

/// How many places of a text are shown where others differ from it.
fn most_forks(columns: usize) -> usize {
    /// Columns of a part, at least.
    const MIN_WIDTH: usize = 10;
    (columns * 2 / 3 / MIN_WIDTH).max(1)
}

/// The least that is shown of the beginning of a text.
fn least(text: &str, columns: usize) -> &str {
    beginning(text, columns / 4)
}

/// How many bytes two texts have in common at their beginning.
fn same_bytes(one: &str, other: &str) -> usize {
    let letters = one.chars().zip(other.chars());
    let same = letters.take_while(|(one, other)| one == other);
    same.map(|(letter, _)| letter.len_utf8()).sum()
}

/// A text with its beginning, and what is around those of its bytes where others differ from it.
fn cut_middle(text: &str, forks: &BTreeSet<usize>, columns: usize) -> String {
    // What is in the beginning is shown there. Of too many, the first ones and the last one are.
    let least = least(text, columns);
    let mut chosen: Vec<usize> = forks.range(least.len()..).copied().collect();
    let last = chosen.pop();
    chosen.truncate(most_forks(columns) - 1);
    chosen.extend(last);
    if chosen.is_empty() {
        return cut(text, columns);
    }
    let equal = beginning(text, columns.saturating_sub(1) / (chosen.len() + 2));
    // The longer one of two beginnings.
    let mut first = equal.max(least);
    let mut shown = parts(text, first, &chosen, columns);
    // Parts that reach the end of the text leave room for its beginning.
    for _ in 0..ROUNDS {
        let left = columns.saturating_sub(shown.width());
        first = beginning(text, first.width() + left);
        let next = parts(text, first, &chosen, columns);
        if next.width() <= shown.width() {
            break;
        }
        shown = next;
    }
    shown
}

/// The beginning of a text, and what is around some of its bytes.
fn parts(text: &str, first: &str, chosen: &[usize], columns: usize) -> String {
    /// Columns before a byte.
    const BEFORE: usize = 6;
    let mut shown = first.to_owned();
    let mut end = shown.len();
    for (number, &fork) in chosen.iter().enumerate() {
        let is_last = number + 1 == chosen.len();
        let rest = columns.saturating_sub(shown.width() + 1);
        let room = match is_last {
            true => rest,
            false => (rest / (chosen.len() - number)).saturating_sub(1),
        };
        let mut from = end_from(text, fork, BEFORE.min(room / 3));
        if is_last {
            // As much of the end as has room.
            from = from.min(end_from(text, text.len(), room));
        }
        from = from.max(end);
        if from > end {
            shown.push(MARK);
        }
        let part = &text[from..];
        let part = match is_last {
            true => cut(part, room),
            false => beginning(part, room).to_owned(),
        };
        shown.push_str(&part);
        end = from + part.len();
    }
    shown
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
    let all = alike(texts, shown).into_iter();
    for at in all.filter(|&at| texts[at].width() > columns) {
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
        assert_eq!(cut("漢字漢字", 8), "漢字漢字");
        assert_eq!(cut("漢字漢字", 7), "漢字漢…");
        assert_eq!(cut("漢字漢字", 6), "漢字…");
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
    fn all_places_are_shown_where_statements_differ() {
        let mut texts = Vec::new();
        for table in ["orders_of_customers", "orders_of_customers_of_old"] {
            for state in ["open", "paid"] {
                for limit in [5, 50] {
                    texts.push(format!(
                        "select count(*) from {table} join customers using (id) where state = '{state}' and region = 'north' limit {limit}"
                    ));
                }
            }
        }
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let shown = cut_apart(&texts, 80);
        let different: BTreeSet<&String> = shown.iter().collect();
        assert_eq!(different.len(), texts.len(), "{shown:#?}");
        assert!(shown.iter().all(|text| !text.contains('#')), "{shown:#?}");
        for (text, shown) in texts.iter().zip(&shown) {
            assert!(shown.width() <= 80);
            let end = text.rsplit(' ').next().expect("a limit");
            assert!(shown.ends_with(&format!(" {end}")), "{shown}");
        }
    }

    /// What is cut is no more than what has no room.
    #[test]
    fn all_columns_are_used() {
        let one = format!(
            "select {} from orders where state = 'open' limit 5",
            "column, ".repeat(20)
        );
        let other = one.replace("open", "paid");
        let third = one.replace("orders", "order_items");
        let texts = [&*one, &*other, &*third];
        for columns in [40, 80, 120, 200, one.len() - 1] {
            for text in cut_apart(&texts, columns) {
                assert!(text.width() + 3 >= columns, "{columns}: {text}");
            }
        }
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

    #[test]
    fn texts_that_differ_at_very_many_places_need_little_memory() {
        let texts: Vec<String> = (0..2000).map(|at| "a".repeat(at) + "b").collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let all = forks(texts.iter().copied(), 80);
        let most = all.values().map(BTreeSet::len).max();
        assert!(most <= Some(2 * (most_forks(80) + 1)), "{most:?}");
        let shown: BTreeSet<String> = cut_apart(&texts, 80).into_iter().collect();
        assert_eq!(shown.len(), texts.len());
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
