//! Files whose file systems may not answer: a program or another host serves them (FUSE, NFS), or an overlay is above such a one, as any user can make one.
//! Opening, asking about, reading and closing such a file may wait for ever, in a state in which not even a SIGKILL ends the process.
//!
//! A file that others control is read here only if its file system is known to be local (`local_mounts`). Others are opened and read by a
//! helper: a process of its own, started by another one that has nothing of this one, in its own session, with one socket.
//! One that does not answer within [`ANSWER_TIME`] is killed, which it may ignore, and nobody waits for it: it holds nothing.
//! A user and a file system can make few of them wait, and be waited for a short time; then their files are refused at once. When the file system
//! answers, the helper ends, and its files are read again.
//!
//! This process has only handles of such files (`O_PATH`), which name them for the kernel and for helpers.

mod contents;
mod file_stat;
mod handle;
mod helper;
mod helpers;
mod local_mounts;
mod message;
mod process_file;
mod spent_time;
mod waits;

pub use contents::{Contents, PositionedReader, ServedFile};
pub use file_stat::FileStat;
pub use handle::{Handle, file_id};
pub use helper::{PageTools, SERVE_VERB, serve};
pub(crate) use helpers::pids;
pub use helpers::{ANSWER_TIME, Haste, Patience, Reader, begin, end, prepare};
pub(crate) use process_file::MapsReader;
pub use process_file::{ProcessFile, read_maps};
pub use waits::awaited_file;
