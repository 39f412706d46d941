//! Reading the feature sections into [`TraceInfo`].

use std::collections::HashMap;
use std::io;

use super::damage::Damage;
use super::head_sums::sum;
use super::source::Source;
use super::{Clock, TraceInfo, carrier};
use crate::perf::cursor::Cursor;
use crate::perf::feature::{
    Feature, build_ids, take_event_desc, take_pmus, take_string, take_strings,
};
use crate::perf::header::Section;
use crate::perf::{Attr, EventAttr, TracingData};

/// Longest section that is read.
const MAX_SECTION: u64 = 64 << 20;

/// The feature table: the sections of the features whose bits are set, in the order of the bits.
#[derive(Debug, Default)]
pub(crate) struct FeatureTable {
    sections: Vec<(Feature, Section)>,
}

impl FeatureTable {
    /// Bytes of the table for the bits of a header.
    pub(crate) fn len(bits: &[u64; 4]) -> usize {
        let count: u32 = bits.iter().map(|word| word.count_ones()).sum();
        Section::LEN * count as usize
    }

    /// The table at a file offset. `None` if it is cut or a section lies outside the file.
    ///
    /// # Errors
    /// The system call's.
    pub(crate) fn read(source: &Source, at: u64, bits: &[u64; 4]) -> io::Result<Option<Self>> {
        let bytes = source.bytes(at, Self::len(bits))?;
        let mut cursor = Cursor::new(&bytes);
        let set = (0..256).filter(|bit| bits[bit / 64] >> (bit % 64) & 1 != 0);
        let sections: Option<Vec<_>> = set
            .map(|bit| {
                let section = Section::parse(&mut cursor)?;
                let inside = section.offset.checked_add(section.size)? <= source.len();
                inside.then_some((Feature(bit as u32), section))
            })
            .collect();
        Ok(sections.map(|sections| Self { sections }))
    }
}

/// What the features said.
#[derive(Debug, Default)]
pub(crate) struct Features {
    /// Everything that has a place there.
    pub(crate) info: TraceInfo,
    /// Where the formats of tracepoints are.
    pub(crate) tracing_data: Option<Section>,
    /// First and last time of a sample, ns.
    pub(crate) sample_time: Option<(u64, u64)>,
    /// `EVENT_DESC`.
    described: Vec<EventAttr>,
    resolution_ns: Option<u64>,
    /// What was wrong; none of it costs records.
    pub(crate) damage: Vec<Damage>,
}

