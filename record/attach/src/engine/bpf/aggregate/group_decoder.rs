//! Groups of the map as values.

use std::collections::HashMap;
use std::sync::Arc;

use usdtrec_decode::Decoder;
use usdtrec_format::Value;
use usdtrec_format::perf::Sample;

use super::super::contract::RAW;
use super::super::plan::Group;
use super::super::samples::compact::{self, Evidence};
use super::group_map::{GroupElement, GroupMaps};
use super::group_numbers::CountedGroup;
use super::grouping::EventNeeds;
use crate::aggregation::{
    AggregateKey, AggregateValue, Aggregation, Arguments, GroupedProbe, HitGroup, NoGroupName,
};
use crate::engine::numbers::u64_at;

/// Decodes the keys of groups: what is read as raw parts of samples is decoded as these are.
pub(in crate::engine::bpf) struct GroupDecoder<'a> {
    maps: &'a GroupMaps,
    keys: &'a [AggregateKey],
    events: HashMap<u16, EventDecoder<'a>>,
}

/// The decoder of an event.
struct EventDecoder<'a> {
    group: &'a Group,
    decoder: Decoder,
    values: Vec<Value>,
    /// Places of the arguments of keys.
    places: Vec<Option<usize>>,
    probe: Arc<GroupedProbe>,
}

impl<'a> GroupDecoder<'a> {
    /// A decoder of the keys of these events.
    pub(in crate::engine::bpf) fn new(
        maps: &'a GroupMaps,
        groups: impl Iterator<Item = &'a Group>,
    ) -> Self {
        let aggregation = &maps.grouping.aggregation;
        let events = groups.filter_map(|group| {
            let decoder = EventDecoder::new(aggregation, group)?;
            Some((group.layout.id, decoder))
        });
        Self {
            maps,
            keys: &aggregation.by,
            events: events.collect(),
        }
    }

    /// Decodes a group; `None` if it is of no known event.
    pub(in crate::engine::bpf) fn decode(
        &mut self,
        GroupElement { key, count, number }: GroupElement<'_>,
    ) -> Option<HitGroup> {
        let layout = self.maps.grouping.key;
        let raw = key.get(layout.raw as usize..)?;
        let event = u16::from_ne_bytes(*raw.first_chunk()?);
        let decoder = self.events.get_mut(&event)?;
        decoder.decode(raw)?;
        let word = |wanted| u64_at(key, layout.at(wanted)? as usize);
        let values = self.keys.iter().zip(&decoder.places);
        let values = values.map(|(wanted, place)| match wanted {
            AggregateKey::Stack => {
                let stack = word(wanted).zip(self.maps.stacks.as_ref());
                let stack = stack.and_then(|(number, stacks)| stacks.get(number));
                stack.map_or(AggregateValue::Absent, AggregateValue::Stack)
            }
            AggregateKey::Container | AggregateKey::Unit => {
                let id = word(wanted).unwrap_or(0);
                let paths = self.maps.paths.as_ref();
                let removed = || Err(NoGroupName::Removed);
                AggregateValue::Group(paths.map_or_else(removed, |paths| paths.name(id, wanted)))
            }
            AggregateKey::Argument(_) => {
                let value = place.and_then(|place| decoder.values.get(place));
                value.map_or(AggregateValue::Absent, |value| {
                    AggregateValue::Argument(value.clone())
                })
            }
            thread => {
                let value = layout.value(thread, key);
                value.unwrap_or(AggregateValue::Absent)
            }
        });
        let values = values.collect();
        let numbers = self.maps.numbers.as_ref().zip(number);
        let numbers = numbers.map(|(numbers, number)| {
            numbers.totals(CountedGroup { number, count }, &decoder.group.measured)
        });
        Some(HitGroup {
            values,
            numbers: numbers.unwrap_or_default(),
            probe: Arc::clone(&decoder.probe),
            count,
        })
    }
}

impl<'a> EventDecoder<'a> {
    fn new(aggregation: &Aggregation, group: &'a Group) -> Option<Self> {
        let probe = &group.probe;
        let site = probe.sites.first()?;
        let decoder = Decoder::from_raw(&site.site.args, probe.arch, &group.layout);
        let decoder = decoder.typed(&probe.arguments);
        let places = aggregation.places(Arguments::from_probe(probe));
        let measured = aggregation.measured_places(Arguments::from_probe(probe));
        let argument = |place: &Option<usize>| probe.arguments.get((*place)?).cloned();
        Some(Self {
            values: decoder.values(),
            probe: Arc::new(GroupedProbe {
                event: match &group.role {
                    Some(role) => role.name.clone(),
                    None => probe.event(),
                },
                is_span: group.role.is_some(),
                arguments: places.iter().map(argument).collect(),
                measured: measured.iter().map(argument).collect(),
            }),
            places,
            decoder,
            group,
        })
    }

    /// Decodes the values of a raw part with the room of its strings.
    fn decode(&mut self, raw: &[u8]) -> Option<()> {
        let bytes = self.group.whole_bytes();
        let mut record = vec![0; RAW];
        record.extend_from_slice(raw.get(..bytes).unwrap_or(raw));
        // A key without arguments ends before them.
        record.resize(RAW + bytes, 0);
        let mut sample = Vec::new();
        if bytes > usize::from(self.group.layout.size) {
            let evidence = Evidence {
                histories: &mut [],
                news: &mut Vec::new(),
                lacks_strings: &mut false,
            };
            let shape = self.group.shape(0);
            compact::compact(&record, shape, evidence, &mut sample).then_some(())?;
        } else {
            sample = record;
        }
        let sample = Sample {
            raw: sample.get(RAW..)?,
            ..Sample::default()
        };
        self.decoder.decode(&sample, &mut self.values);
        Some(())
    }
}

impl<'a> EventNeeds<'a> {
    /// What these events need.
    pub(in crate::engine::bpf) fn from_events(events: &'a [Group]) -> Self {
        let raw = |event: &Group| event.whole_bytes().next_multiple_of(8);
        let measured = events.iter().map(|event| event.measured.as_slice());
        Self {
            longest_raw: events.iter().map(raw).max(),
            measured: measured.collect(),
        }
    }
}
