//! The index of SDT probes: reading them out of ELF files, keeping them in perf's buildid-cache, finding
//! them again by name, build-id, path and process.

mod beneath;
mod cache;
mod copy;
pub mod elf;
mod entry;
mod find;
mod library;
mod lock;
mod lookup;
mod maps;
pub mod process;
mod reach;
mod store;
mod text;
mod walk;

pub use cache::{Cache, CacheError, Waiting};
pub use entry::{Entry, Indexed, Source};
pub use find::{locate, open, resolve};
pub use lookup::{select, suggest};
pub use maps::Map;
pub use store::Added;
pub use walk::{Step, walk};
