//! Schema files.

use std::path::{Path, PathBuf};
use std::{fs, io};

use thiserror::Error;

use crate::escape::shown;
use crate::schema::{Hints, Language, Parsed};

/// Maximum size of a file that is read, bytes.
const LARGEST: u64 = 64 << 20;

/// Why a schema file is not read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SchemaFileError {
    /// Its name has no extension of a language.
    #[error(
        "{}: expected a schema file: .toml, .d (DTrace provider) or .stp (SystemTap tapset)",
        shown(.0)
    )]
    Language(PathBuf),
    /// It is too large.
    #[error("{}: expected a schema file of at most {} MiB", shown(.0), LARGEST >> 20)]
    TooLarge(PathBuf),
    /// It cannot be read.
    #[error("cannot read {}", shown(path))]
    Read {
        /// The file.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

/// Reads a schema file; its extension determines the language. `provider` is used for probes for which the file names no provider.
///
/// # Errors
/// [`SchemaFileError`]. What is wrong in the file is among the problems of the result.
pub fn read_file(path: &Path, provider: Option<&str>) -> Result<Parsed, SchemaFileError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let language = Language::from_file_name(&name);
    let language = language.ok_or_else(|| SchemaFileError::Language(path.to_owned()))?;
    let length = fs::metadata(path).map(|metadata| metadata.len());
    if length.is_ok_and(|length| length > LARGEST) {
        return Err(SchemaFileError::TooLarge(path.to_owned()));
    }
    let bytes = fs::read(path).map_err(|source| SchemaFileError::Read {
        path: path.to_owned(),
        source,
    })?;
    let hints = Hints {
        provider,
        file: Some(&name),
    };
    Ok(language.parse_with(&String::from_utf8_lossy(&bytes), &hints))
}
