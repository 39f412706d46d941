//! The files of which hits may be missing if they cannot be read.

use std::collections::HashSet;
use std::ffi::OsString;
use std::sync::Arc;

use usdtrec_attach::select::probe::PlannedProbe;
use usdtrec_buildid_cache::FileMapping;

use crate::recording::following::settings::Following;

/// The files of which hits may be missing if they cannot be read.
#[derive(Clone, Debug, Default)]
pub(super) struct SoughtFiles {
    /// Names of the files that may be selected; `None` for all.
    names: Option<HashSet<OsString>>,
    /// Inodes of the files whose probes are attached. Processes may see other devices.
    attached: HashSet<u64>,
}

impl SoughtFiles {
    /// The files of a recording with these attached probes.
    pub(super) fn new(following: &Following, attached: &[Arc<PlannedProbe>]) -> Self {
        let inode = |probe: &Arc<PlannedProbe>| probe.program.file().id().inode;
        Self {
            names: following.file_names(),
            attached: attached.iter().map(inode).collect(),
        }
    }

    /// Whether the file of a mapping is one.
    pub(super) fn has(&self, mapping: &FileMapping) -> bool {
        let name = mapping.path.file_name().unwrap_or_default();
        let is_named = |names: &HashSet<OsString>| names.contains(name);
        self.names.as_ref().is_none_or(is_named) && !self.attached.contains(&mapping.inode)
    }
}
