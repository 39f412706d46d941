//! What hits of a span have in common.

use usdtrec_attach::select::probe::PlannedProbe;
use usdtrec_format::schema::Argument;
use usdtrec_format::spans::{NamedPair, SpanSides, argument_place, shared_arguments};
use usdtrec_format::{Missing, Value};

/// The value of an argument, for comparing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Mark {
    Number(u64),
    String(Box<[u8]>),
    /// Agrees with any.
    Unknown,
}

impl Mark {
    pub(super) fn of_value(value: &Value, numbers: bool) -> Self {
        match value {
            Value::String(string) if !string.cut => Self::String(string.bytes.clone().into()),
            Value::Unsigned(number) if numbers => Self::Number(*number),
            Value::Signed(number) if numbers => Self::Number(number.cast_unsigned()),
            _ => Self::Unknown,
        }
    }

    pub(super) fn agrees(&self, other: &Self) -> bool {
        self == other || matches!(self, Self::Unknown) || matches!(other, Self::Unknown)
    }
}

/// Where the hits of an event have what is compared.
#[derive(Clone, Debug, Default)]
pub(super) struct MarkPlaces {
    /// The argument that is the key, with the process; `None` for the thread.
    pub(super) key: Option<usize>,
    /// The arguments that must agree, and whether their numbers must.
    pub(super) agreed: Vec<(usize, bool)>,
}

/// What a pair of events is matched by.
#[derive(Clone, Debug)]
pub(super) struct PairMarks {
    /// Of the events of the pair: its begins, then its ends.
    pub(super) places: Vec<MarkPlaces>,
    /// Whether spans need not nest.
    pub(super) crosses: bool,
}

impl PairMarks {
    /// Those of a pair of probes, as readers of traces match them.
    pub(super) fn of_pair(pair: &NamedPair, probes: &[PlannedProbe]) -> Self {
        let of = |events: &[usize]| -> Vec<&PlannedProbe> {
            events.iter().filter_map(|at| probes.get(*at)).collect()
        };
        let (starts, dones) = (of(&pair.starts), of(&pair.dones));
        let names = |probes: &[&PlannedProbe]| -> Vec<String> {
            probes.iter().map(|probe| probe.event()).collect()
        };
        let (start_names, done_names) = (names(&starts), names(&dones));
        let sides = SpanSides {
            starts: &start_names.iter().map(String::as_str).collect::<Vec<_>>(),
            dones: &done_names.iter().map(String::as_str).collect::<Vec<_>>(),
        };
        let all: Vec<&PlannedProbe> = starts.into_iter().chain(dones).collect();
        let shown: Vec<Vec<Argument>> = all.iter().map(|probe| shown_arguments(probe)).collect();
        let lists: Vec<&[Argument]> = shown.iter().map(Vec::as_slice).collect();
        let key = pair.key.filter(|key| {
            let mut lists = lists.iter();
            lists.all(|list| argument_place(list, key).is_some())
        });
        let shared = shared_arguments(&lists).into_iter();
        let agreed: Vec<(&str, bool)> = shared
            .filter(|shared| key.is_none() && shared.is_expected_to_agree())
            .map(|shared| (&*shared.argument.name, shared.has_identifying_numbers()))
            .collect();
        let places = all.iter().zip(&lists).map(|(probe, list)| MarkPlaces {
            key: key.and_then(|key| own_place(probe, list, key)),
            agreed: agreed
                .iter()
                .filter_map(|(name, numbers)| Some((own_place(probe, list, name)?, *numbers)))
                .collect(),
        });
        Self {
            places: places.collect(),
            crosses: sides.cross(),
        }
    }
}

/// The arguments of a probe as readers show them.
fn shown_arguments(probe: &PlannedProbe) -> Vec<Argument> {
    let own = &probe.arguments;
    match &probe.shown {
        Some(shown) => shown.iter().map(|shown| shown.argument_from(own)).collect(),
        None => own.clone(),
    }
}

/// The place of an argument among those that are decoded.
fn own_place(probe: &PlannedProbe, shown: &[Argument], name: &str) -> Option<usize> {
    let at = argument_place(shown, name)?;
    match &probe.shown {
        Some(list) => Some(list.get(at)?.argument),
        None => Some(at),
    }
}

impl MarkPlaces {
    /// Whether arguments are needed at all.
    pub(super) const fn is_empty(&self) -> bool {
        self.key.is_none() && self.agreed.is_empty()
    }

    /// The value of the key; `None` if it is the thread, or its value is missing.
    pub(super) fn key_value(&self, values: &[Value]) -> Option<Mark> {
        let mark = Mark::of_value(values.get(self.key?)?, true);
        (mark != Mark::Unknown).then_some(mark)
    }

    /// The values that must agree.
    pub(super) fn agreed_values(&self, values: &[Value]) -> Vec<Mark> {
        const NONE: Value = Value::Missing(Missing::Truncated);
        let agreed = self.agreed.iter();
        agreed
            .map(|(at, numbers)| Mark::of_value(values.get(*at).unwrap_or(&NONE), *numbers))
            .collect()
    }
}
