//! What will not be planted, and why.

use std::fmt;
use std::path::{Path, PathBuf};

use usdtrec_format::escape::{escape, shown};

/// Probes that one reason keeps from being planted in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The file.
    pub path: PathBuf,
    /// Why, and what to do about it.
    pub reason: String,
    /// The probes' events, each once; at least one.
    pub events: Vec<String>,
}

impl Refusal {
    /// The refusal of one probe.
    pub(crate) fn new(event: String, path: &Path, reason: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            reason: reason.into(),
            events: vec![event],
        }
    }

    /// Adds it to others: to the one of the same file and reason, if there is one.
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

/// A sentence; of many events the first ones.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const FEW: usize = 3;
        let (path, reason) = (shown(&self.path), &self.reason);
        if let [event] = self.events.as_slice() {
            return write!(f, "will not plant {} in {path}: {reason}", escape(event));
        }
        let named = self.events.iter().take(FEW).map(String::as_str);
        let named: Vec<&str> = named.collect();
        let more = if self.events.len() > FEW { ", …" } else { "" };
        write!(
            f,
            "will not plant {} probes in {path} ({}{more}): {reason}",
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
                "will not plant 2 probes in /bin/x (a:a, a:b): gone",
                "will not plant a:a in /bin/x: other",
            ]
        );
        let many = Refusal {
            events: (0..12).map(|number| format!("a:{number}")).collect(),
            ..all.remove(0)
        };
        assert_eq!(
            many.to_string(),
            "will not plant 12 probes in /bin/x (a:0, a:1, a:2, …): gone"
        );
    }
}
