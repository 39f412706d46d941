//! The table `stacks`: each different stack once, a row for each frame.

use std::io;

use foldhash::{HashMap, HashSet};
use sha2::{Digest, Sha256};
use usdtrec_analysis::stats::keys::stack::{CallStack, FrameName};
use usdtrec_analysis::stats::keys::stacks::Stacks;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::unwind::stack::StackPart;
use usdtrec_view::frames::frame_text;
use usdtrec_view::stack_cut::reason;

use crate::dataset_table::DatasetTable;
use crate::frame_file::path_text;
use crate::parquet::column::ColumnCell;
use crate::parquet::facts::{DatasetFacts, id_of};
use crate::parquet::table::ParquetTable;

/// Parts of stacks whose ids are kept.
const MAX_PARTS: usize = 1 << 20;
/// Stacks of which it is known that they were written. After so many, a stack may be written again.
const MAX_WRITTEN: usize = 1 << 20;

/// The table.
#[derive(Debug)]
pub(crate) struct StackRows {
    pub(crate) table: ParquetTable,
    trace_id: i64,
    stacks: StackIds,
}

/// Ids of stacks.
#[derive(Debug, Default)]
pub(crate) struct StackIds {
    ids: HashMap<Box<[StackPart]>, i64>,
    parts: usize,
    written: HashSet<i64>,
    names: Stacks,
}

/// A stack.
pub(crate) struct KnownStack {
    pub(crate) id: i64,
    /// Its frames, the innermost first; `None` if they were given before.
    pub(crate) frames: Option<Vec<FrameCells>>,
}

/// A frame, or the reason why there are no more, which follows the outermost frame.
#[derive(Default)]
pub(crate) struct FrameCells {
    frame: Option<String>,
    function: Option<String>,
    file: Option<String>,
    offset: Option<u64>,
    address: Option<u64>,
    is_inlined: Option<bool>,
    cut: Option<String>,
}

impl StackRows {
    pub(crate) fn new(facts: &DatasetFacts) -> io::Result<Self> {
        Ok(Self {
            table: facts.table(&DatasetTable::STACKS)?,
            trace_id: facts.trace_id,
            stacks: StackIds::default(),
        })
    }

    /// The id of a stack, whose frames are in the table. `None` without a stack.
    pub(crate) fn id(
        &mut self,
        stack: &[StackPart],
        session: &TraceSession,
    ) -> io::Result<Option<i64>> {
        let Some(KnownStack { id, frames }) = self.stacks.id(stack, session) else {
            return Ok(None);
        };
        for (depth, frame) in (0..).zip(frames.iter().flatten()) {
            self.table.put_row(frame.row(self.trace_id, id, depth))?;
        }
        Ok(Some(id))
    }
}

impl StackIds {
    /// The id of a stack, which is a hash of what its frames are called: it is the same in all traces. `None` without a stack.
    pub(crate) fn id(&mut self, stack: &[StackPart], session: &TraceSession) -> Option<KnownStack> {
        if stack.is_empty() {
            return None;
        }
        if let Some(&id) = self.ids.get(stack) {
            return Some(KnownStack { id, frames: None });
        }
        let named = self.names.names(stack, session);
        let frames = cells(&named);
        let id = hash(&frames);
        if self.parts + stack.len() > MAX_PARTS {
            self.ids.clear();
            self.parts = 0;
        }
        self.parts += stack.len();
        self.ids.insert(stack.into(), id);
        if self.written.len() >= MAX_WRITTEN {
            self.written.clear();
        }
        let is_new = self.written.insert(id);
        Some(KnownStack {
            id,
            frames: is_new.then_some(frames),
        })
    }
}

impl FrameCells {
    /// The row of the frame.
    pub(crate) fn row(&self, trace_id: i64, id: i64, depth: i32) -> [ColumnCell<'_>; 10] {
        [
            trace_id.into(),
            id.into(),
            depth.into(),
            self.frame.as_deref().into(),
            self.function.as_deref().into(),
            self.file.as_deref().into(),
            self.offset.into(),
            self.address.into(),
            self.is_inlined.into(),
            self.cut.as_deref().into(),
        ]
    }
}

fn cells(stack: &CallStack) -> Vec<FrameCells> {
    let frames = stack.frames.iter().map(|frame| {
        let mut cells = FrameCells {
            frame: Some(frame_text(frame)),
            is_inlined: Some(false),
            ..FrameCells::default()
        };
        match frame {
            FrameName::Function {
                name,
                file,
                inlined,
            } => {
                cells.function = Some(name.to_string());
                cells.file = Some(path_text(file).into_owned());
                cells.is_inlined = Some(*inlined);
            }
            FrameName::Offset { file, offset } => {
                cells.file = Some(path_text(file).into_owned());
                cells.offset = Some(*offset);
            }
            FrameName::Address(address) => cells.address = Some(*address),
            FrameName::Script { name, file } => {
                cells.function = Some(name.to_string());
                cells.file = file.as_deref().map(|file| path_text(file).into_owned());
            }
        }
        cells
    });
    let cut = stack.cut.iter().map(|cut| FrameCells {
        cut: Some(reason(cut).into_owned()),
        ..FrameCells::default()
    });
    frames.chain(cut).collect()
}

fn hash(frames: &[FrameCells]) -> i64 {
    let mut hash = Sha256::new();
    for frame in frames {
        for text in [&frame.frame, &frame.function, &frame.file, &frame.cut] {
            let text = text.as_deref();
            hash.update(
                text.map_or(u64::MAX, |text| text.len() as u64)
                    .to_le_bytes(),
            );
            hash.update(text.unwrap_or_default());
        }
        for number in [frame.offset, frame.address] {
            hash.update([u8::from(number.is_some())]);
            hash.update(number.unwrap_or_default().to_le_bytes());
        }
        hash.update([u8::from(frame.is_inlined == Some(true))]);
    }
    id_of(hash)
}
