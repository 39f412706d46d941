//! Limits of what recorded processes can make the recorder keep, read or open. What exceeds one is not known, and is said where hits depend on it.

use std::io;
use std::time::{Duration, Instant};

// The table of processes.

/// Maximum number of named threads of all processes.
pub(super) const MAX_THREADS: usize = 1 << 16;
/// Maximum number of mappings of all processes.
pub(super) const MAX_MAPPINGS: usize = 1 << 20;
/// Maximum number of mappings of a process.
pub(super) const MAX_MAPPINGS_OF_PROCESS: usize = 1 << 14;
/// Maximum number of replaced mappings of a process.
pub(super) const MAX_REPLACED_MAPPINGS: usize = 1 << 10;
/// Maximum number of files that processes map.
pub(super) const MAX_MAPPED_FILES: usize = 1 << 16;
/// Maximum number of processes that are known after their pids were used again.
pub(super) const MAX_FORMER_PROCESSES: usize = 1 << 10;

// Stacks.

/// Maximum size of the unwind tables of all files, bytes: beyond it, all are read again when they are needed.
pub(super) const MAX_TABLE_BYTES: usize = 512 << 20;
/// Maximum number of pieces of memory that were searched for copied functions; beyond it, all are searched again.
pub(super) const MAX_PIECES: usize = 1 << 12;

// Programs that make code.

/// Maximum number of programs that run.
pub(super) const MAX_PROGRAMS: usize = 1 << 16;
/// Maximum number of programs whose maps may be looked for when recording ends.
pub(super) const MAX_KEPT_PROGRAMS: usize = 1 << 14;
/// Maximum number of pids with samples in a pass.
pub(super) const MAX_SAMPLED_PIDS: usize = 1 << 12;
/// Maximum number of times that the `/tmp` of a process is opened if its file system does not answer.
pub(super) const MAX_TRIES_OF_TMP: u32 = 6;
/// Maximum number of processes that are looked at after a pass: others are after the next one.
pub(super) const MAX_VIEWS_OF_PASS: usize = 64;
/// Maximum number of maps and jitdumps that are kept open. Maps of later processes are opened when recording ends.
pub(super) const MAX_OPEN_MAPS: usize = 256;
/// Maximum number of directories that are kept open.
pub(super) const MAX_OPEN_DIRECTORIES: usize = 256;
/// Maximum size of a map or a jitdump that a helper reads, bytes.
pub(super) const MAX_COPIED_MAP: u64 = 256 << 20;

// Control groups and thread contexts.

/// Maximum number of processes whose control groups wait to be read, and of those that are noted as read.
pub(super) const MAX_READ_PROCESSES: usize = 1 << 16;
/// Maximum number of processes in which the variable of thread contexts is looked for again.
pub(super) const MAX_UNFINISHED: usize = 4096;
/// Maximum number of changes of a pass that wait for the thread that looks for it.
pub(super) const MAX_CONTEXT_CHANGES: usize = 1 << 16;

// Verification and semaphores.

/// Maximum number of processes that are verified, and of those that ended and may still have hits in the rings.
pub(super) const MAX_WATCHED: usize = 1 << 16;
/// Maximum number of processes whose ends are waited for.
pub(super) const MAX_OPEN_PROCESSES: usize = 256;
/// Maximum number of addresses of code that are known of a process. dlmopen(3) makes at most 16 copies.
pub(super) const MAX_BASES: usize = 64;
/// Maximum number of mappings of a file in a process whose semaphores are incremented by hand: a loader makes about five for each copy.
pub(super) const MAX_MAPPINGS_OF_FILE: usize = 1 << 10;
/// Maximum number of processes that are known to be killed by SIGTRAP.
pub(super) const MAX_TRAPPED: usize = 1 << 12;
/// Maximum number of processes whose semaphores are tried again and again.
pub(super) const MAX_PENDING: usize = 4096;

// What is said of processes.

/// Maximum number of shortfalls of a recording. Further ones are counted with the last one of their kind.
pub(super) const MAX_SHORTFALLS: usize = 64;
/// Maximum length of what is said, bytes: a file may have names of any length, and a record must hold it.
pub(super) const MAX_SAID: usize = 4096;

// Time.

/// Maximum time of a look at the sites of a process. It may map the code of a file very often.
pub(super) const MAX_LOOK_TIME: Duration = Duration::from_secs(1);

/// Checks that work of which a process says how much there is may go on.
///
/// # Errors
/// `TimedOut` from the deadline on.
pub(super) fn check_time(deadline: Instant) -> io::Result<()> {
    match Instant::now() < deadline {
        true => Ok(()),
        false => Err(io::ErrorKind::TimedOut.into()),
    }
}
