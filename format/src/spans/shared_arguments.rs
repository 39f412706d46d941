//! Arguments that begin and end of a span have in common.
//!
//! Names say which of them may identify the span: strings, and numbers that identify things (an address, an id), but no amounts and lines, which
//! differ between the two.

use std::borrow::Cow;

use crate::schema::{Argument, ArgumentType};

/// Last words of names of numbers that identify things.
const IDENTIFYING: &str = "id oid xid lxid pid tid uuid fd addr address ptr pointer handle cookie key lock mutex rwlock \
     cond sem monitor connection conn session request req job task thread isolate hash serial seq \
     inode";

/// An argument that all events of a pair have under one name.
#[derive(Clone, Copy, Debug)]
pub struct SharedArgument<'a> {
    /// Its place in the first event.
    pub place: usize,
    /// As the first event has it.
    pub argument: &'a Argument,
}

impl SharedArgument<'_> {
    /// Whether its numbers identify things, by its name and type.
    #[must_use]
    pub fn has_identifying_numbers(&self) -> bool {
        self.argument.name != Argument::unnamed(self.place).name && identifies(self.argument)
    }

    /// Whether begin and end have the same value, as far as name and type say: it is a string, or identifies things.
    #[must_use]
    pub fn is_expected_to_agree(&self) -> bool {
        self.has_identifying_numbers()
            || matches!(self.argument.kind, Some(ArgumentType::String(_)))
    }
}

/// Whether type, unit and words of an argument leave it possible that its numbers are ids: they are integers, and no amounts or states.
#[must_use]
pub const fn may_be_id(argument: &Argument) -> bool {
    let is_integer = matches!(
        argument.kind,
        None | Some(ArgumentType::Integer { .. } | ArgumentType::Pointer)
    );
    is_integer && argument.unit.is_none() && argument.labels.is_none()
}

/// Arguments that all of some events, given by their lists of arguments, have under one name.
#[must_use]
pub fn shared_arguments<'a>(events: &[&'a [Argument]]) -> Vec<SharedArgument<'a>> {
    let Some(&first) = events.first() else {
        return Vec::new();
    };
    let all = (0..).zip(first);
    let shared = all.filter(|(place, argument)| {
        let name = &argument.name;
        // Of two arguments of one name, it is not known which is meant.
        argument_place(first, name) == Some(*place)
            && events
                .iter()
                .all(|event| argument_place(event, name).is_some())
    });
    shared
        .map(|(place, argument)| SharedArgument { place, argument })
        .collect()
}

/// The arguments by which spans of a thread are matched while hits come, when it is not known which integer behaves as an id in the whole file.
#[derive(Clone, Debug, Default)]
pub struct LiveAgreement<'a> {
    /// Their names, as [`place_of_key`] takes them, and whether their numbers are compared, too, not only their strings.
    pub arguments: Vec<(Cow<'a, str>, bool)>,
    /// Whether begin and end must agree in them. Else there is one at most, and ends take the newest begin: where it is equal to that of an older begin,
    /// spans overlap on their thread.
    pub must_agree: bool,
}

/// What the events of a pair, given by their lists of arguments, must agree in: what names and types say. If that is nothing, the first integer of all of
/// them which may be an id and for which `can_watch` is true is watched.
#[must_use]
pub fn live_agreement<'a>(
    events: &[&'a [Argument]],
    can_watch: impl Fn(&str) -> bool,
) -> LiveAgreement<'a> {
    let shared = shared_arguments(events);
    let agreed = shared.iter().filter(|shared| shared.is_expected_to_agree());
    let agreed = agreed.map(|shared| {
        let name = Cow::Borrowed(&*shared.argument.name);
        (name, shared.has_identifying_numbers())
    });
    let agreed: Vec<_> = agreed.collect();
    if !agreed.is_empty() {
        return LiveAgreement {
            arguments: agreed,
            must_agree: true,
        };
    }
    let first = events.first().map_or(&[][..], |first| first);
    let mut names = (0..first.len()).filter_map(|at| common_id(events, at));
    let watched = names.find(|name| can_watch(name));
    LiveAgreement {
        arguments: watched.map(|name| (name, true)).into_iter().collect(),
        must_agree: false,
    }
}

