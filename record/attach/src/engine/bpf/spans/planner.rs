//! Which spans programs match, and what the sites of a probe are to them.

use usdtrec_format::schema::{Argument, ArgumentType};
use usdtrec_format::spans::{
    LiveAgreement, NamedPair, SpanNameError, SpanSides, asked_pairs, begins_call, live_agreement,
    place_of_key,
};
use usdtrec_format::{RawArgument, RawField};
use usdtrec_kernel::bpf::features::trials::fetches_and_exchanges;

use super::super::aggregate::grouping::Grouping;
use super::super::aggregate::number_layout::Measured;
use super::super::contract::rooms;
use super::super::plan::{Group, SitePlan};
use super::entry::SpanMemory;
use super::role::{KeyValue, MAX_MARKS, MarkField, SpanRole, SpanTask};
use crate::aggregation::{Aggregation, Arguments, SpanNumber};
use crate::engine::options::EngineOptions;
use crate::engine::options::SlowSpans;
use crate::error::RecordError;
use crate::error::{SpanFault, UsageError};
use crate::plan::capture::Capture;

/// Size of records if no probe is known when the recording begins, bytes.
const USUAL_RECORD: u32 = 1024;
/// Maximum size of a record, bytes: offsets of stores have 16 bits.
const MAX_RECORD: usize = 8192;

/// The parts of a key, by their names.
#[derive(Clone, Copy)]
struct KeyParts<'a> {
    task: SpanTask,
    value: Option<&'a str>,
    /// Whether no other key is given, so that arguments must agree.
    is_usual: bool,
}

