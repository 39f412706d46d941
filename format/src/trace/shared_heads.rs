//! Heads of several files that are opened together: files of one recording mostly have the same, which is parsed and kept once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::TraceInfo;

/// The heads of files that were opened, by the blobs of their definitions. Clones are handles of the same.
#[derive(Clone, Debug, Default)]
pub struct SharedHeads(Arc<Mutex<HashMap<Vec<u8>, Arc<TraceInfo>>>>);

impl SharedHeads {
    /// The head of a file with these definitions.
    pub(crate) fn find(&self, blob: &[u8]) -> Option<Arc<TraceInfo>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(blob).map(Arc::clone)
    }

    /// Takes a head, and gives the one that is the same, if there is one.
    pub(crate) fn share(&self, blob: Vec<u8>, info: TraceInfo) -> Arc<TraceInfo> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(&blob) {
            // Another thread opened a file with it meanwhile.
            Some(known) if known.is_like(&info) => Arc::clone(known),
            Some(_) => Arc::new(info),
            None => {
                let info = Arc::new(info);
                known.insert(blob, Arc::clone(&info));
                info
            }
        }
    }
}

impl TraceInfo {
    /// Whether all but the definitions are the same.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let Self {
            hostname,
            os_release,
            machine,
            version,
            cpu_description,
            total_memory_kb,
            cpus_available,
            cpus_online,
            command,
            clock,
            pmus,
            build_ids,
            events,
            tracepoints,
            definitions: _,
        } = self;
        *hostname == other.hostname
            && *os_release == other.os_release
            && *machine == other.machine
            && *version == other.version
            && *cpu_description == other.cpu_description
            && *total_memory_kb == other.total_memory_kb
            && *cpus_available == other.cpus_available
            && *cpus_online == other.cpus_online
            && *command == other.command
            && *clock == other.clock
            && *pmus == other.pmus
            && *build_ids == other.build_ids
            && *events == other.events
            && *tracepoints == other.tracepoints
    }
}
