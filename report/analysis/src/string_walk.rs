//! A walk over the strings of some arguments.

use usdtrec_format::Value;
use usdtrec_trace::events::fold::{Folded, fold};
use usdtrec_trace::events::notices::Notices;

use crate::samples::SelectedSamples;

/// An argument whose strings are walked over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DueArgument {
    /// Its place among all that are due.
    pub(crate) at: usize,
    /// Its index in the event.
    pub(crate) argument: usize,
}

/// A string of an argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DueString<'t> {
    /// The place of the argument among all that are due.
    pub(crate) at: usize,
    pub(crate) bytes: &'t [u8],
    /// The time of the sample, ns.
    pub(crate) time: u64,
}

/// Adds all strings of the arguments that `due` lists for an event to one of several states, which `make` makes; returns them.
pub(crate) fn walk_strings<A: Send, D: Iterator<Item = DueArgument>>(
    samples: SelectedSamples<'_>,
    due: impl Fn(usize) -> D + Sync,
    make: impl Fn() -> A + Sync,
    add: impl Fn(&mut A, DueString<'_>) + Sync,
    notices: &mut Notices,
) -> Vec<A> {
    let SelectedSamples { session, filter } = samples;
    let Folded { states, outcome } =
        fold(session, filter, make, |state, resolver, target, sample| {
            for DueArgument { at, argument } in due(target.event as usize) {
                let site = session.site_of(target, sample);
                if let Some(Value::String(string)) =
                    site.and_then(|site| resolver.value(site, argument, sample))
                {
                    let string = DueString {
                        at,
                        bytes: &string.bytes,
                        time: sample.time,
                    };
                    add(state, string);
                }
            }
        });
    notices.add_once(outcome);
    states
}
