//! Probes that are not attached, with the reason.

use std::fmt;
use std::path::{Path, PathBuf};

use usdtrec_format::escape::{escape, shown};

/// Probes of a file that are not attached for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The file.
    pub path: PathBuf,
    /// Reason, and what to do.
    pub reason: String,
    /// Events of the probes, without duplicates; at least one.
    pub events: Vec<String>,
}

impl Refusal {
    /// A refusal of one probe.
    pub(crate) fn new(event: String, path: &Path, reason: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            reason: reason.into(),
            events: vec![event],
        }
    }

    /// Adds this refusal to others, merging it with one of the same file and reason.
    pub(crate) fn add_to(self, all: &mut Vec<Self>) {
        let alike = |known: &&mut Self| known.path == self.path && known.reason == self.reason;
        let Some(known) = all.iter_mut().find(alike) else {
            return all.push(self);
        };
        for event in self.events {
            if !known.events.contains(&event) {
                known.events.push(event);
            }
        }
    }
}

/// A message with at most the first three events.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const FEW: usize = 3;
        let (path, reason) = (shown(&self.path), &self.reason);
        if let [event] = self.events.as_slice() {
            return write!(f, "not attaching {} in {path}: {reason}", escape(event));
        }
        let named = self.events.iter().take(FEW).map(String::as_str);
        let named: Vec<&str> = named.collect();
        let more = if self.events.len() > FEW { ", …" } else { "" };
        write!(
            f,
            "not attaching {} probes in {path} ({}{more}): {reason}",
            self.events.len(),
            escape(&named.join(", ")),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_one_file_and_reason_there_is_one() {
        let mut all = Vec::new();
        for (event, reason) in [
            ("a:a", "gone"),
            ("a:b", "gone"),
            ("a:a", "gone"),
            ("a:a", "other"),
        ] {
            Refusal::new(event.to_owned(), Path::new("/bin/x"), reason).add_to(&mut all);
        }
        let told: Vec<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "not attaching 2 probes in /bin/x (a:a, a:b): gone",
                "not attaching a:a in /bin/x: other",
            ]
        );
        let many = Refusal {
            events: (0..12).map(|number| format!("a:{number}")).collect(),
            ..all.remove(0)
        };
        assert_eq!(
            many.to_string(),
            "not attaching 12 probes in /bin/x (a:0, a:1, a:2, …): gone"
        );
    }
}
