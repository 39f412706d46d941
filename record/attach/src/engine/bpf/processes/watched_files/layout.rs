//! The words that the programs on new mappings share with the recorder, and its records of readers.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 8 | while the recorder maps a file so that its inode is learnt: the id of its thread, and in the upper half the number of the file |
//! | 8 | 8 | not 0 when it is learnt |
//! | 16 | 32 each | by number of the file: its state, when it was last mapped with the right to execute (ns), its first and last 4096 bytes with sites |

/// Maximum number of files that are watched.
pub(super) const MAX_FILES: usize = 4096;
pub(super) const LEARNING: i16 = 0;
pub(super) const LEARNED: i16 = 8;
/// Size of what is before the first file.
pub(super) const HEAD_BYTES: usize = 16;
/// Size of the words of a file.
pub(super) const FILE_BYTES: usize = 32;
pub(super) const STATE: i16 = 0;
pub(super) const EXECUTED: i16 = 8;
pub(super) const FIRST_UNIT: i16 = 16;
pub(super) const LAST_UNIT: i16 = 24;
/// States: its probes are attached; nobody executes it, and they are not.
pub(super) const ATTACHED: i32 = 1;
pub(super) const IDLE: i32 = 2;
/// Size of a reader: time, ids, number of the file, name of the thread.
pub(super) const READER_BYTES: usize = 40;
/// Size of its key: addresses of the process's memory, which another process may get later, and of the inode, and the id of the process.
pub(super) const SPACE_BYTES: usize = 24;
