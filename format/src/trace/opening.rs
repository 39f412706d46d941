//! Opens a [`Trace`].

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use super::added_events::sum_of_attrs;
use super::block::{Block, BlockKind};
use super::chunk::RECORD_HEADER;
use super::clock_readings::{self, FoundReadings};
use super::code_names::{self, AfterIndex};
use super::damage::{Damage, DamageKind};
use super::definitions_record::PART_MAGIC;
use super::features::{FeatureTable, Features};
use super::file_head::{AttrIds, Attrs, Form};
use super::head_sums::{HeadSums, sum};
use super::index::IndexNode;
use super::index_reader::{self, IndexContents};
use super::read_error::ReadError;
use super::reader::Trace;
use super::scan::{ScanRules, ScannedRecords, scan};
use super::shared_heads::SharedHeads;
use super::trace_files::TraceFiles;
use super::{TraceInfo, added_piece, definitions_record, digest, directory, pipe};
use crate::perf::feature::Feature;
use crate::perf::header::{FileHeader, Section};
use crate::perf::{SampleLayout, record_header};

impl Trace {
    /// Opens a trace: a file, or a directory of `perf record --threads`.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        Self::open_sharing(path, &SharedHeads::default())
    }

    /// As [`open`](Self::open), for several files: what is the same in their heads is kept once.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn open_sharing(path: &Path, heads: &SharedHeads) -> Result<Self, ReadError> {
        match directory::files(path)? {
            Some(files) => Opening::open_all(files, heads),
            None => {
                let file = File::open(path).map_err(ReadError::open(path))?;
                Opening::open(file, heads)
            }
        }
    }

    /// Opens a trace in an open regular file.
    ///
    /// # Errors
    /// [`ReadError`], except for [`ReadError::Open`].
    pub fn from_file(file: File) -> Result<Self, ReadError> {
        Opening::open(file, &SharedHeads::default())
    }
}

/// The state of opening a trace.
pub(crate) struct Opening {
    /// What is known of it, without what its features and attrs say.
    trace: Trace,
    features: Features,
    attrs: Vec<AttrIds>,
    /// The newest node with checksums, and its offset.
    checked: Option<(u64, IndexNode)>,
    /// File offsets of records in a pipe's data that add events.
    head_records: Vec<u64>,
}

impl Opening {
    /// Opens a trace.
    ///
    /// # Errors
    /// [`ReadError`].
    pub(crate) fn open(file: File, heads: &SharedHeads) -> Result<Trace, ReadError> {
        if file.metadata().map_err(ReadError::at(0))?.is_dir() {
            return Err(ReadError::format(
                0,
                "a perf.data file",
                "an open directory: open it by path",
            ));
        }
        Self::open_all(vec![file], heads)
    }

    /// Opens a trace of several files, the first of which has the header.
    ///
    /// # Errors
    /// [`ReadError`].
    pub(crate) fn open_all(files: Vec<File>, heads: &SharedHeads) -> Result<Trace, ReadError> {
        let mut source = TraceFiles::new(files)?;
        let form = Form::read_settled(&source)?;
        // Updated after reading the header, so that a growing file is at least as long as its header says.
        source.update_len()?;
        let mut opening = Self {
            trace: Trace {
                source,
                ..Trace::of_head(TraceInfo::default(), Vec::new())
            },
            features: Features::sharing(heads.clone()),
            attrs: Vec::new(),
            checked: None,
            head_records: Vec::new(),
        };
        match form {
            Form::File(header) => opening.read_file(&header)?,
            Form::Pipe => opening.read_pipe()?,
        }
        let head_records = std::mem::take(&mut opening.head_records);
        let pieces = opening.checked.as_ref().map_or(0, |(_, node)| node.added);
        let mut trace = opening.into_trace()?;
        added_piece::read(&mut trace, pieces)?;
        pipe::add_events(&mut trace, &head_records)?;
        let mut events = trace.info.events.iter();
        if events.any(|event| event.attr.reads_group()) {
            trace.damage.push(Damage::new(0, DamageKind::GroupReads));
        }
        Ok(trace)
    }

