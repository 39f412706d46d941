//! Schema files, and their languages.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::escape::shown;
use crate::schema::{Parsed, dtrace, toml};

/// Maximum size of a file that is read, bytes. In memory it takes up to sixty times as many.
const LARGEST: u64 = 4 << 20;

/// Why a schema file is not read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SchemaFileError {
    /// Its name has no extension of a language.
    #[error(
        "{}: expected a schema file: .toml or .d (DTrace provider)",
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

/// Reads a schema file; its extension determines the language.
///
/// # Errors
/// [`SchemaFileError`]. What is wrong in the file is among the problems of the result.
pub fn read_file(path: &Path) -> Result<Parsed, SchemaFileError> {
    language(path)?;
    let file = File::open(path).map_err(|source| SchemaFileError::Read {
        path: path.to_owned(),
        source,
    })?;
    read_open_file(&file, path)
}

/// As [`read_file`], of a file that is open.
///
/// # Errors
/// As [`read_file`].
pub fn read_open_file(file: &File, path: &Path) -> Result<Parsed, SchemaFileError> {
    let language = language(path)?;
    // The size that a file has is no limit: it may be a pipe or a device, or grow.
    let mut bytes = Vec::new();
    let read = file.take(LARGEST + 1).read_to_end(&mut bytes);
    read.map_err(|source| SchemaFileError::Read {
        path: path.to_owned(),
        source,
    })?;
    if bytes.len() as u64 > LARGEST {
        return Err(SchemaFileError::TooLarge(path.to_owned()));
    }
    Ok(language.parse(&String::from_utf8_lossy(&bytes)))
}

fn language(path: &Path) -> Result<Language, SchemaFileError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Language::from_file_name(&name).ok_or_else(|| SchemaFileError::Language(path.to_owned()))
}

/// Languages of schema files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Language {
    /// TOML: `.toml`.
    Toml,
    /// A DTrace provider file: `.d`.
    Dtrace,
}

impl Language {
    /// The language of a file name's extension (`toml`, `d`, also with `.in` or `.base` after it).
    #[must_use]
    pub fn from_file_name(name: &str) -> Option<Self> {
        let source = [".in", ".base"]
            .iter()
            .find_map(|end| name.strip_suffix(end));
        let name = source.unwrap_or(name);
        match name.rsplit_once('.')?.1 {
            "toml" => Some(Self::Toml),
            "d" => Some(Self::Dtrace),
            _ => None,
        }
    }

    /// Parses a text. Never fails: invalid parts are reported as problems, and do not affect others if their end
    /// can be found.
    #[must_use]
    pub fn parse(self, text: &str) -> Parsed {
        match self {
            Self::Toml => toml::parse(text),
            Self::Dtrace => dtrace::parse(text),
        }
    }
}
