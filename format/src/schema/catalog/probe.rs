//! The schema of a probe.

use std::collections::HashSet;

use crate::schema::name_parts::{arguments_of, name_parts};
use crate::schema::telemetry::{Telemetry, attribute_name};
use crate::schema::{Argument, ArgumentType, Length, LockUse, ScriptCall};

/// The schema of a probe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeSchema {
    /// Provider, as in notes.
    pub provider: String,
    /// Name, as in notes (`query__start`).
    pub name: String,
    /// When the probe is hit, in one line.
    pub description: Option<String>,
    /// What a program needs for the probe to be hit at all (a switch, an environment variable), in one line.
    pub needs: Option<String>,
    /// Which function of a script is called or returns, if one does.
    pub call: Option<ScriptCall>,
    /// What is done with a lock, if anything is.
    pub lock: Option<LockUse>,
    /// What a span that begins or ends at the probe is in OpenTelemetry.
    pub telemetry: Telemetry,
    /// The arguments, in order.
    pub arguments: Vec<Argument>,
    /// Whether the probe may have more arguments, which are not described.
    pub more: bool,
}

impl ProbeSchema {
    /// Whether the schema fits a probe with this number of arguments.
    #[must_use]
    pub const fn fits(&self, arguments: usize) -> bool {
        self.arguments.len() == arguments || self.more && self.arguments.len() < arguments
    }

    /// `sdt_PROVIDER:NAME(name: type, …)`, with `…` at the end if more may follow.
    #[must_use]
    pub fn signature(&self) -> String {
        let arguments = self.arguments.iter();
        let mut words: Vec<String> = arguments
            .map(|argument| format!("{}: {}", argument.name, argument.type_words()))
            .collect();
        if self.more {
            words.push("…".to_owned());
        }
        format!("sdt_{}:{}({})", self.provider, self.name, words.join(", "))
    }

    /// Errors: duplicate names; lengths, and arguments of functions and attributes, that are not arguments.
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut names = HashSet::new();
        for argument in &self.arguments {
            if !names.insert(&argument.name) {
                faults.push(format!("two arguments are named {:?}", argument.name));
            }
        }
        for argument in &self.arguments {
            let Some(name) = argument
                .kind
                .as_ref()
                .and_then(ArgumentType::length_argument)
            else {
                continue;
            };
            if self.argument_index(name).is_none() {
                faults.push(format!(
                    "{}: its length is {name:?}, which is not an argument",
                    argument.name
                ));
            }
        }
        faults.extend(self.call.as_ref().and_then(|call| self.call_fault(call)));
        let lock = self.lock.as_ref();
        let lock = lock.filter(|lock| self.argument_index(&lock.lock).is_none());
        faults.extend(lock.map(|lock| {
            let (key, name) = (lock.action.key(), &lock.lock);
            format!("{key}: expected the argument that says which lock, found {name:?}")
        }));
        let attributes = self.telemetry.attributes.iter();
        faults.extend(attributes.filter_map(|(name, value)| self.attribute_fault(name, value)));
        faults
    }

    /// The error in the function that is called or returns.
    fn call_fault(&self, call: &ScriptCall) -> Option<String> {
        let Some(arguments) = call.arguments() else {
            let function = &call.function;
            return Some(format!(
                "{function:?}: expected the name of a function with arguments in braces, such as \"{{class}}#{{method}}\""
            ));
        };
        let mut unknown = arguments
            .into_iter()
            .filter(|name| self.argument_index(name).is_none());
        let name = unknown.next()?;
        Some(format!(
            "the function that is called has {name:?}, which is not an argument"
        ))
    }

    /// The error in an attribute.
    fn attribute_fault(&self, name: &str, value: &str) -> Option<String> {
        if let Err(error) = attribute_name::check(name) {
            return Some(error.to_string());
        }
        let Some(parts) = name_parts(value).filter(|parts| !parts.is_empty()) else {
            return Some(format!(
                "{name}: {value:?}: expected a text with arguments in braces, such as \"{{query}}\""
            ));
        };
        let unknown = arguments_of(&parts).find(|name| self.argument_index(name).is_none())?;
        Some(format!(
            "{name}: its value has {unknown:?}, which is not an argument"
        ))
    }

    /// The index of an argument, by name.
    #[must_use]
    pub fn argument_index(&self, name: &str) -> Option<usize> {
        self.arguments
            .iter()
            .position(|argument| argument.name == name)
    }

    /// Renames arguments with duplicate names to `argN` (with underscores if that name is taken, too), and removes lengths that are not
    /// arguments.
    pub(super) fn mend(&mut self) {
        let mut names = HashSet::new();
        for (place, argument) in self.arguments.iter_mut().enumerate() {
            if names.contains(&argument.name) {
                argument.name = Argument::unnamed(place).name;
            }
            while !names.insert(argument.name.clone()) {
                argument.name.push('_');
            }
        }
        for argument in &mut self.arguments {
            let unknown =
                |length: &Length| matches!(length, Length::Argument(name) if !names.contains(name));
            match &argument.kind {
                Some(ArgumentType::String(Some(length))) if unknown(length) => {
                    argument.kind = Some(ArgumentType::String(None));
                }
                Some(ArgumentType::Bytes(length)) if unknown(length) => {
                    argument.kind = Some(ArgumentType::Pointer);
                }
                _ => {}
            }
        }
    }
}

/// The name of a probe in notes: DTrace's hyphens are two underscores.
pub(super) fn note_name(name: &str) -> String {
    name.replace('-', "__")
}