    fn into_trace(self) -> Result<Trace, ReadError> {
        let Self {
            mut trace,
            mut features,
            attrs,
            ..
        } = self;
        features.read_tracepoints(&trace.source)?;
        features.finish(attrs);
        trace.damage.append(&mut features.damage);
        trace.damage.sort_by_key(|damage| damage.offset);
        let is_piece = |block: &Block| block.kind == BlockKind::Stream;
        trace.serial = trace.blocks.iter().any(is_piece);
        trace.recorded = trace.recorded.filter(|time| time.first <= time.last);
        trace.sample_time = features.sample_time;
        trace.sections = std::mem::take(&mut features.sections);
        trace.info = features.into_head();
        Ok(trace)
    }

    fn read_pipe(&mut self) -> Result<(), ReadError> {
        let (head, end) = pipe::read_head(&self.trace.source)?;
        self.attrs = head.attrs;
        self.features = head.features;
        let part = FileHeader::PIPE_LEN as u64..self.trace.source.len();
        let rules = ScanRules {
            time_at: self.time_at(),
            cut: true,
            pipe: true,
        };
        let mut found = scan(&self.trace.source, part, rules)?;
        self.head_records = std::mem::take(&mut found.head_records);
        self.head_records.retain(|&at| at >= end);
        self.trace.finished = found.damage.is_empty();
        self.read_scanned_clocks(&found)?;
        self.take_scan(found);
        Ok(())
    }

    fn read_file(&mut self, header: &FileHeader) -> Result<(), ReadError> {
        let header = self.check_header(header)?;
        let header = &self.header_before_cut(header)?;
        let mut attrs = Attrs::read(&self.trace.source, header)?;
        self.attrs = attrs.attrs;
        self.trace.damage.append(&mut attrs.damage);
        let others: Vec<_> = self.trace.source.others().collect();
        if others.is_empty() && header.features[0] >> Feature::DIR_FORMAT.0 & 1 != 0 {
            let at = FileHeader::FEATURES_OFFSET;
            self.trace
                .damage
                .push(Damage::new(at, DamageKind::PartOfDirectory));
        }
        let data = DataEnd::find(&self.trace.source, header);
        let table_at = match self.read_index(header, &data)? {
            Some(table_at) => Some(table_at),
            None => self.read_without_index(header, &data)?,
        };
        if data.cut && header.has_late_attrs() {
            // Their definitions are later ones than those of an older table.
            self.read_definitions(header)?;
        }
        if let Some(table_at) = table_at {
            // An older table may have fewer sections.
            let older = self.sums().filter(|_| data.cut);
            let bits = older.map_or(header.features, |sums| sums.header.features);
            let table_at = self.check_table(&bits, table_at)?;
            match FeatureTable::read(&self.trace.source, table_at, &bits)? {
                Some(table) => {
                    let sums = self.sums().map_or(&[][..], |sums| &sums.features);
                    let sums = sums.to_vec();
                    self.features.read(&self.trace.source, &table, &sums)?;
                }
                None => self
                    .trace
                    .damage
                    .push(Damage::new(table_at, DamageKind::NoFeatures)),
            }
        }
        self.check_attrs(header)?;
        self.read_definitions(header)?;
        // If the data size is unknown, they were scanned already.
        for part in others.into_iter().filter(|_| !data.cut) {
            let found = self.scan(part, false)?;
            self.take_scan(found);
        }
        Ok(())
    }

    /// The checksums of the head, if the file has them.
    fn sums(&self) -> Option<&HeadSums> {
        self.checked
            .as_ref()
            .and_then(|(_, node)| node.head.as_ref())
    }

