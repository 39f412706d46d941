//! Which arguments of an event are shown, and in which order.

use usdtrec_format::escape::escape;
use usdtrec_format::schema::Argument;
use usdtrec_format::{Missing, Value};
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::selection::SampleFilter;
use usdtrec_trace::field_error::FieldError;
use usdtrec_trace::form::Form;
use usdtrec_trace::list::list;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;

use crate::text::buffer::Text;

/// The value of all arguments of a sample whose site is not known.
pub(crate) fn of_unknown_site() -> Value {
    Value::Missing(Missing::Operand("site not known".to_owned()))
}

/// An argument that is shown.
#[derive(Clone, Debug)]
pub(crate) struct ShownArgument {
    /// Its place among the event's.
    pub(crate) place: usize,
    /// What it is called.
    pub(crate) name: String,
    /// How its values are shown.
    pub(crate) form: Form,
}

impl ShownArgument {
    /// Appends it with its name and a blank after it, if it has a value.
    pub(crate) fn put(&self, prefix: &str, value: Option<&Value>, out: &mut Text) {
        let Some(value) = value else {
            return;
        };
        out.string(prefix);
        out.string(&escape(&self.name));
        out.byte(b'=');
        out.formed(&self.form, value);
        out.byte(b' ');
    }
}

/// Which arguments are requested, by their names or as `arg1`, `arg2`, ….
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum ArgumentChoice {
    /// All of an event.
    #[default]
    All,
    /// These, in this order.
    Only(Vec<String>),
    /// All but these.
    Except(Vec<String>),
}

impl ArgumentChoice {
    /// Adds a name to those that are requested, or to those that are not.
    pub(crate) fn push(&mut self, name: &str, removed: bool) -> Result<(), FieldError> {
        if name.is_empty() {
            return Err(FieldError::NoArgument);
        }
        let empty = if removed {
            Self::Except(Vec::new())
        } else {
            Self::Only(Vec::new())
        };
        if *self == Self::All {
            *self = empty;
        }
        let names = match (self, removed) {
            (Self::Only(names), false) | (Self::Except(names), true) => names,
            _ => return Err(FieldError::ArgumentsRemoved),
        };
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
        Ok(())
    }

    /// Whether there is a list of those that are requested.
    pub(crate) const fn is_list(&self) -> bool {
        matches!(self, Self::Only(_))
    }

    /// What a later choice makes of this one.
    pub(crate) fn then(self, later: Self) -> Self {
        if later == Self::All { self } else { later }
    }

    /// The names in it.
    pub(crate) fn names(&self) -> &[String] {
        match self {
            Self::All => &[],
            Self::Only(names) | Self::Except(names) => names,
        }
    }

    /// Of an event's arguments, those that are requested.
    pub(crate) fn shown(&self, arguments: &[Argument]) -> Vec<ShownArgument> {
        let all = || arguments.iter().map(|argument| &*argument.name).enumerate();
        let chosen: Vec<(usize, &str)> = match self {
            Self::All => all().collect(),
            Self::Only(names) => {
                let places = names
                    .iter()
                    .map(|name| Some((place(name, arguments)?, &**name)));
                places.flatten().collect()
            }
            Self::Except(names) => {
                let places = names.iter().filter_map(|name| place(name, arguments));
                let left: Vec<usize> = places.collect();
                all().filter(|(place, _)| !left.contains(place)).collect()
            }
        };
        let shown = chosen.into_iter().filter_map(|(place, name)| {
            Some(ShownArgument {
                place,
                name: name.to_owned(),
                form: Form::new(arguments.get(place)?).plain(),
            })
        });
        shown.collect()
    }

    /// The arguments that are requested of each event.
    pub(crate) fn of_events(&self, session: &TraceSession) -> Vec<Vec<ShownArgument>> {
        let events = session.events().events.iter();
        events.map(|event| self.shown(&event.arguments)).collect()
    }

    /// Refuses names that no event that is selected has.
    pub(crate) fn check(
        &self,
        session: &TraceSession,
        filter: &SampleFilter,
    ) -> Result<(), ReportError> {
        self.names()
            .iter()
            .try_for_each(|name| check(name, session, filter, &[]))
    }
}

/// The place of an argument: by its name, else by its number.
pub(crate) fn place(name: &str, arguments: &[Argument]) -> Option<usize> {
    let named = arguments.iter().position(|argument| argument.name == name);
    named.or_else(|| {
        let number: usize = name.strip_prefix("arg")?.parse().ok()?;
        number
            .checked_sub(1)
            .filter(|place| *place < arguments.len())
    })
}

/// Refuses a name that no event that is selected has. `others` are names of something else that could be meant.
pub(crate) fn check(
    name: &str,
    session: &TraceSession,
    filter: &SampleFilter,
    others: &[&'static str],
) -> Result<(), ReportError> {
    let events = session.events().events.iter().enumerate();
    let asked = events.filter(|(at, _)| filter.event(*at));
    let lists: Vec<&[Argument]> = asked.map(|(_, event)| &*event.arguments).collect();
    if lists
        .iter()
        .any(|arguments| place(name, arguments).is_some())
    {
        return Ok(());
    }
    let known = lists
        .iter()
        .copied()
        .flatten()
        .map(|argument| &*argument.name);
    Err(QuestionError::no_argument(name, list(known), others).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_found_by_name_and_number() {
        let arguments = ["url", "arg1", "size"].map(Argument::named);
        let of = |choice: ArgumentChoice| {
            let shown = choice.shown(&arguments);
            let shown = shown
                .iter()
                .map(|argument| format!("{}{}", argument.place, argument.name));
            shown.collect::<Vec<_>>().join(" ")
        };
        let names = || {
            ["size", "arg1", "arg2", "arg4", "x"]
                .map(str::to_owned)
                .to_vec()
        };
        assert_eq!(of(ArgumentChoice::All), "0url 1arg1 2size");
        assert_eq!(of(ArgumentChoice::Only(names())), "2size 1arg1 1arg2");
        assert_eq!(of(ArgumentChoice::Except(names())), "0url");
        assert_eq!(place("arg0", &arguments), None);
    }
}