/// Says of each event what it is to spans that programs can match, and leaves out the events that are of no span. `memory` is that of the recording, if
/// it has begun.
///
/// # Errors
/// [`RecordError::Usage`] if there is no such span, or programs cannot match it, and that is required.
pub(super) fn with_roles(
    groups: Vec<Group>,
    options: &EngineOptions,
    memory: Option<SpanMemory>,
) -> Result<Vec<Group>, RecordError> {
    let Some(spans) = &options.slow_spans else {
        return Ok(groups);
    };
    // A recording may begin without probes.
    if groups.is_empty() {
        return Ok(groups);
    }
    let events: Vec<String> = groups.iter().map(|group| group.probe.event()).collect();
    let names: Vec<&str> = events.iter().map(String::as_str).collect();
    // Other probes are counted beside spans if their arguments are measured.
    let counts_others = options
        .aggregation
        .as_ref()
        .is_some_and(Aggregation::measures_arguments);
    let pairs = match all_pairs(spans, &names) {
        Ok(pairs) => pairs,
        // Events of files that appear later are counted, whether they are of spans or not.
        Err(_) if counts_others && memory.is_some() => return Ok(groups),
        Err(error) if spans.is_required => {
            return Err(UsageError::Span(SpanFault::Name(error)).into());
        }
        // A reader may know more events.
        Err(_) => return Ok(groups),
    };
    let Used { groups, pairs } = match counts_others {
        true => Used { groups, pairs },
        false => Used::only(groups, pairs),
    };
    let events: Vec<String> = groups.iter().map(|group| group.probe.event()).collect();
    let names: Vec<&str> = events.iter().map(String::as_str).collect();
    let mut planner = RolePlanner {
        spans,
        options,
        names: &names,
        groups,
        memory,
        pairs: &pairs,
    };
    for pair in &pairs {
        match planner.assign(pair) {
            Err(fault) if spans.is_required => return Err(UsageError::Span(fault).into()),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(planner.groups)
}

/// Events that are of spans.
struct Used {
    groups: Vec<Group>,
    pairs: Vec<NamedPair>,
}

impl Used {
    /// Leaves out the events that are of no span. The others are numbered anew: their ids follow each other.
    fn only(groups: Vec<Group>, mut pairs: Vec<NamedPair>) -> Self {
        let used = |at: &usize| {
            let mut pairs = pairs.iter();
            pairs.any(|pair| pair.starts.contains(at) || pair.dones.contains(at))
        };
        let kept: Vec<usize> = (0..groups.len()).filter(used).collect();
        let ids: Vec<u16> = groups.iter().map(|group| group.layout.id).collect();
        let groups = groups.into_iter().enumerate();
        let groups = groups.filter(|(at, _)| kept.contains(at));
        let groups = groups.zip(ids).map(|((_, group), id)| group.with_id(id));
        for pair in &mut pairs {
            for at in pair.starts.iter_mut().chain(&mut pair.dones) {
                *at = kept.partition_point(|kept| kept < at);
            }
        }
        Self {
            groups: groups.collect(),
            pairs,
        }
    }
}

/// The pairs that are asked for.
pub(super) fn all_pairs(
    spans: &SlowSpans,
    names: &[&str],
) -> Result<Vec<NamedPair>, SpanNameError> {
    let mut pairs: Vec<NamedPair> = Vec::new();
    for text in &spans.spans {
        for pair in asked_pairs(text, names)? {
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
    }
    Ok(pairs)
}

struct RolePlanner<'a> {
    spans: &'a SlowSpans,
    options: &'a EngineOptions,
    names: &'a [&'a str],
    groups: Vec<Group>,
    memory: Option<SpanMemory>,
    pairs: &'a [NamedPair],
}

impl RolePlanner<'_> {
    /// Assigns their roles to the events of a pair, if programs can match it.
    fn assign(&mut self, pair: &NamedPair) -> Result<(), SpanFault> {
        let key = self.key(pair)?;
        if key.task != SpanTask::Thread && !fetches_and_exchanges() {
            return Err(SpanFault::Key(pair.name.clone()));
        }
        self.check(pair)?;
        let sides: Vec<usize> = pair.starts.iter().chain(&pair.dones).copied().collect();
        let groups = sides.iter().filter_map(|at| self.groups.get(*at));
        let shown = groups.map(|group| group.probe.shown_arguments());
        let shown: Vec<Vec<Argument>> = shown.collect();
        let lists: Vec<&[Argument]> = shown.iter().map(Vec::as_slice).collect();
        let LiveAgreement {
            arguments: agreed,
            must_agree,
        } = match key.is_usual {
            true => live_agreement(&lists, |name| self.can_watch(&sides, name)),
            false => LiveAgreement::default(),
        };
        if agreed.len() > MAX_MARKS as usize {
            return Err(SpanFault::ManyAgreed {
                span: pair.name.clone(),
                most: MAX_MARKS,
            });
        }
        let has_value = |at: &usize, name: &str| {
            let group = self.groups.get(*at);
            group.is_none_or(|group| key_value(group, name).is_some())
        };
        if let Some(name) = key.value
            && !sides.iter().all(|at| has_value(at, name))
        {
            return Err(SpanFault::Key(pair.name.clone()));
        }
        let is_call = |at: &usize| self.names.get(*at).is_some_and(|name| begins_call(name));
        let first = pair
            .starts
            .first()
            .and_then(|first| self.groups.get(*first));
        let number = first.map_or(0, |group| group.layout.id.into());
        let gives_up = self.options.aggregation.is_some() && !pair.starts.iter().any(is_call);
        let roles = sides.iter().map(|&at| {
            let group = self.groups.get(at)?;
            let fields = agreed.iter();
            let fields = fields.map(|(name, numbers)| mark_field(group, name, *numbers));
            let value = match key.value {
                Some(name) => Some(key_value(group, name)?),
                None => None,
            };
            let names = agreed.iter().map(|(name, _)| &**name).chain(key.value);
            let places = names.filter_map(|name| Some(placed(group, name)?.place));
            let role = SpanRole {
                name: pair.name.clone(),
                number,
                begins: pair.starts.contains(&at),
                task: key.task,
                value,
                agreed: fields.collect::<Option<_>>()?,
                must_agree,
                gives_up,
                others: self.other_fields(group),
                places: places.collect(),
            };
            self.has_room(group, &role).then_some(role)
        });
        let roles: Option<Vec<SpanRole>> = roles.collect();
        let Some(roles) = roles else {
            return Err(SpanFault::LongRecords(pair.name.clone()));
        };
        for (at, role) in sides.into_iter().zip(roles) {
            if let Some(group) = self.groups.get_mut(at) {
                if let Some(aggregation) = &self.options.aggregation {
                    measure_spans(aggregation, group, role.task);
                }
                group.role = Some(role);
            }
        }
        Ok(())
    }

    /// Whether records and elements of the map have room for what an event needs of a span.
    fn has_room(&self, group: &Group, role: &SpanRole) -> bool {
        let is_short = self.options.aggregation.is_some() || record_bytes(group) <= MAX_RECORD;
        is_short && (self.memory).is_none_or(|memory| self.holds(memory, group, role))
    }

    /// Whether all events have an argument as a number, and elements of the map have room for it.
    fn can_watch(&self, sides: &[usize], name: &str) -> bool {
        // What was planned later has no room for more than the first had.
        let has_room = self.memory.is_none_or(|memory| memory.marks > 0);
        has_room
            && sides.iter().all(|at| {
                let group = self.groups.get(*at);
                let field = group.and_then(|group| mark_field(group, name, true));
                matches!(field, Some(MarkField::Number { .. }))
            })
    }

    /// Where spans are aggregated: the fields of an event that are no keys of groups.
    fn other_fields(&self, group: &Group) -> Vec<RawField> {
        let Some(aggregation) = &self.options.aggregation else {
            return Vec::new();
        };
        let used = aggregation.needed_by_keys(Arguments::from_probe(&group.probe));
        let arguments = group.layout.arguments.iter().enumerate();
        let others = arguments.filter_map(|(place, argument)| match argument {
            RawArgument::Field(field) if !used.contains(&place) => Some(*field),
            _ => None,
        });
        others.collect()
    }

    /// Whether the records of an event have room; keys of groups are checked elsewhere.
    fn holds(&self, memory: SpanMemory, group: &Group, role: &SpanRole) -> bool {
        let room = match role.begins {
            true => memory.begin,
            false => memory.end,
        };
        let has_room = self.options.aggregation.is_some() || record_bytes(group) <= room as usize;
        has_room && role.agreed.len() <= memory.marks as usize
    }

    /// The parts of the key of a pair, if programs can find them.
    fn key<'p>(&'p self, pair: &'p NamedPair) -> Result<KeyParts<'p>, SpanFault> {
        let of = |events: &[usize]| -> Vec<&str> {
            let names = events.iter().filter_map(|at| self.names.get(*at).copied());
            names.collect()
        };
        let sides = SpanSides {
            starts: &of(&pair.starts),
            dones: &of(&pair.dones),
        };
        let parts = |task, value| KeyParts {
            task,
            value,
            is_usual: false,
        };
        let names: Vec<&str> = self.spans.key.iter().map(String::as_str).collect();
        Ok(match (&*names, pair.key) {
            ([], None) if !sides.cross() => KeyParts {
                is_usual: true,
                ..parts(SpanTask::Thread, None)
            },
            ([], Some(key)) if self.has_argument(pair, key) => parts(SpanTask::Process, Some(key)),
            (["tid"], _) => parts(SpanTask::Thread, None),
            (["pid"], _) => parts(SpanTask::Process, None),
            ([name], _) => parts(SpanTask::Any, Some(*name)),
            (["tid", name] | [name, "tid"], _) => parts(SpanTask::Thread, Some(*name)),
            (["pid", name] | [name, "pid"], _) => parts(SpanTask::Process, Some(*name)),
            _ => return Err(SpanFault::Key(pair.name.clone())),
        })
    }

    /// Whether all events of a pair have an argument.
    fn has_argument(&self, pair: &NamedPair, name: &str) -> bool {
        let mut events = pair.starts.iter().chain(&pair.dones);
        events.all(|at| {
            let group = self.groups.get(*at);
            group.is_some_and(|group| group.probe.own_place(name).is_some())
        })
    }

    /// Checks that programs can match a pair.
    fn check(&self, pair: &NamedPair) -> Result<(), SpanFault> {
        if self.options.graph.is_some() {
            return Err(SpanFault::Callers);
        }
        let mut sides = pair.starts.iter().chain(&pair.dones);
        let has_filter = |at: &usize| {
            let mut plans = self
                .groups
                .get(*at)
                .into_iter()
                .flat_map(|group| &group.plans);
            plans.any(|plan| plan.condition.is_some())
        };
        if self.options.aggregation.is_some() && sides.clone().any(has_filter) {
            return Err(SpanFault::Filter(pair.name.clone()));
        }
        let is_of_several = |at: &usize| {
            let all = self
                .pairs
                .iter()
                .flat_map(|pair| pair.starts.iter().chain(&pair.dones));
            all.filter(|other| *other == at).count() > 1
        };
        match sides.find(|at| is_of_several(at)).copied() {
            Some(at) => Err(SpanFault::SeveralSpans {
                event: self.names.get(at).copied().unwrap_or_default().to_owned(),
            }),
            None => Ok(()),
        }
    }
}

