//! Arguments that begin and end of a span have in common.
//!
//! Names say which of them may identify the span: strings, and numbers that identify things (an address, an id), but no amounts and lines, which
//! differ between the two.

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

    /// Whether type, unit and words leave it possible that its numbers are ids.
    #[must_use]
    pub const fn may_be_id(&self) -> bool {
        may_be_id(self.argument)
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
    /// Their names, and whether their numbers are compared, too, not only their strings.
    pub arguments: Vec<(&'a str, bool)>,
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
    let agreed = agreed.map(|shared| (&*shared.argument.name, shared.has_identifying_numbers()));
    let agreed: Vec<_> = agreed.collect();
    if !agreed.is_empty() {
        return LiveAgreement {
            arguments: agreed,
            must_agree: true,
        };
    }
    let may_be_ids = shared.into_iter().filter(|shared| shared.may_be_id());
    let mut names = may_be_ids.map(|shared| &*shared.argument.name);
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
