//! `script` of a stream while it is written.

use std::io::{Read, Write};
use std::path::Path;

use super::spans::SpanColumn;
use super::{Lines, ScriptOptions, Style};
use crate::error::ReportError;
use crate::live::{Samples, Streamed, View, watch};
use crate::order::Before;
use crate::select::Selection;
use crate::session::{Session, Sources};
use crate::text::Text;

/// Bytes of text that are written at once.
const WRITE: usize = 256 << 10;

/// Where a stream is printed to.
pub struct Live<'a> {
    /// Takes the lines, and is flushed behind those that came together.
    pub out: &'a mut dyn Write,
    /// Takes the name of an event, empty where it is not known, and how many of it the stream tells to be lost, whenever it does.
    pub lost: &'a mut dyn FnMut(&str, u64),
}

/// Prints the samples of a stream that a selection asks for, until it ends. `path` is what the stream is called.
///
/// # Errors
/// [`ReportError::Read`] if it is no stream of ours or of `perf record -o -`; [`ReportError::Ask`] if it has no event that is
/// asked for or does not tell the time of day that is, or for a part of its length, which is not known; [`ReportError::Write`] if it cannot be printed.
pub fn live(
    input: impl Read,
    path: &Path,
    sources: &Sources,
    (selection, options): (&Selection, &ScriptOptions),
    to: Live<'_>,
) -> Result<Streamed, ReportError> {
    watch(input, path, sources, selection, |session, filter| {
        if SpanColumn::is_asked(options) {
            let what = "spans are not matched in a stream: store it in a file";
            return Err(ReportError::Ask(what.to_owned()));
        }
        let style = Style::new(session, filter, options)?;
        if let Style::Csv(style) = &style {
            to.out.write_all(style.header().as_bytes())?;
        }
        Ok(Printer {
            style,
            before: Before::default(),
            text: Text::default(),
            to,
        })
    })
}

/// Prints samples.
struct Printer<'a> {
    style: Style,
    /// What was shown before.
    before: Before,
    text: Text,
    to: Live<'a>,
}

impl View for Printer<'_> {
    fn show(&mut self, samples: Samples<'_>) -> Result<(), ReportError> {
        let mut lines = Lines::new(samples.session, &self.style);
        let (text, before, out) = (&mut self.text, &mut self.before, &mut *self.to.out);
        let mut wrote = false;
        samples.each(|target, sample| {
            lines.line(target, sample, *before, text);
            before.pass(sample.time);
            if text.len() >= WRITE {
                out.write_all(text.as_slice())?;
                text.clear();
                wrote = true;
            }
            Ok(())
        })?;
        if wrote || text.len() > 0 {
            out.write_all(text.as_slice())?;
            out.flush()?;
            text.clear();
        }
        Ok(())
    }

    fn lose(&mut self, session: &Session, event: Option<usize>, lost: u64) {
        let event = event.and_then(|event| session.events().events.get(event));
        (self.to.lost)(event.map_or("", |event| &event.name), lost);
    }
}

impl std::fmt::Debug for Live<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Live")
    }
}
