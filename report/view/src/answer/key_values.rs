//! The values of the keys of a group.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use usdtrec_analysis::stats::keys::key::Key;
use usdtrec_analysis::stats::keys::value::KeyValue;

use crate::cells::{Cell, cells};

/// The values of the keys of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct KeyValues {
    /// By the name of the key: a number, a string, `null` where there is no value, or of `stack` a list of frames, the innermost first.
    #[serde(flatten)]
    pub values: Map<String, Value>,
    /// The readable names of those that are mangled names of C++ or Rust, as a schema says.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub demangled: BTreeMap<String, String>,
    /// Why the stack is cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack_cut: Option<String>,
}

impl KeyValues {
    /// The values of keys.
    pub(crate) fn new(keys: &[Key], values: &[KeyValue]) -> Self {
        let cells = cells(keys, values, false);
        Self::of_cells(keys.iter().map(Key::name), cells)
    }

    /// The values of keys with these names.
    pub(crate) fn of_cells<'n>(names: impl Iterator<Item = &'n str>, cells: Vec<Cell>) -> Self {
        let mut all = Self::default();
        for (name, cell) in names.zip(cells) {
            all.values.insert(name.to_owned(), cell.json());
            if cell.is_demangled {
                all.demangled.insert(name.to_owned(), cell.text);
            }
            if cell.cut.is_some() {
                all.stack_cut = cell.cut;
            }
        }
        all
    }

    /// No values: those of groups that are not shown.
    pub(crate) fn none<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        Self {
            values: names.map(|name| (name.to_owned(), Value::Null)).collect(),
            ..Self::default()
        }
    }
}
