//! The keys of a group, as groups are distinguished and ordered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use usdtrec_format::perf::Sample;
use usdtrec_format::schema::Argument;
use usdtrec_format::{StringAt, Value};
use usdtrec_record::{AggregateValue, CountedStack, HitGroup, HitTotals, ProbeHits, SpanHits};
use usdtrec_report::stat::{StackAddresses, StackName, StackNamer, StatKey, shape};

use super::by::StatBy;
use crate::mutex::locked;

/// The probe and keys of a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupKey {
    pub(super) event: String,
    /// Whether it is a span.
    pub(super) is_span: bool,
    /// The value of each key; `None` for hits that are in no group.
    values: Option<Vec<KeyOrder>>,
}

/// A value: numbers come in their order, before strings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum KeyOrder {
    /// A process, thread or user.
    Number(u32),
    /// Less than 0.
    Signed(i64),
    Unsigned(u64),
    /// A name of a thread.
    Comm(Vec<u8>),
    /// A container or unit, or what is shown in its place.
    Group(Result<String, &'static str>),
    String {
        bytes: Vec<u8>,
        cut: bool,
    },
    Stack(Arc<StackName>),
    /// Any other value.
    Other(OtherValue),
    Absent,
}

/// A value that has no order of its own: that of its text.
#[derive(Clone, Debug)]
struct OtherValue {
    text: String,
    value: Value,
}

impl PartialEq for OtherValue {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for OtherValue {}

impl PartialOrd for OtherValue {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for OtherValue {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}

impl GroupKey {
    /// The hits of a probe, which are in no group if there are keys.
    pub(super) fn for_probe(probe: &ProbeHits, has_keys: bool) -> Self {
        Self {
            event: probe.event.clone(),
            is_span: false,
            values: (!has_keys).then(Vec::new),
        }
    }

    /// The spans of a name, of which those in no group are counted if there are keys.
    pub(super) fn for_span(span: &SpanHits, has_keys: bool) -> Self {
        Self {
            event: span.name.clone(),
            is_span: true,
            values: (!has_keys).then(Vec::new),
        }
    }

    /// The keys of a group.
    pub(super) fn for_group(group: &HitGroup, keys: &[StatBy], stacks: &KnownStacks) -> Self {
        let values = group.values.iter().zip(keys);
        let values = values.map(|(value, key)| match value {
            AggregateValue::Stack(stack) => KeyOrder::Stack(stacks.name(stack)),
            value => KeyOrder::new(value, key),
        });
        Self {
            event: group.probe.event.clone(),
            is_span: group.probe.is_span,
            values: Some(values.collect()),
        }
    }

    /// The keys as they are shown. `arguments` has what is known of the argument of each key.
    pub(super) fn shown(&self, arguments: &[Option<Argument>]) -> Option<Vec<StatKey>> {
        let values = self.values.as_ref()?.iter().enumerate();
        let shown = values.map(|(place, value)| {
            let argument = arguments.get(place).cloned().flatten();
            value.shown(argument)
        });
        Some(shown.collect())
    }
}

impl KeyOrder {
    fn new(value: &AggregateValue, key: &StatBy) -> Self {
        match value {
            AggregateValue::Comm(name) => Self::Comm(name.clone()),
            AggregateValue::Number(number) => Self::Number(*number),
            AggregateValue::Group(name) => {
                Self::Group(name.clone().map_err(|reason| key.without_name(reason)))
            }
            AggregateValue::Absent | AggregateValue::Stack(_) => Self::Absent,
            AggregateValue::Argument(Value::Unsigned(number)) => Self::Unsigned(*number),
            // A site may have it without a sign.
            AggregateValue::Argument(Value::Signed(number)) => match u64::try_from(*number) {
                Ok(number) => Self::Unsigned(number),
                Err(_) => Self::Signed(*number),
            },
            AggregateValue::Argument(Value::String(string)) => Self::String {
                bytes: match key.is_shape {
                    true => shape(&string.bytes),
                    false => string.bytes.clone(),
                },
                cut: string.cut,
            },
            AggregateValue::Argument(value) => Self::Other(OtherValue {
                text: format!("{value:?}"),
                value: value.clone(),
            }),
        }
    }

    fn shown(&self, argument: Option<Argument>) -> StatKey {
        let value = match self {
            Self::Comm(name) => return StatKey::Comm(name.clone()),
            Self::Number(number) => return StatKey::Number(*number),
            Self::Absent => return StatKey::Absent,
            Self::Stack(name) => return StatKey::Stack(Arc::clone(name)),
            Self::Group(Ok(name)) => return StatKey::Name(name.clone()),
            Self::Group(Err(reason)) => return StatKey::Unknown(reason),
            Self::Unsigned(number) => Value::Unsigned(*number),
            Self::Signed(number) => Value::Signed(*number),
            Self::String { bytes, cut } => Value::String(StringAt {
                cut: *cut,
                ..StringAt::of_bytes(bytes.clone())
            }),
            Self::Other(other) => other.value.clone(),
        };
        StatKey::Argument { value, argument }
    }
}

/// The names so far, by the numbers of the stacks. Clones have the same.
#[derive(Clone, Default)]
pub(in crate::cmd) struct KnownStacks {
    names: Arc<Mutex<HashMap<u64, Arc<StackName>>>>,
}

impl KnownStacks {
    /// Finds the names of the stacks of groups that have none yet.
    pub(in crate::cmd) fn learn(&self, counted: &HitTotals, names: &mut StackNamer<'_>) {
        let mut known = locked(&self.names);
        for value in counted.groups.iter().flat_map(|group| &group.values) {
            if let AggregateValue::Stack(stack) = value {
                known
                    .entry(stack.number)
                    .or_insert_with(|| Arc::new(names.name(addresses(stack))));
            }
        }
    }

    /// The names of a stack.
    pub(super) fn name(&self, stack: &CountedStack) -> Arc<StackName> {
        let known = locked(&self.names).get(&stack.number).cloned();
        known.unwrap_or_else(|| {
            let sample = Sample {
                callchain: &stack.callchain,
                ..Sample::default()
            };
            Arc::new(StackName::unnamed(sample.callers()))
        })
    }
}

fn addresses(stack: &CountedStack) -> StackAddresses<'_> {
    StackAddresses {
        id: stack.id,
        pid: stack.pid,
        time: stack.time,
        ip: stack.ip,
        callchain: &stack.callchain,
    }
}