/// Of spans, their own numbers are measured, and no arguments.
fn measure_spans(aggregation: &Aggregation, group: &mut Group, task: SpanTask) {
    for (asked, measured) in aggregation.measured.iter().zip(&mut group.measured) {
        *measured = match asked.of_span {
            Some(SpanNumber::Duration) => Measured::Duration,
            Some(SpanNumber::Part(_)) if task == SpanTask::Thread => Measured::Part,
            Some(SpanNumber::Part(_)) => Measured::Unknown,
            None => Measured::Missing,
        };
    }
}

/// The place of an argument in the layout of an event, and its number as readers show it; `None` if it is no integer.
fn placed(group: &Group, name: &str) -> Option<PlacedArgument> {
    let shown = group.probe.shown_arguments();
    let at = place_of_key(&shown, name)?;
    let place = group.probe.own_place(name)?;
    let RawArgument::Field(field) = *group.layout.arguments.get(place)? else {
        return None;
    };
    let number = match &shown.get(at)?.kind {
        Some(ArgumentType::Integer { bytes, signed }) => Some((*bytes.min(&field.size), *signed)),
        Some(ArgumentType::Pointer) | None => Some((field.size, field.signed)),
        Some(_) => None,
    };
    Some(PlacedArgument {
        place,
        field,
        number,
    })
}

