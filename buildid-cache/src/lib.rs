//! An index of SDT probes: reads them from ELF files, stores them in perf's build-id cache, and finds them by name, build-id, path and
//! process.

#![forbid(unsafe_code)]

mod account;
mod builds;
mod cache;
mod copy;
mod directory;
pub mod elf;
mod entry;
mod file_mapping;
mod find_file;
mod foreign_file;
mod live_thread;
mod lock;
mod lookup;
mod memory_mapping;
mod open_path;
mod probes_text;
pub mod process;
mod running;
pub mod served;
mod store;
mod walk;

pub use account::Account;
pub use builds::{Build, BuildError, chosen_build};
pub use cache::{Cache, CacheError, LockWaitCallback, distrust};
pub use entry::{Entry, Indexed, ProbeSource};
pub use file_mapping::{DeviceNumber, FileMapping, MappedInode};
pub use find_file::{in_path, locate, open, resolve};
pub use live_thread::{live_directory, live_thread};
pub use lookup::{IndexedProbe, WantedFile, select, suggest};
pub use memory_mapping::MemoryMapping;
pub use running::{KeptProbes, MAX_FILES_OF_USER, Running, RunningFile, running};
pub use served::file_id;
pub use store::AddedFile;
pub use walk::{WalkEvent, walk};
