//! What the begins and ends of spans have in common, as the question says or without it.

use usdtrec_trace::error::ReportError;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;

use crate::spans::common_integers::CommonIntegers;
use crate::spans::key::SpanKey;
use crate::spans::own_keys::{own_integers, own_keys_with};
use crate::spans::pair::Pair;
use crate::stats::keys::key::Key;

/// What the begins and ends of each of some pairs have in common: what these names mean; without names, what is known of the pairs.
pub(crate) fn asked_keys(
    names: &[String],
    pairs: &[Pair],
    session: &TraceSession,
    rows: &Rows,
) -> Result<Vec<SpanKey>, ReportError> {
    asked_keys_with(names, pairs, session, rows, || own_integers(pairs, session))
}

/// The same, where the integers of the pairs are found in another way.
pub(crate) fn asked_keys_with(
    names: &[String],
    pairs: &[Pair],
    session: &TraceSession,
    rows: &Rows,
    integers: impl FnOnce() -> Vec<CommonIntegers>,
) -> Result<Vec<SpanKey>, ReportError> {
    if names.is_empty() {
        return Ok(own_keys_with(pairs, session, rows, &integers()));
    }
    let parts = names.iter();
    let parts = parts.map(|name| key(name, session, rows, pairs));
    let parts: Vec<Key> = parts.collect::<Result<_, _>>()?;
    Ok(vec![SpanKey::values(parts); pairs.len()])
}

/// An argument or process that both probes of each pair have.
fn key(
    name: &str,
    session: &TraceSession,
    rows: &Rows,
    pairs: &[Pair],
) -> Result<Key, ReportError> {
    let key = Key::parse(name, session, rows)?;
    let Key::Argument(_, places, _) = &key else {
        return Ok(key);
    };
    let events = pairs
        .iter()
        .flat_map(|pair| pair.starts.iter().chain(&pair.dones));
    let lacking = events
        .copied()
        .find(|&event| places.get(event).is_none_or(Option::is_none));
    match lacking.and_then(|event| session.events().events.get(event)) {
        Some(event) => Err(QuestionError::NoSpanKey {
            event: event.name.clone(),
            name: name.to_owned(),
        }
        .into()),
        None => Ok(key),
    }
}
