//! Attach methods of programs.

use std::fmt;

/// An attach method of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttachMethod {
    /// One uprobe_multi link for each program and file (Linux 6.6).
    Multi,
    /// One event of the uprobe PMU for each site, with a link to the program (Linux 5.15).
    Event,
}

impl AttachMethod {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Multi => "uprobe_multi",
            Self::Event => "uprobe PMU",
        }
    }
}

impl fmt::Display for AttachMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