/// The place of the argument of a name, if there is one only.
#[must_use]
pub fn argument_place(arguments: &[Argument], name: &str) -> Option<usize> {
    let mut all = arguments.iter().enumerate();
    let found = all.by_ref().find(|(_, known)| known.name == name)?.0;
    all.all(|(_, known)| known.name != name).then_some(found)
}

/// The place of an argument that is asked for as a key: by its name, if there is one only, or as `arg1`, `arg2`, ….
#[must_use]
pub fn place_of_key(arguments: &[Argument], name: &str) -> Option<usize> {
    if arguments.iter().any(|known| known.name == name) {
        return argument_place(arguments, name);
    }
    (0..arguments.len()).find(|place| Argument::unnamed(*place).name == name)
}

/// Where an event has an argument of another one, which is at `at` there: under the same name, or at the same place if it has that name nowhere.
#[must_use]
pub fn common_place(arguments: &[Argument], argument: &Argument, at: usize) -> Option<usize> {
    let name = &argument.name;
    match arguments.iter().any(|known| known.name == *name) {
        true => argument_place(arguments, name),
        false => (at < arguments.len()).then_some(at),
    }
}

/// The name by which all of some events, given by their lists of arguments, have an integer that may be an id: that of the argument at `at` in the first one,
/// or its number, if others call it otherwise.
#[must_use]
pub fn common_id<'a>(events: &[&'a [Argument]], at: usize) -> Option<Cow<'a, str>> {
    let argument = events.first()?.get(at)?;
    let is_meant = |name: &str| {
        events.iter().all(|event| {
            let place = common_place(event, argument, at);
            let known = place.and_then(|place| event.get(place));
            known.is_some_and(may_be_id) && place_of_key(event, name) == place
        })
    };
    let names = [
        Cow::Borrowed(&*argument.name),
        Argument::unnamed(at).name.into(),
    ];
    names.into_iter().find(|name| is_meant(name))
}

/// Whether the numbers of an argument identify things, and are no amounts.
fn identifies(argument: &Argument) -> bool {
    if argument.unit.is_some() || argument.labels.is_some() {
        return false;
    }
    match &argument.kind {
        Some(ArgumentType::Pointer) => return true,
        Some(ArgumentType::Integer { .. }) | None => {}
        Some(_) => return false,
    }
    let name = &argument.name;
    let is_part = |c: char| !c.is_ascii_alphanumeric();
    let last = name.rsplit(is_part).find(|part| !part.is_empty());
    let last = last.unwrap_or_default();
    let word = last.to_ascii_lowercase();
    IDENTIFYING.split(' ').any(|known| known == word)
        || last.ends_with("Id")
        || last.ends_with("ID")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_a_name_that_all_events_know() {
        let named = |names: &[&str]| names.iter().copied().map(Argument::named).collect();
        let id = |one: &[&str], other: &[&str], at| {
            let lists: [Vec<Argument>; 2] = [named(one), named(other)];
            let lists = [&*lists[0], &*lists[1]];
            common_id(&lists, at).map(Cow::into_owned)
        };
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(id(&["id", "arg2"], &["id"], 0), some("id"));
        assert_eq!(id(&["x", "id"], &["id"], 1), some("id"));
        assert_eq!(id(&["id", "arg2"], &["arg1"], 0), some("arg1"));
        assert_eq!(id(&["arg1"], &["n"], 0), some("arg1"));
        assert_eq!(id(&["id", "arg2"], &["arg1"], 1), None);
        // It is not known which is meant.
        assert_eq!(id(&["a"], &["a", "a"], 0), None);
    }
}
