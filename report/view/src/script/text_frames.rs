//! Where a hit is, and its callers, as perf script prints them.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use usdtrec_format::SourceLine;
use usdtrec_format::escape::{escape, escape_bytes};
use usdtrec_trace::calls::function::ScriptFunction;
use usdtrec_trace::field_value::UNKNOWN;
use usdtrec_trace::fields::{Field, Fields};
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::resolver::CodeLocation;

use crate::script::call_chain::LineFrame;
use crate::text::buffer::Text;

/// A line of source, not escaped: as perf, the file without its directory.
pub(crate) fn source_text(source: &SourceLine) -> String {
    let SourceLine { file, line } = source;
    let base = file.rsplit('/').next().unwrap_or(file);
    format!("{base}:{line}")
}

/// The file's path.
fn file_name<'s>(session: &'s TraceSession, place: &CodeLocation) -> Cow<'s, str> {
    let file = place.file.and_then(|file| session.mappings().file(file));
    match file {
        Some(file) => escape_bytes(file.path.as_os_str().as_bytes()),
        None => Cow::Borrowed(UNKNOWN),
    }
}

/// The function and the file of a frame, and its line of source.
pub(crate) fn put_frame(
    fields: Fields,
    session: &TraceSession,
    frame: &LineFrame<'_>,
    out: &mut Text,
) {
    if fields.has(Field::Sym) {
        out.byte(b' ');
        out.string(&escape(frame.function.unwrap_or(UNKNOWN)));
        if let (true, Some(symbol)) = (fields.has(Field::Symoff), &frame.place.symbol) {
            out.fixed(b"+0x");
            out.hex(symbol.offset);
        }
    }
    if fields.has(Field::Dso) && !frame.is_inlined {
        out.fixed(b" (");
        out.string(&file_name(session, frame.place));
        out.byte(b')');
    }
    put_source(fields, frame.source, out);
    if frame.is_inlined {
        out.fixed(b" (inlined)");
    }
}

/// The line of source, as perf on a line of its own.
pub(crate) fn put_source(fields: Fields, source: Option<&SourceLine>, out: &mut Text) {
    if let (true, Some(source)) = (fields.has(Field::Srcline), source) {
        out.fixed(b"\n  ");
        out.string(&escape(&source_text(source)));
    }
}

/// The functions of a script, one a line where the name in a call chain is, and an empty line.
pub(crate) fn script_frames(
    functions: &[Arc<ScriptFunction>],
    most: Option<usize>,
    out: &mut Text,
) {
    for function in functions.iter().take(most.unwrap_or(usize::MAX)) {
        out.fixed(b"\t                 ");
        out.string(&escape(&function.name));
        if let Some(file) = &function.file {
            out.fixed(b" (");
            out.string(&escape_bytes(file.as_os_str().as_bytes()));
            out.byte(b')');
        }
        out.byte(b'\n');
    }
    out.byte(b'\n');
}
