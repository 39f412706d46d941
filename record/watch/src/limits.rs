//! Limits of what recorded processes can make the recorder keep of them.

/// Maximum number of named threads of all processes.
pub(crate) const MAX_THREADS: usize = 1 << 16;
/// Maximum number of mappings of all processes.
pub(crate) const MAX_MAPPINGS: usize = 1 << 20;
/// Maximum number of mappings of a process.
pub(crate) const MAX_MAPPINGS_OF_PROCESS: usize = 1 << 14;
/// Maximum number of replaced mappings of a process.
pub(crate) const MAX_REPLACED_MAPPINGS: usize = 1 << 10;
/// Maximum number of files that processes map.
pub(crate) const MAX_MAPPED_FILES: usize = 1 << 16;
/// Maximum number of processes that are known after their pids were used again.
pub(crate) const MAX_FORMER_PROCESSES: usize = 1 << 10;
/// Maximum size of the unwind tables of all files, bytes: beyond it, all are read again when they are needed.
pub(crate) const MAX_TABLE_BYTES: usize = 512 << 20;
