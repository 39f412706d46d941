//! Writing the lines of spans.

use std::io::{self, Write};

use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_analysis::rows::row_sink::{RowSide, RowSink, SpanRow};
use usdtrec_trace::events::order::before::PreviousTimes;
use usdtrec_trace::session::TraceSession;

use crate::script::span_lines::arguments::last_hit;
use crate::script::span_lines::line_times::LineTimes;
use crate::script::span_lines::style::SpanStyle;
use crate::text::buffer::Text;

/// Bytes of text that are written at once.
const WRITE: usize = 256 << 10;

/// Writes a line for each span.
pub(crate) struct SpanWriter<'a> {
    session: &'a TraceSession,
    style: &'a SpanStyle,
    /// The lines before.
    before: &'a mut PreviousTimes,
    times: LineTimes<'a>,
    text: Text,
    out: &'a mut dyn Write,
}

impl<'a> SpanWriter<'a> {
    /// Goes on after the lines of `before`.
    pub(crate) fn new(
        session: &'a TraceSession,
        style: &'a SpanStyle,
        before: &'a mut PreviousTimes,
        out: &'a mut dyn Write,
    ) -> Self {
        Self {
            session,
            style,
            times: LineTimes {
                before: *before,
                of_day: style.times_of_day(),
            },
            before,
            text: Text::default(),
            out,
        }
    }

    /// Writes what waits.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        if self.text.len() > 0 {
            self.write()?;
            self.out.flush()?;
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        self.out.write_all(self.text.as_slice())?;
        self.text.clear();
        Ok(())
    }
}

impl RowSink for SpanWriter<'_> {
    fn event(&mut self, _: RowHit<'_>, _: RowSide) -> io::Result<()> {
        Ok(())
    }

    fn span(&mut self, span: SpanRow<'_>) -> io::Result<()> {
        self.times.before = *self.before;
        let times = &mut self.times;
        self.style.line(self.session, &span, times, &mut self.text);
        self.before.pass(last_hit(&span).row.time);
        match self.text.len() >= WRITE {
            true => self.write(),
            false => Ok(()),
        }
    }
}
