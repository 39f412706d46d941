//! pprof's `profile.proto`, compressed with gzip: stacks with the number of hits, or of spans with the number and the time.
//!
//! Sample types are `hits/count`, or `spans/count` and `self/nanoseconds` (the time in the spans that begin there and in no span within them). The label
//! `event` has the event or the span.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use foldhash::fast::RandomState;
use indexmap::IndexSet;
use usdtrec_analysis::stacks::path::{Step, WeighedPath};
use usdtrec_analysis::stacks::weighed::{WeighedStacks, WeightUnit};
use usdtrec_analysis::stats::keys::stack::FrameName;
use usdtrec_view::folded::step_text;

use crate::frame_file::{file_of, path_text};
use crate::pprof_fields::{function, label, line, location, mapping, profile, sample, value_type};
use crate::protobuf::Proto;

/// Things that a profile has once: strings are numbered from 0, all others from 1.
#[derive(Default)]
struct ProfileTables<'s> {
    strings: IndexSet<String, RandomState>,
    /// Files, by the numbers of their names.
    mappings: IndexSet<u64, RandomState>,
    locations: IndexSet<&'s Step, RandomState>,
    proto: Proto,
}

impl<'s> ProfileTables<'s> {
    fn string(&mut self, text: &str) -> u64 {
        self.strings.insert_full(text.to_owned()).0 as u64
    }

    /// The number of a location, which has a function of the same number.
    fn location(&mut self, step: &'s Step) -> u64 {
        self.locations.insert_full(step).0 as u64 + 1
    }

    /// The number of a file; 0 without one.
    fn mapping(&mut self, step: &Step) -> u64 {
        let Some(file) = file_of(step).map(path_text) else {
            return 0;
        };
        let name = self.string(&file);
        self.mappings.insert_full(name).0 as u64 + 1
    }

    fn value_type(&mut self, kind: &str, unit: &str) {
        let (kind, unit) = (self.string(kind), self.string(unit));
        self.proto.message(profile::SAMPLE_TYPE, |value| {
            value.unsigned(value_type::TYPE, kind);
            value.unsigned(value_type::UNIT, unit);
        });
    }

    /// Writes all that samples refer to.
    fn put_all(&mut self) {
        for (number, step) in (1..).zip(std::mem::take(&mut self.locations)) {
            self.put_location(number, step);
        }
        for (number, name) in (1..).zip(&self.mappings) {
            self.proto.message(profile::MAPPING, |mapping| {
                mapping.unsigned(mapping::ID, number);
                mapping.unsigned(mapping::FILENAME, *name);
                mapping.unsigned(mapping::HAS_FUNCTIONS, 1);
            });
        }
        for text in &self.strings {
            self.proto.bytes(profile::STRING_TABLE, text.as_bytes());
        }
    }

    fn put_location(&mut self, number: u64, step: &Step) {
        let mapping = self.mapping(step);
        let name = self.string(&step_text(step));
        let address = match step {
            Step::Frame(FrameName::Offset { offset, .. }) => *offset,
            Step::Frame(FrameName::Address(address)) => *address,
            _ => 0,
        };
        self.proto.message(profile::FUNCTION, |function| {
            function.unsigned(function::ID, number);
            function.unsigned(function::NAME, name);
            function.unsigned(function::SYSTEM_NAME, name);
        });
        self.proto.message(profile::LOCATION, |location| {
            location.unsigned(location::ID, number);
            location.unsigned(location::MAPPING_ID, mapping);
            location.unsigned(location::ADDRESS, address);
            location.message(location::LINE, |line| {
                line.unsigned(line::FUNCTION_ID, number);
            });
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
    tables.put_all();
    let mut proto = tables.proto;
    proto.unsigned(profile::DEFAULT_SAMPLE_TYPE, default);
    if let Some(time) = stacks.origin.wall_ns {
        proto.unsigned(profile::TIME_NANOS, time);
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
            sample.unsigned(sample::LOCATION_ID, location);
        }
        sample.unsigned(sample::VALUE, path.hits);
        if *unit != WeightUnit::Hits {
            sample.unsigned(sample::VALUE, path.weight);
        }
        sample.message(sample::LABEL, |text| {
            text.unsigned(label::KEY, label);
            text.unsigned(label::STR, name);
        });
    });
}
