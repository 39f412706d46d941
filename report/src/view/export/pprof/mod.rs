//! pprof's `profile.proto`, compressed with gzip: stacks with the number of hits, or of spans with the number and the time.
//!
//! Sample types are `hits/count`, or `spans/count` and `self/nanoseconds` (the time in the spans that begin there and in no span within them). The label
//! `event` has the event or the span.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use foldhash::HashMap;

use crate::analysis::stacks::path::{Step, WeighedPath};
use crate::analysis::stacks::weighed::{WeighedStacks, WeightUnit};
use crate::stats::keys::stack::FrameName;
use crate::view::export::frame_file::{file_of, path_text};
use crate::view::export::protobuf::Proto;
use crate::view::folded::step_text;

/// Fields of `Profile`.
mod profile {
    pub(super) const SAMPLE_TYPE: u32 = 1;
    pub(super) const SAMPLE: u32 = 2;
    pub(super) const MAPPING: u32 = 3;
    pub(super) const LOCATION: u32 = 4;
    pub(super) const FUNCTION: u32 = 5;
    pub(super) const STRING_TABLE: u32 = 6;
    pub(super) const TIME_NANOS: u32 = 9;
    pub(super) const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

/// Things that a profile has once, numbered from 1, or from 0 for strings.
#[derive(Default)]
struct ProfileTables<'s> {
    strings: HashMap<String, u64>,
    ordered: Vec<String>,
    mappings: HashMap<String, u64>,
    locations: HashMap<&'s Step, u64>,
    proto: Proto,
}

impl<'s> ProfileTables<'s> {
    fn string(&mut self, text: &str) -> u64 {
        if let Some(&known) = self.strings.get(text) {
            return known;
        }
        let number = self.ordered.len() as u64;
        self.ordered.push(text.to_owned());
        self.strings.insert(text.to_owned(), number);
        number
    }

    /// The number of a file; 0 without one.
    fn mapping(&mut self, step: &Step) -> u64 {
        let Some(file) = file_of(step).map(path_text) else {
            return 0;
        };
        if let Some(&known) = self.mappings.get(&*file) {
            return known;
        }
        let number = self.mappings.len() as u64 + 1;
        let name = self.string(&file);
        self.mappings.insert(file.into_owned(), number);
        self.proto.message(profile::MAPPING, |mapping| {
            mapping.unsigned(1, number);
            mapping.unsigned(5, name);
            // has_functions
            mapping.unsigned(7, 1);
        });
        number
    }

    /// The number of a location, which has a function of the same number.
    fn location(&mut self, step: &'s Step) -> u64 {
        if let Some(&known) = self.locations.get(step) {
            return known;
        }
        let number = self.locations.len() as u64 + 1;
        self.locations.insert(step, number);
        let mapping = self.mapping(step);
        let name = self.string(&step_text(step));
        let address = match step {
            Step::Frame(FrameName::Offset { offset, .. }) => *offset,
            Step::Frame(FrameName::Address(address)) => *address,
            _ => 0,
        };
        self.proto.message(profile::FUNCTION, |function| {
            function.unsigned(1, number);
            function.unsigned(2, name);
            function.unsigned(3, name);
        });
        self.proto.message(profile::LOCATION, |location| {
            location.unsigned(1, number);
            location.unsigned(2, mapping);
            location.unsigned(3, address);
            location.message(4, |line| line.unsigned(1, number));
        });
        number
    }

    fn value_type(&mut self, kind: &str, unit: &str) {
        let (kind, unit) = (self.string(kind), self.string(unit));
        self.proto.message(profile::SAMPLE_TYPE, |value| {
            value.unsigned(1, kind);
            value.unsigned(2, unit);
        });
    }
}

/// Writes the format.
pub(crate) fn write(stacks: &WeighedStacks, out: &mut dyn Write) -> io::Result<()> {
    let mut tables = ProfileTables::default();
    tables.string("");
    let last = match &stacks.unit {
        WeightUnit::Hits => {
            tables.value_type("hits", "count");
            "hits"
        }
        WeightUnit::SpanTime => {
            tables.value_type("spans", "count");
            tables.value_type("self", "nanoseconds");
            "self"
        }
        WeightUnit::Sum(name) => {
            tables.value_type("hits", "count");
            tables.value_type(name, "sum");
            name
        }
    };
    let default = tables.string(last);
    let label = tables.string("event");
    for table in &stacks.tables {
        let name = tables.string(&table.name);
        for path in &table.paths {
            sample(&mut tables, path, &stacks.unit, [label, name]);
        }
    }
    let mut proto = std::mem::take(&mut tables.proto);
    proto.unsigned(profile::DEFAULT_SAMPLE_TYPE, default);
    if let Some(time) = stacks.origin.wall_ns {
        proto.unsigned(profile::TIME_NANOS, time);
    }
    for text in &tables.ordered {
        proto.bytes(profile::STRING_TABLE, text.as_bytes());
    }
    let mut gzip = GzEncoder::new(out, Compression::default());
    gzip.write_all(proto.as_slice())?;
    gzip.finish()?;
    Ok(())
}

fn sample<'s>(
    tables: &mut ProfileTables<'s>,
    path: &'s WeighedPath,
    unit: &WeightUnit,
    [label, name]: [u64; 2],
) {
    // The innermost first.
    let steps = path.steps.iter().rev();
    let locations: Vec<u64> = steps.map(|step| tables.location(step)).collect();
    tables.proto.message(profile::SAMPLE, |sample| {
        for location in locations {
            sample.unsigned(1, location);
        }
        sample.unsigned(2, path.hits);
        if *unit != WeightUnit::Hits {
            sample.unsigned(2, path.weight);
        }
        sample.message(3, |text| {
            text.unsigned(1, label);
            text.unsigned(2, name);
        });
    });
}
