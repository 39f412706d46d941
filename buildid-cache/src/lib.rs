//! The index of SDT probes: reading them out of ELF files, keeping them in perf's buildid-cache, finding
//! them again by name, build-id, path and process.

mod cache;
pub mod elf;
mod entry;
mod find;
mod lookup;
pub mod process;
mod store;
mod text;
mod walk;

pub use cache::{Cache, CacheError};
pub use entry::{Entry, Indexed, Source};
pub use find::resolve;
pub use lookup::{select, suggest};
pub use store::Added;
pub use walk::{Step, walk};
