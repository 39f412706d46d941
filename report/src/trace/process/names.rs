//! Names of threads, and paths of control groups, each kept once.

use foldhash::HashMap;
use usdtrec_format::escape::escape_bytes;

/// The name of a thread or of a control group, by its number in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub(crate) u32);

/// The name of a thread, or the path of a control group.
#[derive(Clone, Debug)]
pub struct EscapedName {
    /// Escaped for a terminal.
    pub text: Box<str>,
    /// As the kernel has it, where that is UTF-8 and not the same.
    unescaped: Option<Box<str>>,
}

impl EscapedName {
    /// The name as the kernel has it; escaped if that is not UTF-8.
    #[must_use]
    pub fn unescaped(&self) -> &str {
        self.unescaped.as_deref().unwrap_or(&self.text)
    }
}

/// Different names.
#[derive(Debug, Default)]
pub(crate) struct Names {
    names: Vec<EscapedName>,
    ids: HashMap<Box<[u8]>, NameId>,
}

impl Names {
    pub(crate) fn intern(&mut self, bytes: &[u8]) -> NameId {
        if let Some(&id) = self.ids.get(bytes) {
            return id;
        }
        let id = NameId(self.names.len() as u32);
        let text = escape_bytes(bytes);
        let unescaped = std::str::from_utf8(bytes).ok().filter(|name| *name != text);
        self.names.push(EscapedName {
            unescaped: unescaped.map(Into::into),
            text: text.into(),
        });
        self.ids.insert(bytes.into(), id);
        id
    }

    /// Keeps these names alone, and numbers them anew.
    pub(crate) fn keep<'a>(&mut self, used: impl Iterator<Item = &'a mut NameId>) {
        let mut old = std::mem::take(self);
        let mut bytes: HashMap<NameId, Box<[u8]>> =
            old.ids.drain().map(|(bytes, id)| (id, bytes)).collect();
        let mut numbers: HashMap<NameId, NameId> = HashMap::default();
        for id in used {
            if let (Some(bytes), Some(name)) = (bytes.remove(id), old.names.get(id.0 as usize)) {
                let number = NameId(self.names.len() as u32);
                self.names.push(name.clone());
                self.ids.insert(bytes, number);
                numbers.insert(*id, number);
            }
            // Each is among those that were there.
            if let Some(number) = numbers.get(id) {
                *id = *number;
            }
        }
    }

    pub(crate) fn get(&self, id: NameId) -> Option<&EscapedName> {
        self.names.get(id.0 as usize)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (NameId, &EscapedName)> {
        (0..).map(NameId).zip(&self.names)
    }
}
