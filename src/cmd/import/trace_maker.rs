//! The trace of imported events.

use std::collections::HashMap;
use std::fs::File;

use usdtrec_format::perf::{
    Attr, Comm, EventAttr, Pmu, RawRecord, RecordType, SampleId, SampleType, TracepointFormat,
};
use usdtrec_format::trace::{Compression, TraceInfo, TraceWriter, WriteError};
use usdtrec_format::{
    Arch, CapturePlan, Definitions, FileDefinition, ProbeDefinition, RawLayout, SiteDefinition,
};

use super::event::ImportedEvent;
use super::raw;
use super::shapes::{Shape, Shapes};

/// Length of records from which on they are written, bytes.
const PART: usize = 1 << 20;
const LEVEL: i32 = 3;
/// Ids of the first tracepoint and of its sample. The metadata event has sample id 1.
const FIRST: usize = 2;
/// `PERF_RECORD_MISC_USER`.
const USER: u16 = 2;

/// A trace being written.
pub(super) struct TraceMaker {
    writer: TraceWriter,
    shapes: Shapes,
    layouts: Vec<RawLayout>,
    /// The names that threads have.
    names: HashMap<(u32, u32), String>,
    id_type: SampleType,
    body: Vec<u8>,
    records: Vec<u8>,
}

impl TraceMaker {
    /// Writes the head; `losses` says why losses are not exact.
    pub(super) fn begin(file: File, shapes: Shapes, losses: String) -> Result<Self, WriteError> {
        let numbered = shapes.all.iter().zip(FIRST..);
        let layouts: Vec<RawLayout> = numbered
            .map(|(shape, id)| raw::layout(shape, id as u16))
            .collect();
        let info = info(&shapes.all, &layouts, losses);
        let id_type = attr(Attr::SOFTWARE, Attr::DUMMY).id_type();
        Ok(Self {
            writer: TraceWriter::create(file, &info, Compression::Zstd(LEVEL))?,
            shapes,
            layouts,
            names: HashMap::new(),
            id_type,
            body: Vec::new(),
            records: Vec::new(),
        })
    }

    /// Writes an event.
    pub(super) fn put(&mut self, event: &ImportedEvent<'_>) -> Result<(), WriteError> {
        let Some(at) = self.shapes.find(event) else {
            return Ok(());
        };
        self.name(event);
        let Some(layout) = self.layouts.get(at) else {
            return Ok(());
        };
        self.body.clear();
        self.body.extend(((at + FIRST) as u64).to_le_bytes());
        // The address, which the input does not say.
        self.body.extend(0_u64.to_le_bytes());
        self.body.extend(event.pid.to_le_bytes());
        self.body.extend(event.tid.to_le_bytes());
        self.body.extend(event.time.to_le_bytes());
        self.body.extend(u64::from(event.cpu).to_le_bytes());
        raw::put(event, layout, &mut self.body);
        let record = RawRecord {
            kind: RecordType::SAMPLE,
            misc: USER,
            body: &self.body,
            offset: 0,
        };
        record.put(&mut self.records);
        self.writer.push(&self.records);
        self.records.clear();
        // The lines of several CPUs are not in the order of time: the round ends with the last of them.
        if self.writer.unflushed() >= PART {
            self.writer.flush_part()?;
        }
        Ok(())
    }

    /// Writes the name of a thread if it has another one than before. The first one holds from the beginning, because lines may be late.
    fn name(&mut self, event: &ImportedEvent<'_>) {
        let ImportedEvent { pid, tid, .. } = *event;
        let before = self.names.get(&(pid, tid));
        if before.is_some_and(|before| **before == *event.comm) {
            return;
        }
        let time = if before.is_some() { event.time } else { 0 };
        let comm = Comm {
            pid: pid.cast_signed(),
            tid: tid.cast_signed(),
            exec: false,
            name: event.comm.as_bytes(),
            id: SampleId {
                pid: pid.cast_signed(),
                tid: tid.cast_signed(),
                time,
                identifier: 1,
                ..SampleId::default()
            },
        };
        comm.encode(self.id_type, &mut self.records);
        self.names
            .insert((pid, tid), event.comm.clone().into_owned());
    }

