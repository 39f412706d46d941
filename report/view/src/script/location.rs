//! Where a sample hit, in words.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;

use usdtrec_format::SourceLine;
use usdtrec_format::escape::{escape, escape_bytes};
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::resolver::CodeLocation;

/// What perf prints where it knows nothing.
const UNKNOWN: &str = "[unknown]";

/// The function's name.
pub(crate) fn symbol_name(place: &CodeLocation) -> Cow<'_, str> {
    match &place.symbol {
        Some(symbol) => escape(&symbol.name),
        None => Cow::Borrowed(UNKNOWN),
    }
}

/// A line of source: as perf, the file without its directory.
pub(crate) fn source_text(source: &SourceLine) -> String {
    let SourceLine { file, line } = source;
    let base = file.rsplit('/').next().unwrap_or(file);
    format!("{}:{line}", escape(base))
}

/// A line of source with the whole path, not escaped.
pub(crate) fn whole_source_text(source: &SourceLine) -> String {
    let SourceLine { file, line } = source;
    format!("{file}:{line}")
}

/// The file's path.
pub(crate) fn file_name<'s>(session: &'s TraceSession, place: &CodeLocation) -> Cow<'s, str> {
    let file = place.file.and_then(|file| session.mappings().file(file));
    match file {
        Some(file) => escape_bytes(file.path.as_os_str().as_bytes()),
        None => Cow::Borrowed(UNKNOWN),
    }
}
