//! Minima and maxima of texts, which are cut: the description of a row group has them.

use parquet::data_type::ByteArray;
use parquet::file::statistics::{Statistics, ValueStatistics};

use crate::view::export::parquet::column_values::BytesList;

/// Bytes of a bound, at most.
const LONGEST: usize = 64;

/// A text that is not greater, or not smaller, than any of a column.
struct Bound {
    text: String,
    /// Whether it is one of them.
    is_exact: bool,
}

/// The statistics of texts. Bytes that are not UTF-8 have no bounds if they are long.
pub(crate) fn statistics(values: &BytesList, nulls: u64) -> Statistics {
    let least = values.iter().min();
    let most = values.iter().max();
    let nulls = Some(nulls);
    if let (Some(least), Some(most)) = (least, most)
        && least.len().max(most.len()) <= LONGEST
    {
        let [least, most] = [least, most].map(|bound| Some(bound.into()));
        return Statistics::byte_array(least, most, None, nulls, false);
    }
    let (Some(least), Some(most)) = (least.and_then(lower), most.and_then(upper)) else {
        return Statistics::byte_array(None, None, None, nulls, false);
    };
    let [bottom, top] = [&least, &most].map(|bound| ByteArray::from(bound.text.as_str()));
    ValueStatistics::new(Some(bottom), Some(top), None, nulls, false)
        .with_min_is_exact(least.is_exact)
        .with_max_is_exact(most.is_exact)
        .into()
}

fn lower(text: &[u8]) -> Option<Bound> {
    let text = std::str::from_utf8(text).ok()?;
    let kept = beginning(text);
    Some(Bound {
        text: kept.to_owned(),
        is_exact: kept.len() == text.len(),
    })
}

fn upper(text: &[u8]) -> Option<Bound> {
    let text = std::str::from_utf8(text).ok()?;
    let kept = beginning(text);
    let mut bound = Bound {
        text: kept.to_owned(),
        is_exact: kept.len() == text.len(),
    };
    if bound.is_exact {
        return Some(bound);
    }
    // The next greater text of this length: UTF-8 has the order of code points.
    while let Some(last) = bound.text.pop() {
        if let Some(next) = char::from_u32(u32::from(last) + 1) {
            bound.text.push(next);
            return Some(bound);
        }
    }
    None
}

/// The characters that fit.
fn beginning(text: &str) -> &str {
    let fits = (0..=LONGEST.min(text.len())).rev();
    let end = fits.into_iter().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or(0)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_long_texts_enclose_them() {
        let long = |last: &str| format!("{}{last}", "x".repeat(LONGEST - 1));
        for text in [
            long(""),
            long("y"),
            long("yy"),
            long("öö"),
            "\u{10ffff}".repeat(40),
        ] {
            let lower = lower(text.as_bytes()).unwrap();
            assert!(lower.text <= text && lower.text.len() <= LONGEST);
            assert_eq!(lower.is_exact, lower.text == text);
            match upper(text.as_bytes()) {
                Some(upper) => assert!(upper.text >= text && upper.text.len() <= LONGEST + 1),
                None => assert!(text.starts_with('\u{10ffff}')),
            }
        }
        assert_eq!(upper(long("yy").as_bytes()).unwrap().text, long("z"));
        assert!(upper(long("y").as_bytes()).unwrap().is_exact);
    }
}
