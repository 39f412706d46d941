//! Writing rows, which are events or spans.

use usdtrec_analysis::rows::row_sink::SpanRow;
use usdtrec_trace::events::order::Window;
use usdtrec_trace::events::order::before::PreviousTimes;
use usdtrec_trace::session::hit::{Hit, ParsedHit};
use usdtrec_trace::session::resolver::Resolver;

use crate::text::buffer::Text;

/// Writes rows as lines of a format. One a thread.
pub(crate) trait RowWriter<'s> {
    /// What looks up the samples.
    fn resolver(&mut self) -> &mut Resolver<'s>;

    /// Appends the line of an event; `before` are the times of the lines before.
    fn event(&mut self, hit: Hit<'_>, before: PreviousTimes, out: &mut Text);

    /// Appends the line of a span.
    fn span(&mut self, span: &SpanRow<'_>, before: PreviousTimes, out: &mut Text);

    /// Appends the lines of a window; returns how many samples were too short for what their event says.
    fn window(&mut self, window: Window<'_>, out: &mut Text) -> u64 {
        let session = self.resolver().session();
        let (mut short, mut before) = (0, window.before);
        for (number, body) in window.bodies().enumerate() {
            let Some(ParsedHit { target, sample }) = session.sample(body) else {
                short += 1;
                continue;
            };
            self.resolver().set_context(window.context(number));
            let sample = &sample;
            self.event(Hit { target, sample }, before, out);
            before.pass(sample.time);
        }
        short
    }
}

/// A writer of any format.
pub(crate) type AnyWriter<'s> = Box<dyn RowWriter<'s> + Send + 's>;
