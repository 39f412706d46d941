//! Names of threads, and paths of control groups, each kept once.

use foldhash::HashMap;
use usdtrec_format::escape::escape_bytes;

use crate::process::interner::{Interner, NumberedString};

/// The name of a thread or of a control group, by its number in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

/// The name of a thread, or the path of a control group.
#[derive(Clone, Copy, Debug)]
pub struct EscapedName<'n> {
    /// Escaped for a terminal.
    pub text: &'n str,
    unescaped: &'n str,
}

impl<'n> EscapedName<'n> {
    /// A name that needs no escapes.
    pub(crate) const fn plain(text: &'n str) -> Self {
        Self {
            text,
            unescaped: text,
        }
    }

    /// The part that is found in both forms.
    pub(crate) fn part(self, find: fn(&'n str) -> Option<&'n str>) -> Option<Self> {
        Some(Self {
            text: find(self.text)?,
            unescaped: find(self.unescaped)?,
        })
    }

    /// The name as the kernel has it; escaped if that is not UTF-8.
    #[must_use]
    pub const fn unescaped(self) -> &'n str {
        self.unescaped
    }
}

/// Different names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    names: Interner,
    /// Escaped ones of those that must be.
    escaped: HashMap<NameId, Box<str>>,
}

impl Names {
    pub(crate) fn intern(&mut self, bytes: &[u8]) -> NameId {
        let NumberedString { number, is_new } = self.names.intern(bytes);
        let id = NameId(number);
        if is_new {
            let text = escape_bytes(bytes);
            if text.as_bytes() != bytes {
                self.escaped.insert(id, text.into());
            }
        }
        id
    }

    /// Keeps these names alone, and numbers them anew.
    pub(crate) fn keep<'a>(&mut self, used: impl Iterator<Item = &'a mut NameId>) {
        let old = std::mem::take(self);
        for id in used {
            // Each is among those that were there.
            if let Some(bytes) = old.names.get(id.0) {
                *id = self.intern(bytes);
            }
        }
    }

    pub(crate) fn get(&self, id: NameId) -> Option<EscapedName<'_>> {
        let bytes = self.names.get(id.0)?;
        let unescaped = std::str::from_utf8(bytes).ok();
        let escaped = match self.escaped.is_empty() {
            true => None,
            false => self.escaped.get(&id).map(|text| &**text),
        };
        let text = escaped.or(unescaped)?;
        Some(EscapedName {
            text,
            unescaped: unescaped.unwrap_or(text),
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (NameId, EscapedName<'_>)> {
        let ids = 0..self.names.iter().count() as u32;
        ids.filter_map(|id| Some((NameId(id), self.get(NameId(id))?)))
    }
}
