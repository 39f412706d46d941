//! Stacks by number, so that a group's key has words of one length.
//!
//! Stacks are functions, not addresses. A frame is its function and file, or without a symbol the offset in the file:
//! so a stack is the same in all processes, wherever their files are mapped. Why a stack is cut is part of it. There
//! are at most 65,536 different stacks with two million frames; beyond that the greatest groups are found as those of
//! other keys are (`stats/sketch.rs`), and the rest is summed up. The tree, folded lines and flame graphs are three
//! views of the same groups.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use foldhash::HashMap;
use usdtrec_trace::process::DsoId;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::unwind::known_cut::KnownCut;
use usdtrec_trace::unwind::stack::StackPart;

use crate::stats::keys::stack::{CallStack, FrameName};

/// Different stacks that are counted one by one; samples of others are counted together.
const MAX_STACKS: usize = 1 << 16;
/// Frames of all of them: some tens of megabytes.
const MAX_PARTS: usize = 1 << 21;

/// Different stacks, each once.
#[derive(Debug, Default)]
pub struct Stacks {
    numbers: HashMap<Arc<[StackPart]>, u64>,
    stacks: Vec<Arc<[StackPart]>>,
    /// Parts of all stacks.
    parts: usize,
    files: HashMap<DsoId, Arc<Path>>,
}

impl Stacks {
    /// The number of a stack that is known.
    pub(crate) fn known(&self, stack: &[StackPart]) -> Option<u64> {
        self.numbers.get(stack).copied()
    }

    /// The number of a stack; `None` if there are too many different ones.
    pub(crate) fn number(&mut self, stack: &[StackPart]) -> Option<u64> {
        if let Some(known) = self.known(stack) {
            return Some(known);
        }
        let number = self.stacks.len();
        if number >= MAX_STACKS || self.parts + stack.len() > MAX_PARTS {
            return None;
        }
        let stack: Arc<[StackPart]> = stack.into();
        self.parts += stack.len();
        self.stacks.push(Arc::clone(&stack));
        self.numbers.insert(stack, number as u64);
        Some(number as u64)
    }

    /// The stack of a number, with its names.
    pub(crate) fn named(&mut self, number: u64, session: &TraceSession) -> CallStack {
        let stack = self.stacks.get(number as usize).cloned();
        self.names(stack.as_deref().unwrap_or_default(), session)
    }

    /// A stack with its names.
    pub fn names(&mut self, stack: &[StackPart], session: &TraceSession) -> CallStack {
        let mut named = CallStack {
            frames: Vec::new(),
            cut: None,
        };
        for part in stack {
            match self.frame(*part, session) {
                Ok(frame) => named.frames.push(frame),
                Err(cut) => named.cut = Some(cut),
            }
        }
        named
    }

    /// A frame with its names, or why there is none.
    fn frame(&mut self, part: StackPart, session: &TraceSession) -> Result<FrameName, KnownCut> {
        Ok(match part {
            StackPart::Function {
                file,
                name,
                inlined,
            } => FrameName::Function {
                name: session.symbols().name(name).unwrap_or_default(),
                file: self.file(file, session),
                inlined,
            },
            StackPart::Offset { file, offset } => FrameName::Offset {
                file: self.file(file, session),
                offset,
            },
            StackPart::Made { name } => FrameName::Script {
                name: session.symbols().name(name).unwrap_or_default(),
                file: None,
            },
            StackPart::Address(address) => FrameName::Address(address),
            StackPart::Cut(cut) => return Err(KnownCut::new(session, cut)),
        })
    }

    fn file(&mut self, file: DsoId, session: &TraceSession) -> Arc<Path> {
        let path = || {
            let known = session.mappings().file(file);
            known.map_or_else(PathBuf::new, |file| file.path.clone())
        };
        let known = self.files.entry(file).or_insert_with(|| path().into());
        Arc::clone(known)
    }
}
