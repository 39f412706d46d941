//! Whether what spans are grouped by is of their begin or of their end.

use usdtrec_trace::error::ReportError;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::events::Event;

use crate::spans::options::GroupBy;
use crate::spans::pair::Pair;
use crate::stats::keys::key::Key;

/// A key that was requested as `NAME`, or as `EVENT.NAME` of one side.
pub(crate) fn by(
    name: &str,
    session: &TraceSession,
    rows: &Rows,
    pairs: &[Pair],
) -> Result<GroupBy, ReportError> {
    let events = |of_end: bool| {
        let events = pairs.iter().flat_map(move |pair| match of_end {
            true => &pair.dones,
            false => &pair.starts,
        });
        events.filter_map(|&event| session.events().events.get(event))
    };
    let named = |part: &str| {
        let is = |event: &Event| event.is_called(part);
        match (events(false).any(is), events(true).any(is)) {
            // One event that ends a span and begins the next: its begin, as without its name.
            (true, _) => Some(false),
            (false, true) => Some(true),
            (false, false) => None,
        }
    };
    let has = |of_end: bool, argument: &str| {
        events(of_end).any(|event| event.argument(argument).is_some())
    };
    let qualified = name
        .split_once('.')
        .and_then(|(event, rest)| Some((named(event)?, rest)));
    let (of_end, bare) = match qualified {
        Some((of_end, rest)) => (of_end, rest),
        None => {
            let argument = name.strip_suffix(":shape").unwrap_or(name);
            (!has(false, argument) && has(true, argument), name)
        }
    };
    let key = Key::parse(bare, session, rows)?;
    if let (Some(_), Key::Argument(..) | Key::Shape(..)) = (qualified, &key) {
        let argument = bare.strip_suffix(":shape").unwrap_or(bare);
        if !has(of_end, argument) {
            return Err(QuestionError::NoGroupArgument {
                name: name.to_owned(),
                of_end,
                argument: argument.to_owned(),
            }
            .into());
        }
    }
    let argument = bare.strip_suffix(":shape").unwrap_or(bare);
    // What is added to both is the same where the one is in the other.
    let is_added = argument.contains('.');
    let is_of_both =
        qualified.is_none() && !is_added && has(false, argument) && has(true, argument);
    let name = match (&key, qualified) {
        // Which may be written with a hyphen.
        (Key::Process(field), None) => field.name,
        _ => name,
    };
    Ok(GroupBy {
        name: name.to_owned(),
        key,
        of_end,
        of_both: is_of_both.then(|| argument.to_owned()),
    })
}
