//! What is known of a probe.

use std::collections::HashSet;

use super::{Argument, ArgumentType, Length};

/// What is known of a probe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeSchema {
    /// Provider, as notes have it.
    pub provider: String,
    /// Name, as notes have it (`query__start`).
    pub name: String,
    /// When it fires, in a line.
    pub description: Option<String>,
    /// What a program needs so that it fires at all (a switch, an environment variable), in a line.
    pub needs: Option<String>,
    /// Its arguments, the first first.
    pub arguments: Vec<Argument>,
    /// Whether more arguments may follow, of which nothing is known.
    pub more: bool,
}

impl ProbeSchema {
    /// Whether it can be that of a probe with so many arguments.
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

    /// What is wrong with it: names twice, lengths that no argument gives.
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
            if self.place(name).is_none() {
                faults.push(format!(
                    "{}: its length is said to be in {name:?}, which is no argument",
                    argument.name
                ));
            }
        }
        faults
    }

    /// The place of an argument, by its name.
    #[must_use]
    pub fn place(&self, name: &str) -> Option<usize> {
        self.arguments
            .iter()
            .position(|argument| argument.name == name)
    }

    /// Gives arguments whose name another one has already the name of their place (with underscores if that is taken too), and takes lengths away that no
    /// argument gives.
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
                Some(ArgumentType::Text(Some(length))) if unknown(length) => {
                    argument.kind = Some(ArgumentType::Text(None));
                }
                Some(ArgumentType::Bytes(length)) if unknown(length) => {
                    argument.kind = Some(ArgumentType::Pointer);
                }
                _ => {}
            }
        }
    }
}
