//! Names in a row.

use foldhash::HashSet;
use usdtrec_format::escape::escape;

/// Names that are listed.
const MAX_NAMES: usize = 50;

/// `a, b, c`: each name once and escaped; of very many, the first.
pub fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut known = HashSet::default();
    let names = names.into_iter().filter(|name| known.insert(*name));
    let names: Vec<&str> = names.collect();
    let listed: Vec<_> = names
        .iter()
        .take(MAX_NAMES)
        .map(|name| escape(name))
        .collect();
    let more = match names.len() - listed.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    listed.join(", ") + &more
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_once_and_are_harmless() {
        assert_eq!(list(["b", "a", "b", "c\nd"]), r"b, a, c\nd");
        let many: Vec<String> = (0..60).map(|at| at.to_string()).collect();
        let listed = list(many.iter().map(String::as_str));
        assert!(listed.ends_with("48, 49 and 10 more"), "{listed}");
    }
}
