//! The names that are known of a hit which is kept while others are forgotten.

use crate::process::names::NameId;

/// The numbers of the names of a hit that is kept. A stream may end long after its thread, which is forgotten then.
#[derive(Debug)]
pub struct HitNames<'h> {
    /// What its thread is called.
    pub comm: &'h mut Option<NameId>,
    /// The control group of its process.
    pub cgroup: &'h mut Option<NameId>,
    /// The path of the program of its process.
    pub exe: &'h mut Option<NameId>,
}

impl HitNames<'_> {
    /// The control group of its process and the path of its program.
    pub(crate) fn paths_mut(&mut self) -> impl Iterator<Item = &mut NameId> {
        self.cgroup.iter_mut().chain(self.exe.iter_mut())
    }
}
