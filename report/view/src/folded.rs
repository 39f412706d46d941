//! Stacks as lines that flame graph programs read: `outer;inner WEIGHT`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use usdtrec_analysis::stacks::path::{StackTable, Step, WeighedPath};
use usdtrec_analysis::stacks::weighed::WeighedStacks;
use usdtrec_format::escape::escape;

use crate::frames::{cut_text, frame_text};

/// A step in text, not escaped.
pub fn step_text(step: &Step) -> String {
    match step {
        Step::Frame(frame) => frame_text(frame),
        Step::Cut(cut) => cut_text(cut),
        Step::OtherStacks => "[other stacks]".to_owned(),
        Step::NoStack => "[no stack]".to_owned(),
    }
}

/// A line for each stack, in the order of bytes. With several events, the outermost frame is the event.
pub fn lines(stacks: &WeighedStacks) -> String {
    let mut weights: BTreeMap<String, u64> = BTreeMap::new();
    for table in &stacks.tables {
        let root = root(&stacks.tables, table);
        for path in &table.paths {
            let weight = weights.entry(line(root, path)).or_default();
            *weight = weight.saturating_add(path.weight);
        }
    }
    let mut out = String::new();
    for (stack, weight) in weights {
        let _ = writeln!(out, "{stack} {weight}");
    }
    out
}

/// The root of the stacks of a table: its name, if there are several tables.
pub fn root<'t>(tables: &[StackTable], table: &'t StackTable) -> Option<&'t str> {
    (tables.len() > 1).then_some(&*table.name)
}

/// A stack without its weight.
fn line(root: Option<&str>, path: &WeighedPath) -> String {
    let steps = path.steps.iter().map(|step| escaped(&step_text(step)));
    let names: Vec<String> = root.map(escaped).into_iter().chain(steps).collect();
    line_of(&names)
}

/// A stack of escaped names without its weight.
pub(crate) fn line_of(names: &[String]) -> String {
    let mut line = names.join(";");
    // Readers take numbers at the end for weights, and such lines for comments.
    if let Some(at) = line.rfind(' ')
        && line[at + 1..]
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        line.replace_range(at..=at, "\\x20");
    }
    if line.starts_with("# ") {
        line.replace_range(..1, "\\x23");
    }
    line
}

/// A name as readers of lines get it back: control characters, `;`, and blanks at its ends are escaped.
pub(crate) fn escaped(name: &str) -> String {
    let text = escape(name);
    let start = text.len() - text.trim_start().len();
    let end = text.trim_end().len();
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match c {
            ';' => out.push_str("\\x3b"),
            ' ' if at < start || at >= end => out.push_str("\\x20"),
            c if c.is_whitespace() && (at < start || at >= end) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        assert_eq!(escaped("operator new"), "operator new");
        assert_eq!(escaped("<[u8; 4] as T>::f"), "<[u8\\x3b 4] as T>::f");
        assert_eq!(escaped(" a "), "\\x20a\\x20");
        assert_eq!(escaped(" "), "\\x20");
        assert_eq!(escaped("a\nb"), "a\\nb");
        let line =
            |names: &[&str]| line_of(&names.iter().map(|&name| name.into()).collect::<Vec<_>>());
        assert_eq!(line(&["a", "type 5"]), "a;type\\x205");
        assert_eq!(line(&["type 5", "a"]), "type 5;a");
        assert_eq!(line(&["a", "b 1.5"]), "a;b\\x201.5");
        assert_eq!(line(&["# a", "b"]), "\\x23 a;b");
    }
}
