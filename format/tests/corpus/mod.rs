//! The corpus in `testdata/corpus`: real notes, argument strings with what they mean, raw sections.

use serde_json::Value;
use usdtrec_format::Arch;

/// The lines of one of its files.
pub(crate) fn lines(name: &str) -> Vec<Value> {
    let path = format!("{}/../testdata/corpus/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The text of a member.
pub(crate) fn text<'a>(line: &'a Value, member: &str) -> &'a str {
    line[member]
        .as_str()
        .unwrap_or_else(|| panic!("{member} of {line}"))
}

/// The architecture that a line is about.
#[allow(dead_code, reason = "programs of tests use a part of this file")]
pub(crate) fn arch(line: &Value) -> Arch {
    let name = text(line, "arch");
    Arch::ALL
        .into_iter()
        .find(|arch| arch.name() == name)
        .unwrap_or_else(|| panic!("arch {name}"))
}
