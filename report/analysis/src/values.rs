//! The values of an argument, of each probe that has one of its name.

use usdtrec_format::Value;
use usdtrec_format::perf::Sample;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::fold::{Folded, fold};
use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::form::Form;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::rows::Rows;
use usdtrec_trace::session::TraceSession;

use crate::measured_subject::MeasuredSubject;
use crate::stats::keys::key::{Key, argument_value};
use crate::summary::frequent_strings::StringsOfArgument;

/// An argument that is requested.
pub(crate) struct ArgumentValues {
    pub(crate) rows: Rows,
    /// Where each event has it.
    places: Vec<Option<usize>>,
    /// Its name, as it was requested.
    name: String,
    /// How its values are shown.
    form: Form,
}

impl ArgumentValues {
    /// The argument of a name. `other_key` makes the error if the name is another key's.
    pub(crate) fn new(
        session: &TraceSession,
        filter: &SampleFilter,
        name: &str,
        other_key: impl FnOnce(String) -> QuestionError,
    ) -> Result<Self, ReportError> {
        let rows = Rows::new(session, |event| filter.event(event));
        let Key::Argument(_, places, form) = Key::parse(name, session, &rows)? else {
            return Err(other_key(name.to_owned()).into());
        };
        Ok(Self {
            rows,
            places,
            name: name.to_owned(),
            form,
        })
    }

    /// Adds each value, with the row of its probe, to one of several states.
    pub(crate) fn fold<A: Send>(
        &self,
        session: &TraceSession,
        filter: &SampleFilter,
        make: impl Fn() -> A + Sync,
        add: impl Fn(&mut A, usize, &Value, &Sample<'_>) + Sync,
    ) -> Folded<A> {
        fold(session, filter, make, |state, resolver, target, sample| {
            let row = self.rows.of_event.get(target.event as usize);
            if let Some(row) = row.copied().flatten()
                && let Some(value) = argument_value(&self.places, resolver, target, sample)
            {
                add(state, row, value, sample);
            }
        })
    }

    /// For each event, the place of the argument, if the event has it: the strings are those of its row.
    pub(crate) fn strings_of_rows(&self) -> Vec<Vec<StringsOfArgument>> {
        let both = self.rows.of_event.iter().zip(&self.places);
        both.map(|(row, place)| {
            let both = (*row).zip(*place);
            let of = both.map(|(strings, argument)| StringsOfArgument { strings, argument });
            of.into_iter().collect()
        })
        .collect()
    }

    /// What a histogram or heat map of a row's values is of.
    pub(crate) fn measured(&self, row: usize) -> MeasuredSubject {
        let event = self.rows.rows.get(row);
        MeasuredSubject::Argument {
            event: event.map_or_else(String::new, |row| row.name.clone()),
            name: self.name.clone(),
            form: self.form.clone(),
        }
    }

    /// Whether the probe of a row has it.
    pub(crate) fn has(&self, row: usize) -> bool {
        let events = self.rows.rows.get(row).map_or(&[][..], |row| &row.events);
        let place = |&event: &usize| self.places.get(event).is_some_and(Option::is_some);
        events.iter().any(place)
    }
}