    /// Writes the end. Returns the number of events.
    pub(super) fn finish(self) -> Result<u64, WriteError> {
        Ok(self.writer.finish(&[])?.samples)
    }
}

fn attr(kind: u32, config: u64) -> Attr {
    let base = SampleType::IDENTIFIER
        | SampleType::IP
        | SampleType::TID
        | SampleType::TIME
        | SampleType::CPU;
    Attr {
        kind,
        config,
        sample_period: 1,
        sample_type: if kind == Attr::TRACEPOINT {
            base | SampleType::RAW
        } else {
            base
        },
        flags: Attr::SAMPLE_ID_ALL,
        ..Attr::default()
    }
}

/// The head. Nothing is known of the host.
fn info(shapes: &[Shape], layouts: &[RawLayout], losses: String) -> TraceInfo {
    let producer = concat!("usdtrec ", env!("CARGO_PKG_VERSION")).to_owned();
    let mut names = Names::default();
    let mut events = Vec::new();
    let mut tracepoints = Vec::new();
    let mut files: Vec<FileDefinition> = Vec::new();
    let mut probes = Vec::new();
    for (shape, layout) in shapes.iter().zip(layouts) {
        let definition = definition(shape, layout, &mut files);
        let name = names.unique(&shape.event);
        let (system, own) = name.split_once(':').unwrap_or(("import", &name));
        let mut format = TracepointFormat::of_layout(
            &shape.provider,
            own,
            layout,
            "",
            arch(),
            &definition.arguments,
            None,
        );
        format.system = system.to_owned();
        tracepoints.push(format);
        events.push(EventAttr {
            attr: attr(Attr::TRACEPOINT, layout.id.into()),
            name,
            ids: vec![layout.id.into()],
        });
        probes.push(definition);
    }
    events.push(EventAttr {
        attr: attr(Attr::SOFTWARE, Attr::DUMMY),
        name: "dummy:u".to_owned(),
        ids: vec![1],
    });
    TraceInfo {
        version: producer.clone(),
        command: std::env::args_os()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        pmus: [
            (Attr::SOFTWARE, "software"),
            (Attr::TRACEPOINT, "tracepoint"),
        ]
        .map(|(kind, name)| Pmu {
            kind,
            name: name.to_owned(),
        })
        .to_vec(),
        events,
        tracepoints,
        definitions: Some(Definitions {
            version: Definitions::VERSION,
            producer,
            engine: "import".to_owned(),
            uncounted: Some(losses),
            boot: None,
            files,
            probes,
        }),
        ..TraceInfo::default()
    }
}

/// The values are little-endian words of 8 bytes; it does not matter which architecture that is.
fn arch() -> Option<Arch> {
    Arch::host().or(Some(Arch::X86_64))
}

fn definition(
    shape: &Shape,
    layout: &RawLayout,
    files: &mut Vec<FileDefinition>,
) -> ProbeDefinition {
    let file = FileDefinition {
        path: shape.file.clone().into(),
        arch: arch(),
        ..FileDefinition::default()
    };
    let at = files.iter().position(|known| *known == file);
    let at = at.unwrap_or_else(|| {
        files.push(file);
        files.len() - 1
    });
    let arguments = shape.arguments.iter();
    ProbeDefinition {
        event: shape.event.clone(),
        provider: shape.provider.clone(),
        name: shape.name.clone(),
        file: at,
        plan: CapturePlan {
            raw: Some(layout.clone()),
            ..CapturePlan::default()
        },
        arguments: arguments
            .map(super::shapes::ShapeArgument::described)
            .collect(),
        sites: vec![SiteDefinition {
            ids: vec![layout.id.into()],
            ..SiteDefinition::default()
        }],
        ..ProbeDefinition::default()
    }
}

/// Names of events, which stock perf wants to be unique.
#[derive(Default)]
struct Names(HashMap<String, u32>);

impl Names {
    fn unique(&mut self, name: &str) -> String {
        let count = self.0.entry(name.to_owned()).or_default();
        *count += 1;
        if *count == 1 {
            return name.to_owned();
        }
        let numbered = format!("{name}_{}", *count - 1);
        self.unique(&numbered)
    }
}
