//! Reads the feature sections into [`TraceInfo`].

use std::collections::HashMap;
use std::sync::Arc;

use super::damage::{Damage, DamageKind};
use super::file_head::AttrIds;
use super::head_sums::sum;
use super::limits::Limit;
use super::read_error::ReadError;
use super::shared_heads::SharedHeads;
use super::time_range::TimeRange;
use super::trace_files::TraceFiles;
use super::{Clock, TraceInfo, definitions_record};
use crate::definitions::Definitions;
use crate::perf::cursor::Cursor;
use crate::perf::feature::{
    Feature, build_ids, take_event_desc, take_pmus, take_string, take_strings,
};
use crate::perf::header::Section;
use crate::perf::{Attr, EventAttr, TracingData};

/// Maximum length of a section that is read, bytes: what is limited, and the headers that it is in.
const MAX_SECTION: u64 = Limit::Definitions.max() + (1 << 20);

/// The feature table: the sections of all features whose bits are set, in the order of the bits.
#[derive(Debug, Default)]
pub(crate) struct FeatureTable {
    sections: Vec<(Feature, Section)>,
}

impl FeatureTable {
    /// Size of the table in bytes, given the feature bits of the header.
    pub(crate) fn len(bits: &[u64; 4]) -> usize {
        let count: u32 = bits.iter().map(|word| word.count_ones()).sum();
        Section::LEN * count as usize
    }

