//! The probes of a trace: events by their name.

use foldhash::HashMap;
use usdtrec_format::schema;

use crate::session::TraceSession;

/// Rows of a report: events by their name, as one probe may have several events.
#[derive(Debug)]
pub struct Rows {
    /// The row of each event; `None` if it is not requested or never fires.
    pub of_event: Vec<Option<usize>>,
    /// The rows, in the order of their first events.
    pub rows: Vec<Row>,
}

/// A probe.
#[derive(Debug)]
pub struct Row {
    /// Name of the events.
    pub name: String,
    /// Its arguments.
    pub arguments: Vec<schema::Argument>,
    /// Its events.
    pub events: Vec<usize>,
}

impl Rows {
    /// The rows of the events that `asked` says.
    pub fn new(session: &TraceSession, asked: impl Fn(usize) -> bool) -> Self {
        let mut rows: Vec<Row> = Vec::new();
        let mut places = HashMap::default();
        let mut of_event = Vec::new();
        for (at, event) in session.events().events.iter().enumerate() {
            if event.is_dummy() || !asked(at) {
                of_event.push(None);
                continue;
            }
            // Arguments that were added come after the others: of events with more and with fewer, at other places.
            let own = match event.added.len() {
                0 => 0,
                _ => event.own_arguments().len(),
            };
            let place = *places.entry((&*event.name, own)).or_insert_with(|| {
                rows.push(Row {
                    name: event.name.clone(),
                    arguments: Vec::new(),
                    events: Vec::new(),
                });
                rows.len() - 1
            });
            let row = &mut rows[place];
            row.events.push(at);
            if event.arguments.len() > row.arguments.len() {
                row.arguments.clone_from(&event.arguments);
            }
            of_event.push(Some(place));
        }
        Self { of_event, rows }
    }
}
