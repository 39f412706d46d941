//! Names of arguments: where they are in each event, and what their columns are called.

use usdtrec_format::TimePart;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::fields::{process_field_named, process_field_names};
use usdtrec_trace::list::list;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::events::Event;

/// The place of an argument in each event that has it; an error if no event has it.
pub(super) fn places(
    name: &str,
    session: &TraceSession,
    rows: &Rows,
) -> Result<Vec<Option<usize>>, ReportError> {
    let found = |place: fn(&Event, &str) -> Option<usize>| {
        let events = session.events().events.iter().zip(&rows.of_event);
        let places: Vec<Option<usize>> = events
            .map(|(event, row)| row.and_then(|_| place(event, name)))
            .collect();
        places.iter().any(Option::is_some).then_some(places)
    };
    if let Some(places) = found(Event::argument).or_else(|| found(Event::argument_of_probe)) {
        return Ok(places);
    }
    if let Some(field) = process_field_named(name)
        && !session.has_of_process(field)
    {
        let (what, needs) = (field.name, field.needs);
        return Err(QuestionError::NotOfProcess { what, needs }.into());
    }
    let arguments = rows.rows.iter().flat_map(|row| &row.arguments);
    Err(QuestionError::NoKey {
        name: name.to_owned(),
        known: list(arguments.map(|argument| &*argument.name)),
        of_process: process_field_names(),
    }
    .into())
}

/// Names of members and columns besides those of keys.
const RESERVED: [&str; 39] = [
    "event",
    "comm",
    "pid",
    "tid",
    "cpu",
    "dso",
    "sym",
    "symbol",
    "srcline",
    "caller",
    "stack",
    "stack_cut",
    "overhead",
    "samples",
    "span",
    "others",
    "count",
    "total_ns",
    "self_ns",
    "self_total_ns",
    "mean_ns",
    "sum_ns",
    "min_ns",
    "p50_ns",
    "p90_ns",
    "p99_ns",
    "p999_ns",
    "max_ns",
    "exact",
    "from_ns",
    "interval_ns",
    "counts",
    "recorded_ns",
    "parts",
    "parts_known",
    "time_ns",
    "doubtful",
    "groups",
    "args",
];

/// What an argument's column is called: its name, or `args.NAME` where another column is called so.
pub(super) fn column(name: &str) -> String {
    let mut parts = TimePart::ALL.into_iter().map(TimePart::spec);
    let is_part = parts.any(|part| [part.column, part.own_column].contains(&name));
    match RESERVED.contains(&name) || is_part || process_field_named(name).is_some() {
        true => format!("args.{name}"),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_column_is_called_as_another_one() {
        for name in [
            "recorded_ns",
            "parts",
            "oncpu_ns",
            "self_blocked_ns",
            "count",
        ] {
            assert_eq!(column(name), format!("args.{name}"));
        }
        assert_eq!(column("bytes"), "bytes");
    }
}