    /// Reads the table at a file offset; `None` if it is cut or a section is outside the file.
    ///
    /// # Errors
    /// [`ReadError::Read`].
    pub(crate) fn read(
        source: &TraceFiles,
        at: u64,
        bits: &[u64; 4],
    ) -> Result<Option<Self>, ReadError> {
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

/// The contents of the feature sections.
#[derive(Debug, Default)]
pub(crate) struct Features {
    /// The features that [`TraceInfo`] has.
    pub(crate) info: TraceInfo,
    /// The section with the formats of tracepoints.
    pub(crate) tracing_data: Option<Section>,
    /// First and last time of a sample, ns.
    pub(crate) sample_time: Option<TimeRange>,
    /// `EVENT_DESC`.
    described: Vec<EventAttr>,
    resolution_ns: Option<u64>,
    /// Where the sections are in a file.
    pub(crate) sections: Vec<(Feature, Section)>,
    /// Damage found; it never costs records.
    pub(crate) damage: Vec<Damage>,
    /// Heads of files that are opened together with this one.
    heads: SharedHeads,
    /// The one of them with the same definitions.
    known: Option<Arc<TraceInfo>>,
    /// The blob of the definitions, if it was decoded.
    blob: Vec<u8>,
}

impl Features {
    /// The features of a file that is opened together with others.
    pub(crate) fn sharing(heads: SharedHeads) -> Self {
        Self {
            heads,
            ..Self::default()
        }
    }

    /// Reads all sections of a table. `sums` has their checksums in the order of the table; a section whose checksum does not match is
    /// ignored, and one without a checksum, or with the checksum 0, is not checked.
    ///
    /// # Errors
    /// [`ReadError::Read`].
    pub(crate) fn read(
        &mut self,
        source: &TraceFiles,
        table: &FeatureTable,
        sums: &[u32],
    ) -> Result<(), ReadError> {
        let mut sums = sums.iter();
        self.sections.clone_from(&table.sections);
        for &(feature, section) in &table.sections {
            let expected = sums.next().copied().filter(|expected| *expected != 0);
            let is_damaged = |body: &[u8]| expected.is_some_and(|expected| sum(body) != expected);
            if feature == Feature::TRACING_DATA {
                let len = section.size.min(MAX_SECTION) as usize;
                if expected.is_some() && is_damaged(&source.bytes(section.offset, len)?) {
                    self.ignore_damaged(feature, section.offset);
                } else {
                    self.tracing_data = Some(section);
                }
            } else if section.size > MAX_SECTION {
                let kind = DamageKind::FeatureSize {
                    feature: feature.0,
                    most: MAX_SECTION,
                    found: section.size,
                };
                self.damage.push(Damage::new(section.offset, kind));
            } else {
                let body = source.bytes(section.offset, section.size as usize)?;
                if is_damaged(&body) {
                    self.ignore_damaged(feature, section.offset);
                } else {
                    self.take(feature, section.offset, &body);
                }
            }
        }
        Ok(())
    }

    fn ignore_damaged(&mut self, feature: Feature, offset: u64) {
        let kind = DamageKind::FeatureSection { feature: feature.0 };
        self.damage.push(Damage::new(offset, kind));
    }

    /// Whether `EVENT_DESC` was read.
    pub(crate) const fn describes_events(&self) -> bool {
        !self.described.is_empty()
    }

    /// Reads the formats of tracepoints from the section [`tracing_data`](Self::tracing_data).
    ///
    /// # Errors
    /// [`ReadError::Read`].
    pub(crate) fn read_tracepoints(&mut self, source: &TraceFiles) -> Result<(), ReadError> {
        let Some(section) = self.tracing_data else {
            return Ok(());
        };
        let len = section.size.min(MAX_SECTION) as usize;
        let found = TracingData::parse(&source.bytes(section.offset, len)?);
        self.take_tracepoints(section.offset, found);
        Ok(())
    }

    /// Takes the parsed formats of tracepoints; `offset` is that of their section.
    pub(crate) fn take_tracepoints(&mut self, offset: u64, found: TracingData) {
        if let Some(cut) = found.cut {
            let kind = DamageKind::Tracepoints {
                expected: cut.expected,
                known: found.formats.len(),
            };
            let offset = offset.saturating_add(cut.at as u64);
            self.damage.push(Damage::new(offset, kind));
        }
        self.info.tracepoints = found.formats;
    }

    /// Parses one section. Unknown features are ignored.
    pub(crate) fn take(&mut self, feature: Feature, offset: u64, body: &[u8]) {
        if self.parse(feature, offset, body).is_none() {
            let kind = DamageKind::FeatureFormat(feature.0);
            self.damage.push(Damage::new(offset, kind));
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
            // A pipe may have several.
            Feature::EVENT_DESC => self.described.extend(take_event_desc(&mut cursor)?),
            Feature::PMU_MAPPINGS => info.pmus = take_pmus(&mut cursor)?,
            Feature::SAMPLE_TIME => {
                let time = TimeRange::take(&mut cursor)?;
                let known = time.last != 0 && time.first <= time.last;
                self.sample_time = known.then_some(time);
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

    /// Decodes the definitions from a blob, unless there are definitions already.
    pub(crate) fn take_definitions(&mut self, offset: u64, blob: &[u8]) {
        if self.definitions().is_some() {
            return;
        }
        let blob = definitions_record::blob_of_section(blob);
        if blob.is_empty() {
            return;
        }
        self.known = self.heads.find(&blob);
        if self.known.is_some() {
            return;
        }
        match definitions_record::decode(&blob) {
            Ok(definitions) => {
                self.info.definitions = Some(definitions);
                self.blob = blob.into_owned();
            }
            Err(error) => self
                .damage
                .push(Damage::new(offset, DamageKind::Definitions(error))),
        }
    }

    /// The definitions, if they were found.
    pub(crate) fn definitions(&self) -> Option<&Definitions> {
        let info = self.known.as_deref().unwrap_or(&self.info);
        info.definitions.as_ref()
    }

    /// The head, which other files may share. After [`finish`](Self::finish).
    pub(crate) fn into_head(self) -> Arc<TraceInfo> {
        let Self {
            mut info,
            heads,
            known,
            blob,
            ..
        } = self;
        match known {
            Some(known) if known.is_like(&info) => known,
            Some(known) => {
                info.definitions.clone_from(&known.definitions);
                Arc::new(info)
            }
            None if blob.is_empty() => Arc::new(info),
            None => heads.share(blob, info),
        }
    }

    /// Combines what several sections describe: the attrs and their names, and the clock.
    pub(crate) fn finish(&mut self, attrs: Vec<AttrIds>) {
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
            (clock, Some(id)) => {
                *clock = Some(Clock {
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
    /// Names events without a name by the definitions of their ids.
    fn name_by_definitions(&mut self) {
        if self.info.events.iter().all(|event| !event.name.is_empty()) {
            return;
        }
        let mut events = std::mem::take(&mut self.info.events);
        let definitions = self.definitions();
        let by_id = definitions.map_or_else(HashMap::new, Definitions::by_id);
        for event in &mut events {
            let probe = event.ids.iter().find_map(|id| by_id.get(id));
            let probe = definitions.zip(probe);
            if let Some(probe) = probe.and_then(|(all, &probe)| all.probes.get(probe))
                && event.name.is_empty()
            {
                event.name.clone_from(&probe.event);
            }
        }
        self.info.events = events;
    }
}

/// Combines attrs with the names in `EVENT_DESC`, by id. An attr without ids gets the name with the same index.
fn name_events(attrs: Vec<AttrIds>, described: &[EventAttr]) -> Vec<EventAttr> {
    let by_id: HashMap<u64, &str> = described
        .iter()
        .flat_map(|event| event.ids.iter().map(|&id| (id, event.name.as_str())))
        .collect();
    let same_count = attrs.len() == described.len();
    attrs
        .into_iter()
        .enumerate()
        .map(|(index, AttrIds { attr, ids })| {
            let by_index = || described.get(index).filter(|_| same_count);
            let name = ids
                .first()
                .and_then(|id| by_id.get(id).copied())
                .or_else(|| by_index().map(|event| event.name.as_str()));
            EventAttr {
                attr,
                name: name.unwrap_or_default().to_owned(),
                ids,
            }
        })
        .collect()
}
