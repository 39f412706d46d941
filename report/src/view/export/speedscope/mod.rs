//! The file format of speedscope (<https://www.speedscope.app/file-format-schema.json>): a sampled profile for each event or span.

use std::io::{self, Write};

use foldhash::HashMap;
use serde_json::{Value as Json, json};

use crate::analysis::stacks::path::{StackTable, Step};
use crate::analysis::stacks::weighed::{WeighedStacks, WeightUnit};
use crate::view::export::frame_file::{file_of, path_text};
use crate::view::folded::step_text;

/// Frames, each once.
#[derive(Default)]
struct FrameList<'s> {
    places: HashMap<&'s Step, usize>,
    frames: Vec<Json>,
}

impl<'s> FrameList<'s> {
    fn place(&mut self, step: &'s Step) -> usize {
        let frames = &mut self.frames;
        *self.places.entry(step).or_insert_with(|| {
            let mut frame = json!({"name": step_text(step)});
            if let Some(file) = file_of(step) {
                frame["file"] = path_text(file).into();
            }
            frames.push(frame);
            frames.len() - 1
        })
    }
}

/// Writes the format.
pub(crate) fn write(stacks: &WeighedStacks, out: &mut dyn Write) -> io::Result<()> {
    let mut frames = FrameList::default();
    let tables = stacks.tables.iter();
    let profiles: Vec<Json> = tables
        .map(|table| profile(table, &stacks.unit, &mut frames))
        .collect();
    let document = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "usdtrec",
        "name": stacks.origin.host,
        "shared": {"frames": frames.frames},
        "profiles": profiles,
    });
    serde_json::to_writer(&mut *out, &document)?;
    out.write_all(b"\n")
}

fn profile<'s>(table: &'s StackTable, unit: &WeightUnit, frames: &mut FrameList<'s>) -> Json {
    let paths = table.paths.iter();
    let samples: Vec<Vec<usize>> = paths
        .map(|path| path.steps.iter().map(|step| frames.place(step)).collect())
        .collect();
    let weights: Vec<u64> = table.paths.iter().map(|path| path.weight).collect();
    json!({
        "type": "sampled",
        "name": table.name,
        "unit": match unit {
            WeightUnit::SpanTime => "nanoseconds",
            WeightUnit::Hits | WeightUnit::Sum(_) => "none",
        },
        "startValue": 0,
        "endValue": table.weight,
        "samples": samples,
        "weights": weights,
    })
}
