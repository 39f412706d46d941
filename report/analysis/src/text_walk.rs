//! A walk over the texts of some arguments.

use usdtrec_format::Value;
use usdtrec_trace::events::fold::{Folded, fold};
use usdtrec_trace::events::notices::Notices;

use crate::samples::SelectedSamples;

/// An argument whose texts are walked over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DueArgument {
    /// Its place among all that are due.
    pub(crate) at: usize,
    /// Its index in the event.
    pub(crate) argument: usize,
}

/// A text of an argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DueText<'t> {
    /// The place of the argument among all that are due.
    pub(crate) at: usize,
    pub(crate) bytes: &'t [u8],
    /// The time of the sample, ns.
    pub(crate) time: u64,
}

/// Adds all texts of the arguments that `due` lists for an event to one of several states, which `make` makes; returns them.
pub(crate) fn walk_texts<A: Send, D: Iterator<Item = DueArgument>>(
    samples: SelectedSamples<'_>,
    due: impl Fn(usize) -> D + Sync,
    make: impl Fn() -> A + Sync,
    add: impl Fn(&mut A, DueText<'_>) + Sync,
    notices: &mut Notices,
) -> Vec<A> {
    let SelectedSamples { session, filter } = samples;
    let Folded { states, outcome } =
        fold(session, filter, make, |state, resolver, target, sample| {
            for DueArgument { at, argument } in due(target.event as usize) {
                let site = session.site_of(target, sample);
                if let Some(Value::String(text)) =
                    site.and_then(|site| resolver.value(site, argument, sample))
                {
                    let text = DueText {
                        at,
                        bytes: &text.bytes,
                        time: sample.time,
                    };
                    add(state, text);
                }
            }
        });
    notices.add_once(outcome);
    states
}