    /// The header, or its copy in the newest node if it is damaged.
    fn check_header(&mut self, header: &FileHeader) -> Result<FileHeader, ReadError> {
        let data = DataEnd::find(&self.trace.source, header);
        if !data.cut {
            let mut room = index_reader::MAX_CANDIDATES;
            self.checked = index_reader::newest_node(&self.trace.source, data.end, &mut room)?;
        }
        let Some(written) = self.sums().map(|sums| sums.header) else {
            return Ok(*header);
        };
        let differs = self.sums().and_then(|sums| sums.first_difference(header));
        let Some(at) = differs else {
            return Ok(*header);
        };
        self.trace.damage.push(Damage::new(at, DamageKind::Header));
        let size = header.data.end().saturating_sub(written.data.offset);
        Ok(FileHeader {
            data: Section {
                size,
                ..written.data
            },
            ..written
        })
    }

    /// The header, or, if the file is cut and has no footer with its attrs, that of the last footer.
    fn header_before_cut(&mut self, header: FileHeader) -> Result<FileHeader, ReadError> {
        if !header.has_late_attrs() || !DataEnd::find(&self.trace.source, &header).cut {
            return Ok(header);
        }
        let found = self.scan(header.data.offset..self.trace.source.len(), true)?;
        self.older_footer(&found)?;
        let written = self.sums().map(|sums| sums.header);
        Ok(written.map_or(header, |written| FileHeader {
            data: header.data,
            ..written
        }))
    }

    /// The offset of an undamaged feature table: `table_at`, or one before an older node, as each flush writes the table again.
    fn check_table(&mut self, bits: &[u64; 4], table_at: u64) -> Result<u64, ReadError> {
        /// Maximum number of older nodes to try.
        const MAX: usize = 64;
        let Some(expected) = self.sums().map(|sums| sums.table) else {
            return Ok(table_at);
        };
        let len = FeatureTable::len(bits);
        if sum(&self.trace.source.bytes(table_at, len)?) == expected {
            return Ok(table_at);
        }
        let mut found = table_at;
        let mut before = self.checked.as_ref().map(|(at, node)| (*at, node.previous));
        for _ in 0..MAX {
            let Some((limit, at)) = before.filter(|(_, at)| *at >= len as u64) else {
                break;
            };
            if sum(&self.trace.source.bytes(at - len as u64, len)?) == expected {
                found = at - len as u64;
                break;
            }
            before = index_reader::read_node(&self.trace.source, at, limit)?
                .map(|node| (at, node.previous));
        }
        let kind = DamageKind::FeatureSum {
            is_older_used: found != table_at,
        };
        self.trace.damage.push(Damage::new(table_at, kind));
        Ok(found)
    }

    /// Replaces damaged attrs and ids by those in `EVENT_DESC`, which repeats them.
    fn check_attrs(&mut self, header: &FileHeader) -> Result<(), ReadError> {
        /// Maximum length that is checked, bytes. More ids are not read, either.
        const MAX: u64 = 256 << 20;
        let written = self.sums().filter(|sums| sums.header.attrs == header.attrs);
        let Some(expected) = written.map(|sums| sums.attrs) else {
            return Ok(());
        };
        let is_late = header.has_late_attrs();
        let from = match is_late {
            true => header.attrs.offset,
            false => FileHeader::LEN as u64,
        };
        let len = header.attrs.end().saturating_sub(from);
        if len > MAX {
            return Ok(());
        }
        let bytes = self.trace.source.bytes(from, len as usize)?;
        let found = match is_late {
            true => sum_of_attrs(&bytes, self.attrs.iter().flat_map(|attr| &attr.ids)),
            false => sum(&bytes),
        };
        if found == expected {
            return Ok(());
        }
        let is_repeated = self.features.describes_events();
        if is_repeated {
            self.attrs.clear();
        }
        let kind = DamageKind::AttrSum { is_repeated };
        self.trace.damage.push(Damage::new(from, kind));
        Ok(())
    }

