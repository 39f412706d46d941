//! Reading probes from ELF files, and checking a site before a probe is attached to it.

mod check;
mod error;
mod excerpt;
mod file_id;
mod headers;
mod names;
mod object_file;
mod references;
mod scan;
mod section;
mod semaphore;
mod thread_local;

pub use self::check::{CheckError, FileState};
pub use self::error::ElfError;
pub use self::excerpt::Excerpt;
pub use self::file_id::FileId;
pub(crate) use self::headers::kernel_build_id;
pub use self::object_file::ObjectFile;
pub use self::scan::{NOTE_BYTES, PartialScan, ProbeScan, build_id, read_binary, scan};
pub use self::section::Section;
pub use self::semaphore::SemaphoreFault;
pub use self::thread_local::{Loader, LoaderSlot, LoaderSlotKind, ThreadLocal, ThreadLocals};
