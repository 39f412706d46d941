//! The names that are known of a hit which is kept while others are forgotten.

use crate::process::cgroups::RecordedFacts;
use crate::process::names::NameId;

/// The numbers of the names of a hit that is kept. A stream may end long after its thread, which is forgotten then.
#[derive(Debug)]
pub struct HitNames<'h> {
    /// What its thread is called.
    pub comm: &'h mut Option<NameId>,
    /// What is recorded of its process.
    pub recorded: &'h mut RecordedFacts,
}

impl HitNames<'_> {
    /// The names of its process.
    pub(crate) fn paths_mut(&mut self) -> impl Iterator<Item = &mut NameId> {
        self.recorded.names_mut()
    }
}
