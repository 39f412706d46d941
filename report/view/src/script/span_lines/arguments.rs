//! What the lines of spans have in common: which hit a line is about, and the arguments of begin and end.

use usdtrec_analysis::rows::hit_row::RowHit;
use usdtrec_analysis::rows::row_sink::SpanRow;
use usdtrec_analysis::spans::pair::Pair;
use usdtrec_format::Value;
use usdtrec_trace::form::Form;
use usdtrec_trace::session::TraceSession;

use crate::script::options::ScriptOptions;

/// An argument that is shown.
#[derive(Clone, Debug)]
pub(crate) struct SpanArgument {
    /// Its place among the event's.
    pub(crate) place: usize,
    pub(crate) name: String,
    pub(crate) form: Form,
}

/// The hit that a span's line is about: that which ends it, or without one the begin.
pub(crate) fn last_hit<'a>(span: &SpanRow<'a>) -> RowHit<'a> {
    span.end.map_or(span.begin, |end| end.hit)
}

/// The arguments that are shown of each event; none of events without a part in spans.
pub(crate) fn of_events(
    session: &TraceSession,
    pairs: &[Pair],
    options: &ScriptOptions,
) -> Vec<Vec<SpanArgument>> {
    let events = session.events().events.iter().enumerate();
    let shown = events.map(|(at, event)| {
        let of_spans = |pair: &Pair| pair.starts.contains(&at) || pair.dones.contains(&at);
        if !pairs.iter().any(of_spans) {
            return Vec::new();
        }
        let chosen = options.fields.arguments.choose(&event.arguments);
        let chosen = chosen.into_iter().filter_map(|(place, name)| {
            Some(SpanArgument {
                place,
                name: name.to_owned(),
                form: Form::new(event.arguments.get(place)?).plain(),
            })
        });
        chosen.collect()
    });
    shown.collect()
}

/// The arguments of an event.
pub(crate) fn of_hit<'a>(all: &'a [Vec<SpanArgument>], hit: RowHit<'_>) -> &'a [SpanArgument] {
    all.get(hit.row.event).map_or(&[], Vec::as_slice)
}

/// Whether two values say the same: strings do, wherever they are.
pub(crate) fn say_the_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(one), Value::String(other)) => {
            one.bytes == other.bytes && one.cut == other.cut
        }
        (Value::Unsigned(one), Value::Signed(other))
        | (Value::Signed(other), Value::Unsigned(one)) => u64::try_from(*other) == Ok(*one),
        (one, other) => one == other,
    }
}
