//! Groups of spans that are the same in two recordings.

use std::cmp::Ordering;
use std::sync::Arc;

use crate::stats::keys::key::Key;
use crate::stats::keys::value::{KeyOrder, KeyValue};

/// What a group of spans is known by: the values of its keys. Files are the same if they have the same name, whatever directory they are in.
#[derive(Clone, Debug)]
pub struct GroupKey {
    /// The keys.
    pub keys: Arc<[Key]>,
    /// The value of each key.
    pub values: Vec<KeyValue>,
    identity: Vec<Identity>,
}

/// What makes a value the same one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    value: KeyOrder<'static>,
    /// What kind of value it is: a string that is cut is no whole one.
    kind: u8,
    /// Of a process.
    comm: Option<String>,
}

impl Identity {
    fn new(key: &Key, value: &KeyValue) -> Self {
        Self {
            value: value.order(key.form()).into_owned(),
            kind: value.rest().0,
            comm: match value {
                KeyValue::Process { comm, .. } => Some(comm.clone()),
                _ => None,
            },
        }
    }
}

impl GroupKey {
    pub(crate) fn new(keys: &Arc<[Key]>, values: Vec<KeyValue>) -> Self {
        let both = keys.iter().zip(&values);
        let identity = both.map(|(key, value)| Identity::new(key, value));
        Self {
            identity: identity.collect(),
            keys: Arc::clone(keys),
            values,
        }
    }
}

impl PartialEq for GroupKey {
    fn eq(&self, other: &Self) -> bool {
        self.identity == other.identity
    }
}

impl Eq for GroupKey {}

impl PartialOrd for GroupKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for GroupKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.identity.cmp(&other.identity)
    }
}