impl Features {
    /// Reads all sections of a table; those are left out whose checksum is not the one in `sums`, in the order of the table. There
    /// may be none, and 0 is not checked.
    ///
    /// # Errors
    /// The system call's.
    pub(crate) fn read(
        &mut self,
        source: &Source,
        table: &FeatureTable,
        sums: &[u32],
    ) -> io::Result<()> {
        let mut sums = sums.iter();
        for &(feature, section) in &table.sections {
            let expected = sums.next().copied().filter(|expected| *expected != 0);
            let is_damaged = |body: &[u8]| expected.is_some_and(|expected| sum(body) != expected);
            if feature == Feature::TRACING_DATA {
                let len = section.size.min(MAX_SECTION) as usize;
                if expected.is_some() && is_damaged(&source.bytes(section.offset, len)?) {
                    self.leave_out(feature, section.offset);
                } else {
                    self.tracing_data = Some(section);
                }
            } else if section.size > MAX_SECTION {
                let what = format!(
                    "feature {} has {} bytes, more than {MAX_SECTION}: not read",
                    feature.0, section.size
                );
                self.damage.push(Damage::harmless(section.offset, what));
            } else {
                let body = source.bytes(section.offset, section.size as usize)?;
                if is_damaged(&body) {
                    self.leave_out(feature, section.offset);
                } else {
                    self.take(feature, section.offset, &body);
                }
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, feature: Feature, offset: u64) {
        let instead = match feature {
            Feature::EVENT_DESC => "; names of probes are taken from their definitions",
            Feature::VERSION => "; the probe definitions are taken from the data",
            _ => "",
        };
        let what = format!(
            "feature {} is damaged (its checksum does not fit): left out{instead}",
            feature.0
        );
        self.damage.push(Damage::harmless(offset, what));
    }

    /// Whether `EVENT_DESC` was read.
    pub(crate) const fn describes_events(&self) -> bool {
        !self.described.is_empty()
    }

    /// Reads the formats of tracepoints, which stand elsewhere in files than in pipes.
    ///
    /// # Errors
    /// The system call's.
    pub(crate) fn read_tracepoints(&mut self, source: &Source) -> io::Result<()> {
        let Some(section) = self.tracing_data else {
            return Ok(());
        };
        let len = section.size.min(MAX_SECTION) as usize;
        let found = TracingData::parse(&source.bytes(section.offset, len)?);
        self.take_tracepoints(section.offset, found);
        Ok(())
    }

    /// Takes the formats of tracepoints that stand at an offset.
    pub(crate) fn take_tracepoints(&mut self, offset: u64, found: TracingData) {
        if let Some((at, expected)) = found.cut {
            let what = format!(
                "the formats of tracepoints are cut or malformed: expected {expected}; arguments of {} tracepoints are known",
                found.formats.len()
            );
            let offset = offset.saturating_add(at as u64);
            self.damage.push(Damage::harmless(offset, what));
        }
        self.info.tracepoints = found.formats;
    }

    /// Takes one section. Unknown features are left out.
    pub(crate) fn take(&mut self, feature: Feature, offset: u64, body: &[u8]) {
        if self.parse(feature, offset, body).is_none() {
            let what = format!("feature {} is cut or malformed: left out", feature.0);
            self.damage.push(Damage::harmless(offset, what));
        }
    }

    fn parse(&mut self, feature: Feature, offset: u64, body: &[u8]) -> Option<()> {
        let mut cursor = Cursor::new(body);
        let info = &mut self.info;
        match feature {
            Feature::BUILD_ID => info.build_ids = build_ids(body),
            Feature::HOSTNAME => info.hostname = take_string(&mut cursor)?,
            Feature::OSRELEASE => info.os_release = take_string(&mut cursor)?,
            Feature::VERSION => {
                info.version = take_string(&mut cursor)?;
                self.take_definitions(offset, cursor.rest());
            }
            Feature::ARCH => info.machine = take_string(&mut cursor)?,
            Feature::NRCPUS => {
                info.cpus_available = cursor.u32()?;
                info.cpus_online = cursor.u32()?;
            }
            Feature::CPUDESC => info.cpu_description = take_string(&mut cursor)?,
            Feature::TOTAL_MEM => info.total_memory_kb = cursor.u64()?,
            Feature::CMDLINE => info.command = take_strings(&mut cursor)?,
            // A pipe may bring several.
            Feature::EVENT_DESC => self.described.extend(take_event_desc(&mut cursor)?),
            Feature::PMU_MAPPINGS => info.pmus = take_pmus(&mut cursor)?,
            Feature::SAMPLE_TIME => {
                let time = (cursor.u64()?, cursor.u64()?);
                self.sample_time = (time.1 != 0 && time.0 <= time.1).then_some(time);
            }
            Feature::CLOCKID => self.resolution_ns = Some(cursor.u64()?),
            Feature::CLOCK_DATA => {
                cursor.u32()?;
                info.clock = Some(Clock {
                    id: cursor.u32()?,
                    resolution_ns: 0,
                    wall_ns: cursor.u64()?,
                    clock_ns: cursor.u64()?,
                });
            }
            _ => {}
        }
        Some(())
    }

    /// Takes the definitions' blob, unless there are definitions already.
    pub(crate) fn take_definitions(&mut self, offset: u64, blob: &[u8]) {
        if self.info.definitions.is_some() || !carrier::is_blob(blob) {
            return;
        }
        match carrier::decode(blob) {
            Ok(definitions) => self.info.definitions = Some(definitions),
            Err(what) => self.damage.push(Damage::harmless(offset, what)),
        }
    }

    /// Puts together what several places say: the attrs and their names, and the clock.
    pub(crate) fn finish(&mut self, attrs: Vec<(Attr, Vec<u64>)>) {
        let described = std::mem::take(&mut self.described);
        self.info.events = if attrs.is_empty() {
            described
        } else {
            name_events(attrs, &described)
        };
        self.name_by_definitions();
        let resolution_ns = self.resolution_ns.unwrap_or_default();
        let clock_attr = self.info.events.iter().map(|event| &event.attr);
        let clockid = clock_attr
            .filter(|attr| attr.flags & Attr::USE_CLOCKID != 0)
            .map(|attr| attr.clockid as u32)
            .next();
        match (&mut self.info.clock, clockid) {
            (Some(clock), _) => clock.resolution_ns = resolution_ns,
            (none, Some(id)) => {
                *none = Some(Clock {
                    id,
                    resolution_ns,
                    wall_ns: 0,
                    clock_ns: 0,
                });
            }
            (None, None) => {}
        }
    }
}

impl Features {
    /// Gives events without a name the one that the definition of their ids has.
    fn name_by_definitions(&mut self) {
        let Some(definitions) = &self.info.definitions else {
            return;
        };
        if self.info.events.iter().all(|event| !event.name.is_empty()) {
            return;
        }
        let by_id = definitions.by_id();
        for event in &mut self.info.events {
            let probe = event.ids.iter().find_map(|id| by_id.get(id));
            if let Some(probe) = probe.and_then(|&probe| definitions.probes.get(probe))
                && event.name.is_empty()
            {
                event.name.clone_from(&probe.event);
            }
        }
    }
}

/// Names stand only in `EVENT_DESC`, which names ids. An attr without ids takes the name at its own place.
fn name_events(attrs: Vec<(Attr, Vec<u64>)>, described: &[EventAttr]) -> Vec<EventAttr> {
    let by_id: HashMap<u64, &str> = described
        .iter()
        .flat_map(|event| event.ids.iter().map(|&id| (id, event.name.as_str())))
        .collect();
    let same_count = attrs.len() == described.len();
    attrs
        .into_iter()
        .enumerate()
        .map(|(place, (attr, ids))| {
            let by_place = || described.get(place).filter(|_| same_count);
            let name = ids
                .first()
                .and_then(|id| by_id.get(id).copied())
                .or_else(|| by_place().map(|event| event.name.as_str()));
            EventAttr {
                attr,
                name: name.unwrap_or_default().to_owned(),
                ids,
            }
        })
        .collect()
}
