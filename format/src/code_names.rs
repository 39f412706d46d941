//! The functions and lines at the addresses of a trace's stacks, by the symbols and the debugging information of the recording host.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::build_id::BuildId;
use crate::definitions::path_bytes;

/// The functions at addresses of stacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeNames {
    /// Names of functions, demangled, without parameters, each once.
    pub functions: Vec<String>,
    /// Paths of source files, as compilers wrote them, each once; bytes that are not UTF-8 are replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// The files that are in stacks.
    pub files: Vec<FileCode>,
    /// Code that processes made at run time, as those said (`/tmp/perf-PID.map`, jitdumps).
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
    /// Places that have a name from a time on, by address, then time. Recorders before jitdumps were read say nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timed: Vec<TimedPlace>,
}

/// A place in a function that is there from a time on, until another one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedPlace {
    /// ns of the trace's clock; 0 if it is not known.
    pub since: u64,
    /// The place.
    #[serde(flatten)]
    pub place: NamedPlace,
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
    /// Places that have a line or are of inlined functions, by file offset, from debugging information. Recorders before this was
    /// written say nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<LinedPlace>,
    /// Strings in parts of the file that the program cannot write, at which arguments pointed and which were not read at the hit. Recorders
    /// before this was written say nothing.
    #[serde(rename = "texts", default, skip_serializing_if = "Vec::is_empty")]
    pub strings: Vec<StringInFile>,
}

/// A string in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StringInFile {
    /// File offset that its address has if the mapping of the file's code continues to there, wrapping.
    pub at: u64,
    /// Its bytes, without the NUL at its end. In JSON they are a string, or a list of bytes if they are not UTF-8.
    #[serde(with = "string_bytes")]
    pub bytes: Vec<u8>,
    /// Whether it is longer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// Bytes as a string, or as a list if they are not UTF-8.
mod string_bytes {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::path::Path;

    use serde::{Deserializer, Serializer};

    use crate::definitions::path_bytes;

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        let bytes = std::ffi::OsStr::from_bytes(bytes);
        path_bytes::serialize(Path::new(bytes), serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        let path = path_bytes::deserialize(deserializer)?;
        Ok(OsString::from(path).into_vec())
    }
}

/// The lines of a place, and the functions whose code was inlined there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinedPlace {
    /// File offset of the instruction, bytes: for a caller, one less than the address in the stack, so that it is within the call.
    pub at: u64,
    /// Inlined functions, the innermost first; the last frame is that of the function that is not inlined.
    pub frames: Vec<LinedFrame>,
}

/// A frame of a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinedFrame {
    /// Index of the inlined function's name in [`CodeNames::functions`]; `None` of the function that is not inlined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<u32>,
    /// Index of the source file in [`CodeNames::sources`]; `None` if the line is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<u32>,
    /// Line, from 1; 0 if it is not known.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub line: u64,
}

/// serde passes a reference.
const fn is_unknown(line: &u64) -> bool {
    *line == 0
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
    /// Only symbols that other files can use (`.dynsym`), or none.
    OfOthers,
    /// All that the file was linked with.
    All,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_older_recorders_are_read() {
        let json = r#"{"functions":["main"],"files":[{"path":"/bin/app","symbols":"all","places":[{"at":1,"function":0,"within":2}]}]}"#;
        let names: CodeNames = serde_json::from_str(json).unwrap();
        assert_eq!(names.files[0].places.len(), 1);
        assert!(names.files[0].lines.is_empty() && names.sources.is_empty());
        // What they would not know is not written where it is empty.
        assert_eq!(serde_json::to_string(&names).unwrap(), json);
    }
}