/// An argument in the layout of an event.
struct PlacedArgument {
    place: usize,
    field: RawField,
    /// Size of its numbers, bytes, and whether they have a sign, if it is an integer.
    number: Option<(u8, bool)>,
}

/// Where an event has an argument that must agree; `None` if its values are not in samples.
fn mark_field(group: &Group, name: &str, numbers: bool) -> Option<MarkField> {
    let PlacedArgument { field, number, .. } = placed(group, name)?;
    Some(match (field.string, number) {
        (Some(string), _) => MarkField::String(string),
        (None, Some((bytes, signed))) if numbers => MarkField::Number {
            field,
            bytes,
            signed,
        },
        (None, _) => MarkField::Unknown,
    })
}

/// Where an event has an argument whose value is part of the key; `None` if it is no integer, or not read in the same way at all sites.
fn key_value(group: &Group, name: &str) -> Option<KeyValue> {
    let PlacedArgument {
        place,
        field,
        number,
    } = placed(group, name)?;
    let (bytes, signed) = number.filter(|_| field.string.is_none())?;
    let is_read = |plan: &SitePlan| matches!(plan.captures.get(place), Some(Capture::Value(_)));
    group.plans.iter().all(is_read).then_some(KeyValue {
        place,
        bytes,
        signed,
    })
}

/// Room for the records of events that have roles, of spans of at least `least` ns. With `grouping`, it is for keys of groups.
pub(in crate::engine::bpf) fn memory_for(
    groups: &[Group],
    least: u64,
    grouping: Option<&Grouping>,
) -> SpanMemory {
    if let Some(grouping) = grouping {
        let roles = groups.iter().filter_map(|group| group.role.as_ref());
        let marks = roles.map(|role| role.agreed.len() as u32).max();
        let marks = marks.unwrap_or(if groups.is_empty() { MAX_MARKS } else { 0 });
        let slot = grouping.slot_bytes();
        return SpanMemory {
            marks,
            begin: slot,
            end: if marks > 0 { slot } else { 8 },
            least,
        };
    }
    if groups.is_empty() {
        return SpanMemory {
            marks: MAX_MARKS,
            begin: USUAL_RECORD,
            end: USUAL_RECORD,
            least,
        };
    }
    let roles = groups.iter();
    let roles = roles.filter_map(|group| Some((group, group.role.as_ref()?)));
    let mut memory = SpanMemory {
        marks: 0,
        begin: 8,
        end: 8,
        least,
    };
    for (group, role) in roles {
        let room = match role.begins {
            true => &mut memory.begin,
            false => &mut memory.end,
        };
        *room = (*room).max(record_bytes(group) as u32);
        memory.marks = memory.marks.max(role.agreed.len() as u32);
    }
    memory
}

/// Size of the records of an event, bytes, a multiple of 8.
fn record_bytes(group: &Group) -> usize {
    rooms(&group.layout).whole.record.next_multiple_of(8)
}
