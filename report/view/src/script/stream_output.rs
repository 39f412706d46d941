//! Where a stream is printed to.

use std::io::Write;

use usdtrec_trace::session::TraceSession;

/// Where a stream is printed to.
pub struct StreamOutput<'a> {
    /// Takes the lines, and is flushed after those that came together.
    pub out: &'a mut dyn Write,
    /// Takes the name of an event, empty where it is not known, and the number of its losses, whenever the stream has a record of losses.
    pub lost: &'a mut dyn FnMut(&str, u64),
}

impl StreamOutput<'_> {
    /// Reports losses of an event.
    pub(crate) fn lose(&mut self, session: &TraceSession, event: Option<usize>, lost: u64) {
        let event = event.and_then(|event| session.events().events.get(event));
        (self.lost)(event.map_or("", |event| &event.name), lost);
    }
}

impl std::fmt::Debug for StreamOutput<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StreamOutput")
    }
}
