//! Whether what spans are grouped by is of their begin or of their end.

use crate::analysis::spans::key::SpanKey;
use crate::analysis::spans::pair::Pair;
use crate::analysis::spans::walk::{By, SpanWalk};
use crate::analysis::summary::counts::Rows;
use crate::error::ReportError;
use crate::events::selection::Filter;
use crate::stats::keys::key::{Key, argument_place};
use crate::trace::session::Session;
use crate::trace::session::events::Event;
use crate::view::report::text::short;

/// What is asked for as `NAME`, or as `EVENT.NAME` of one side.
pub(crate) fn by(
    name: &str,
    (session, rows): (&Session, &Rows),
    pairs: &[Pair],
    human: bool,
) -> Result<By, ReportError> {
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
        events(of_end).any(|event| argument_place(event, argument).is_some())
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
    let key = Key::parse(bare, session, rows, human)?;
    if let (Some(_), Key::Argument(..) | Key::Shape(..)) = (qualified, &key) {
        let argument = bare.strip_suffix(":shape").unwrap_or(bare);
        if !has(of_end, argument) {
            let side = if of_end { "ends" } else { "begins" };
            return Err(ReportError::Ask(format!(
                "--by {name}: what {side} the span has no argument {argument:?}"
            )));
        }
    }
    let argument = bare.strip_suffix(":shape").unwrap_or(bare);
    let is_of_both = qualified.is_none() && has(false, argument) && has(true, argument);
    Ok(By {
        name: name.to_owned(),
        key,
        of_end,
        of_both: is_of_both.then(|| argument.to_owned()),
    })
}

/// Whose argument is meant by names that begin and end both have without having the same value.
pub(crate) fn remarks(walk: &SpanWalk<'_>, filter: &Filter) -> Vec<String> {
    let by = walk.options.by.iter();
    let by = by.filter_map(|by| by.of_both.as_deref());
    let by = by.map(|name| ("--by", name));
    let of_filter = filter.of_both().iter().map(|name| ("--filter", &**name));
    let mut remarks = Vec::new();
    for (option, name) in by.chain(of_filter) {
        let differs = |key: &SpanKey| !key.is_same(name);
        let pairs = walk.pairs.iter().zip(&walk.options.keys);
        let pair = pairs.into_iter().find(|(_, key)| differs(key));
        let done = pair.and_then(|(pair, _)| pair.dones.first());
        let Some(done) = done.and_then(|&done| walk.session.events().events.get(done)) else {
            continue;
        };
        let event = short(&done.name);
        let event = event.split_once(':').map_or(event, |(_, bare)| bare);
        remarks.push(format!(
            "{option}: {name} is that of the event which begins the span; {event}.{name} is that of the one which ends it"
        ));
    }
    remarks.dedup();
    remarks
}
