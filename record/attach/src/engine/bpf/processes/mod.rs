//! The recorded processes: following them, and holding those that they start until the probes are attached to them.
//!
//! [`follow`] keeps the map of recorded processes, in which the programs of the probes look up who has a hit. The other folders act on
//! programs that are only observed otherwise, and so are the parts of the recorder that can harm a host:
//!
//! * [`children`] attaches the probes to the recorded processes alone, child by child.
//! * [`hold`] holds such a child meanwhile, in the kernel.
//! * [`mapping_hold`] holds a thread that maps a file with code that is not known yet (`--no-gap`), in the kernel.
//! * [`watched_files`] holds a thread that executes a file whose probes were detached because nobody executed it, in the kernel.
//!
//! A change of them keeps the invariants below. How each is kept, and which other ways were tried, is at the heads of the folders. The guests
//! test them (`tests/guests/tests`: `children.sh`, `held.sh`, `killed.sh`, `no_gap.sh`).
//!
//! # Which processes have breakpoints
//!
//! 1. Where probes can be attached to the recorded processes alone ([`hold`] says where), another process has no breakpoint and no raised
//!    semaphore, until a limit of [`children`] is exceeded or a recorded process is special
//!    ([`EverywhereReason`](crate::engine::outcome::EverywhereReason)). Then the probes are attached to all processes of the files: once, with the reason
//!    reported, and until the end.
//! 2. A hit of a recorded process is recorded once. The value of a process in the map says whether it has links of its own. If so, the
//!    program of links with a pid records its hits, else the program of links for all processes does.
//! 3. That value changes only while the process executes no instruction in user mode: a held process writes it itself, before it continues.
//! 4. The kernel identifies the process of a link by its first thread. If another thread replaces the first (`execve`), the process is held, and
//!    its old links are closed before it gets new ones. If others survive it, the probes are attached to all processes.
//! 5. Links of processes that have ended are closed; if too many are not closed yet, no further process gets links of its own.
//!
//! # How long a program waits
//!
//! 6. Each hold ends without the recorder: after [`MAX_HOLD`](hold::work::MAX_HOLD), and when the recorder is killed. The kernel runs no work
//!    of a map that is not open in any process.
//! 7. The first hold of a child that times out is the last: no further child is held, and the probes are attached to all processes.
//! 8. Children are held for a limited part of the time (`Budget` in [`children`]).
//! 9. While the recorder does not run (it is stopped, or waits for a disk), no further thread is held at a mapping.
//! 10. The recorder does not wait for itself. At a mapping its own threads are not held.
//! 11. A held real-time task could keep the recorder from its CPU. So a real-time thread is not held in the kernel at a mapping, and a real-time
//!     child only until the probes are attached to all processes, which is done at once.
//!
//! # What other processes notice
//!
//! 12. A hold sends no signal and changes no state that other processes see; a parent waits for the child in `vfork` only. No process is stopped.
//! 13. A process is released only if it is the one that was held: ids can be reused. A child has a token, a thread its start time.
//!
//! # What is reported
//!
//! 14. A hold that was not possible, began too late or ended too early is counted and reported, and so is a call that found no room in the ring.
//! 15. When holding begins, the recorder first stops releasing, and then reads the map: a process that started before is seen in the map, a later
//!     one is held.
//! 16. A file whose probes were detached has none in any process, until a thread that executes it calls the recorder ([`watched_files`]). One that
//!     was not held is reported with its gap.

pub(super) mod children;
pub(super) mod executables;
pub(super) mod follow;
pub(super) mod groups;
pub(super) mod hold;
pub(super) mod mapping_hold;
pub(super) mod watched_files;
