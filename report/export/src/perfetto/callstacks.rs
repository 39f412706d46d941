//! Stacks by number.

use foldhash::HashMap;
use usdtrec_analysis::stats::keys::stack::FrameName;
use usdtrec_analysis::stats::keys::stacks::Stacks;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::unwind::stack::StackPart;
use usdtrec_view::frames::{cut_text, frame_text};

use crate::frame_file::path_text;
use crate::perfetto::fields::{frame, interned, name};
use crate::protobuf::Proto;

/// Stacks, and their frames and files, each with a number.
#[derive(Default)]
pub(crate) struct CallstackIds {
    stacks: HashMap<Box<[StackPart]>, u64>,
    frames: HashMap<FrameKey, u64>,
    files: HashMap<String, u64>,
    names: Stacks,
}

/// What a frame is: its text, the number of its file (0 without one), and its offset in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct FrameKey {
    text: String,
    file: u64,
    offset: u64,
}

/// The number of a stack.
pub(crate) struct CallstackId {
    pub(crate) id: u64,
    /// The data that define it, where it is new.
    pub(crate) interned: Option<Proto>,
}

impl CallstackIds {
    pub(crate) fn id(&mut self, stack: &[StackPart], session: &TraceSession) -> CallstackId {
        if let Some(&id) = self.stacks.get(stack) {
            return CallstackId { id, interned: None };
        }
        let mut data = Proto::default();
        let named = self.names.names(stack, session);
        let mut frames: Vec<u64> = Vec::new();
        for name in &named.frames {
            frames.push(self.frame(name, &mut data));
        }
        if let Some(cut) = &named.cut {
            let key = FrameKey {
                text: cut_text(cut),
                file: 0,
                offset: 0,
            };
            frames.push(self.number(key, &mut data));
        }
        let id = self.stacks.len() as u64 + 1;
        self.stacks.insert(stack.into(), id);
        data.message(interned::CALLSTACKS, |one| {
            one.unsigned(name::ID, id);
            // The outermost first.
            for number in frames.iter().rev() {
                one.unsigned(frame::OF_CALLSTACK, *number);
            }
        });
        CallstackId {
            id,
            interned: Some(data),
        }
    }

    fn frame(&mut self, named: &FrameName, data: &mut Proto) -> u64 {
        let (file, offset) = match named {
            FrameName::Function { file, .. } => (Some(path_text(file)), 0),
            FrameName::Offset { file, offset } => (Some(path_text(file)), *offset),
            FrameName::Script { file, .. } => (file.as_deref().map(path_text), 0),
            FrameName::Address(address) => (None, *address),
        };
        let key = FrameKey {
            text: frame_text(named),
            file: file.map_or(0, |file| self.file(&file, data)),
            offset,
        };
        self.number(key, data)
    }

    fn file(&mut self, path: &str, data: &mut Proto) -> u64 {
        if let Some(&known) = self.files.get(path) {
            return known;
        }
        let id = self.files.len() as u64 + 1;
        self.files.insert(path.to_owned(), id);
        data.message(interned::MAPPING_PATHS, |text| {
            text.unsigned(name::ID, id);
            text.bytes(name::TEXT, path.as_bytes());
        });
        data.message(interned::MAPPINGS, |mapping| {
            mapping.unsigned(name::ID, id);
            mapping.unsigned(frame::PATH_IDS, id);
        });
        id
    }

    fn number(&mut self, key: FrameKey, data: &mut Proto) -> u64 {
        if let Some(&known) = self.frames.get(&key) {
            return known;
        }
        let id = self.frames.len() as u64 + 1;
        data.message(interned::FUNCTION_NAMES, |text| {
            text.unsigned(name::ID, id);
            text.bytes(name::TEXT, key.text.as_bytes());
        });
        data.message(interned::FRAMES, |one| {
            one.unsigned(name::ID, id);
            one.unsigned(frame::FUNCTION_ID, id);
            if key.file > 0 {
                one.unsigned(frame::MAPPING_ID, key.file);
            }
            one.unsigned(frame::OFFSET, key.offset);
        });
        self.frames.insert(key, id);
        id
    }
}
