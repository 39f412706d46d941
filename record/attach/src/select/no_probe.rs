//! A pattern that selects no probe.

use std::fmt;
use std::path::{Path, PathBuf};

use usdtrec_buildid_cache::suggest;
use usdtrec_format::escape::shown;
use usdtrec_format::{Binary, Pattern};

/// A pattern that selects no probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoProbe {
    /// The pattern without its path.
    pub pattern: String,
    /// Where probes were looked for.
    pub searched: Searched,
    /// Events with similar names, at most three, the most similar one first.
    pub closest: Vec<String>,
}

/// Where probes were looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Searched {
    /// In one file.
    File(PathBuf),
    /// In the indexed files.
    Index,
    /// In the files that the processes of this host run, and in the indexed files.
    Host,
    /// In the files that traced processes map, and in the indexed files.
    Processes(Vec<u32>),
}

impl NoProbe {
    /// The error for a pattern, with similar names in the files that were searched.
    pub fn new<'a>(
        pattern: &Pattern,
        processes: &[u32],
        is_host: bool,
        binaries: impl Iterator<Item = &'a Binary>,
    ) -> Self {
        Self {
            pattern: pattern.text().to_owned(),
            searched: match (pattern.path(), processes) {
                (Some(path), _) => Searched::File(Path::to_owned(path)),
                (None, []) if is_host => Searched::Host,
                (None, []) => Searched::Index,
                (None, processes) => Searched::Processes(processes.to_vec()),
            },
            closest: suggest(binaries, pattern, 3),
        }
    }
}

impl NoProbe {
    /// A message that a file with probes that match is waited for.
    #[must_use]
    pub fn waiting(&self) -> String {
        let probes = format!("probes that match '{}'", self.pattern);
        let message = match &self.searched {
            Searched::Processes(pids) if pids.len() == 1 => {
                format!("process {} maps no file with {probes} now", pids[0])
            }
            Searched::Processes(_) => format!("the traced processes map no file with {probes} now"),
            Searched::Index => format!("the command's program has no {probes}"),
            Searched::Host | Searched::File(_) => {
                format!("no process maps a file with {probes} now")
            }
        };
        let closest = match &*self.closest {
            [] => String::new(),
            closest => format!("\n  closest: {}", closest.join(", ")),
        };
        format!("{message}: waiting{closest}")
    }
}

impl std::error::Error for NoProbe {}

impl fmt::Display for NoProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.pattern;
        match &self.searched {
            Searched::File(path) => write!(f, "{} has no probe {text}", shown(path))?,
            Searched::Index => write!(f, "no indexed binary has a probe {text}")?,
            Searched::Host => write!(
                f,
                "no process runs a file with a probe {text} now, and no indexed binary has one"
            )?,
            Searched::Processes(pids) => {
                match pids.as_slice() {
                    [pid] => write!(f, "process {pid} maps")?,
                    _ => f.write_str("the traced processes map")?,
                }
                write!(
                    f,
                    " no file with a probe {text} now, and no indexed binary has one"
                )?;
            }
        }
        if !self.closest.is_empty() {
            write!(f, "\n  closest: {}", self.closest.join(", "))?;
        }
        Ok(())
    }
}
