//! The functions at the addresses of a trace's stacks, by the symbols of the recording host.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::build_id::BuildId;
use crate::definitions::path_bytes;

/// The functions at addresses of stacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeNames {
    /// Names of functions, demangled, without parameters, each once.
    pub functions: Vec<String>,
    /// The files that are in stacks.
    pub files: Vec<FileCode>,
    /// Code that processes made at run time, as those said (`/tmp/perf-PID.map`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<MadeCode>,
}

/// Names of the code that a process made at run time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeCode {
    /// The process.
    pub pid: i32,
    /// When the program that it ran began, by fork or execve, ns of the trace's clock; 0 if that is not known.
    pub began: u64,
    /// Places that have a name, by address.
    pub places: Vec<NamedPlace>,
}

/// Names of the code of a file that processes mapped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileCode {
    /// Path when it was mapped. In JSON it is a string, or a list of bytes if it is not UTF-8.
    #[serde(with = "path_bytes")]
    pub path: PathBuf,
    /// Its build-id, if the trace has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<BuildId>,
    /// Which symbols the recording host had.
    pub symbols: KnownSymbols,
    /// Places that have a name, by file offset.
    pub places: Vec<NamedPlace>,
}

/// A place in a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedPlace {
    /// File offset, or address in a process, bytes.
    pub at: u64,
    /// Index of the function's name in [`CodeNames::functions`].
    pub function: u32,
    /// Bytes from the start of the function.
    pub within: u64,
}

/// Which symbols of a file are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KnownSymbols {
    /// The file could not be read, or was not the recorded one.
    NotRead,
    /// Those that other files can use (`.dynsym`), or no symbol at all.
    OfOthers,
    /// All that the file was linked with.
    All,
}
