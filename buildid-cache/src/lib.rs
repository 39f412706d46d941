//! The index of SDT probes: reading them out of ELF files, keeping them in perf's buildid-cache, finding
//! them again by name, build-id, path and process.

pub mod elf;
