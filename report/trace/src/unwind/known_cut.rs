//! Why a stack is cut, without the trace that it is of.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use usdtrec_format::Arch;

use crate::session::TraceSession;
use crate::unwind::cut::StackCut;

/// Why a stack is cut, with what the reason is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KnownCut {
    /// The reason.
    pub cut: StackCut,
    /// The recording host's architecture, as its kernel calls it.
    pub machine: String,
    /// The file that the reason is about.
    pub file: Option<PathBuf>,
}

impl KnownCut {
    /// The reason with the file and the architecture that it is about.
    pub fn new(session: &TraceSession, cut: StackCut) -> Self {
        let file = match cut {
            StackCut::File(file, _) => session.mappings().file(file),
            _ => None,
        };
        Self {
            cut,
            machine: session.info().machine.clone(),
            file: file.map(|file| file.path.clone()),
        }
    }

    /// What decides between cuts; the same in all recordings.
    pub fn order(&self) -> Vec<u8> {
        let mut order = format!("{:?}", self.cut.without_file()).into_bytes();
        let name = self.file.as_deref().and_then(Path::file_name);
        order.extend(name.unwrap_or_default().as_bytes());
        order
    }

    /// The recording host's architecture, if it is known here.
    pub fn arch(&self) -> Option<Arch> {
        arch_of(&self.machine)
    }
}

/// The architecture that a kernel calls so.
pub(crate) fn arch_of(machine: &str) -> Option<Arch> {
    Arch::ALL.into_iter().find(|arch| arch.name() == machine)
}