    /// Takes the blocks from the index after the feature table. Returns the offset of the table; `None` if there is no index.
    fn read_index(
        &mut self,
        header: &FileHeader,
        data: &DataEnd,
    ) -> Result<Option<u64>, ReadError> {
        if data.cut {
            return Ok(None);
        }
        let start = header.data.offset;
        let table_at = data.end;
        let newest_at = table_at + FeatureTable::len(&header.features) as u64;
        let Some(index) = index_reader::read(&self.trace.source, newest_at, start..data.end)?
        else {
            return Ok(None);
        };
        if let Some(gap_end) = index.gap_end {
            let found = self.scan(start..gap_end, false)?;
            self.take_scan(found);
            self.trace
                .damage
                .push(Damage::new(gap_end, DamageKind::Index));
        }
        let end = index.newest_end;
        self.take_index(index, data)?;
        if self.trace.finished {
            self.read_code_names(end)?;
        }
        Ok(Some(table_at))
    }

    /// Reads the names of functions, which follow the last node of the index.
    fn read_code_names(&mut self, at: u64) -> Result<(), ReadError> {
        self.trace.index_end = Some(at);
        match code_names::read(&self.trace.source, at)? {
            AfterIndex::Nothing => {}
            AfterIndex::Names(names) => self.trace.code_names = Some(names),
            AfterIndex::Damaged => {
                self.trace
                    .damage
                    .push(Damage::new(at, DamageKind::CodeNames));
            }
        }
        Ok(())
    }

    fn take_index(&mut self, mut index: IndexContents, data: &DataEnd) -> Result<(), ReadError> {
        if self.trace.blocks.is_empty() {
            // Avoids copying many blocks.
            std::mem::swap(&mut self.trace.blocks, &mut index.blocks);
        }
        self.trace.blocks.append(&mut index.blocks);
        // Scanned blocks can have other boundaries than the digests assume.
        if index.gap_end.is_none() {
            self.trace.digests = digest::walk(&self.trace.source, index.newest.digest)?;
        }
        self.trace.finished = index.newest.finished;
        self.trace.cpus_changed = index.newest.cpus_changed;
        self.trace.recorded = index.newest.recorded;
        self.take_clocks(clock_readings::walk(
            &self.trace.source,
            index.newest.clocks,
        )?);
        if index.newest.finished {
            self.trace.losses = Some(index.newest.losses);
            return Ok(());
        }
        if index.newest.counted {
            self.trace.counted = Some(index.newest.losses);
        }
        // A damaged header may claim an end of the data before the first record.
        let footer = data.end.saturating_sub(RECORD_HEADER as u64);
        let header = self.trace.source.bytes(footer, RECORD_HEADER)?;
        let footer_end = footer + record_size(&header);
        let rest = self.trace.source.len().saturating_sub(footer_end);
        if rest != 0 {
            let kind = DamageKind::Uncommitted {
                chunks: self.trace.blocks.len(),
                rest,
            };
            self.trace.uncommitted = Some(Damage::new(footer_end, kind));
        }
        Ok(())
    }

    /// Reads the clock readings of a file without an index.
    fn read_scanned_clocks(&mut self, found: &ScannedRecords) -> Result<(), ReadError> {
        let found = clock_readings::read_all(&self.trace.source, &found.clocks)?;
        self.take_clocks(found);
        Ok(())
    }

    fn take_clocks(&mut self, found: FoundReadings) {
        self.trace.clocks = found.readings;
        if let Some(at) = found.damaged_at {
            self.trace.damage.push(Damage::new(at, DamageKind::Clocks));
        }
    }

    /// Finds the blocks by scanning the records. Returns the offset of a feature table, if there is one.
    fn read_without_index(
        &mut self,
        header: &FileHeader,
        data: &DataEnd,
    ) -> Result<Option<u64>, ReadError> {
        let start = header.data.offset;
        let mut found = self.scan(start..data.end, data.cut)?;
        let mut cut = data.cut;
        let older = self.older_footer(&found)?;
        if !cut && older.is_some_and(|at| at != data.end) {
            let table = FeatureTable::read(&self.trace.source, data.end, &header.features)?;
            if table.is_none() {
                // The scan found a footer, so there must be a table: the size in the header is wrong.
                let kind = DamageKind::DataSize(header.data.size);
                let at = FileHeader::DATA_SIZE_OFFSET;
                self.trace.damage.push(Damage::new(at, kind));
                cut = true;
                found = self.scan(start..self.trace.source.len(), true)?;
            }
        }
        let rolling = found.footers.back() == Some(&data.end);
        self.trace.finished = !cut && !rolling;
        self.note_missing_end(header, data);
        let older = self.older_footer(&found)?;
        if !data.cut && (rolling || older.is_some()) {
            self.trace
                .damage
                .push(Damage::new(data.end, DamageKind::Index));
        }
        self.read_scanned_clocks(&found)?;
        self.take_scan(found);
        Ok(if cut { older } else { Some(data.end) })
    }

    /// Adds damage for a missing or wrong data size. A killed stock perf leaves a data size of 0.
    fn note_missing_end(&mut self, header: &FileHeader, data: &DataEnd) {
        if !data.cut {
            return;
        }
        let at = FileHeader::DATA_SIZE_OFFSET;
        let kind = if header.data.size == 0 {
            DamageKind::NotEnded
        } else {
            DamageKind::Short {
                end: header.data.end(),
                len: self.trace.source.len(),
            }
        };
        self.trace.damage.push(Damage::new(at, kind));
    }

    /// The offset of the payload of the last footer; its checksums are used if there are no others.
    fn older_footer(&mut self, found: &ScannedRecords) -> Result<Option<u64>, ReadError> {
        let mut room = index_reader::MAX_CANDIDATES;
        for &at in found.footers.iter().rev() {
            let found = index_reader::newest_node(&self.trace.source, at, &mut room)?;
            let Some((node_at, node)) = found else {
                continue;
            };
            let bits = node.head.as_ref().map(|head| head.header.features);
            if bits.is_some_and(|bits| at + FeatureTable::len(&bits) as u64 == node_at) {
                self.checked.get_or_insert((node_at, node));
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    fn scan(&self, part: Range<u64>, cut: bool) -> Result<ScannedRecords, ReadError> {
        let rules = ScanRules {
            time_at: self.time_at(),
            cut,
            pipe: false,
        };
        scan(&self.trace.source, part, rules)
    }

    fn take_scan(&mut self, mut found: ScannedRecords) {
        self.trace.blocks.append(&mut found.blocks);
        self.trace.damage.append(&mut found.damage);
    }

    /// Offset of the time in a sample, from the record header, if it is the same for all attrs.
    fn time_at(&self) -> Option<usize> {
        let mut offsets = self
            .attrs
            .iter()
            .map(|found| SampleLayout::new(&found.attr).time_offset());
        let first = offsets.next()??;
        offsets
            .all(|offset| offset == Some(first))
            .then_some(RECORD_HEADER + first)
    }

    /// Reads the definitions from their records, unless they are known: at the start of the data, or after the attrs of events that were added
    /// and the record of the `VERSION` string.
    fn read_definitions(&mut self, header: &FileHeader) -> Result<(), ReadError> {
        if self.features.definitions().is_some() {
            return Ok(());
        }
        let mut at = header.data.offset;
        if header.has_late_attrs() {
            let end = header.attrs.end();
            at = end + record_size(&self.trace.source.bytes(end, RECORD_HEADER)?);
        }
        if let Some(blob) = definitions_record::read_records(&self.trace.source, at, PART_MAGIC)? {
            self.features.take_definitions(at, &blob);
        }
        Ok(())
    }
}

/// The end of the data.
struct DataEnd {
    /// File offset.
    end: u64,
    /// Whether this is the end of the file, because the data size in the header is 0 or too large.
    cut: bool,
}

impl DataEnd {
    fn find(source: &TraceFiles, header: &FileHeader) -> Self {
        let claimed = header.data.end();
        let cut = header.data.size == 0 || claimed > source.len();
        Self {
            end: if cut { source.len() } else { claimed },
            cut,
        }
    }
}

fn record_size(header: &[u8]) -> u64 {
    record_header(header).map_or(0, |(.., size)| size as u64)
}
