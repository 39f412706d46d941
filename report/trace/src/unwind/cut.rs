//! Why a stack is cut.

use usdtrec_format::perf::ChainCut;
use usdtrec_unwind::StackEnd;

use crate::process::DsoId;

/// Why the callers of a hit are not shown up to the outermost one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StackCut {
    /// No more frames are requested than this.
    Limit(usize),
    /// Stacks of the recording host's architecture are not unwound.
    Machine,
    /// The process is a 32-bit program.
    Program32,
    /// The sample has no registers.
    NoRegisters,
    /// The next frame is above the copy of the stack, which has so many bytes.
    CopyEnds(usize),
    /// Memory is needed, at this address if one stack is meant, which was not copied.
    NotCopied(Option<u64>),
    /// The register of this column of unwind tables is needed, which is not known.
    UnknownRegister(u16),
    /// The caller's frame would not be above its callee's.
    NotAbove,
    /// The frame pointer was 0, although the last frame is of no function without a caller.
    NoFramePointer,
    /// The callers in user space were to be written when the thread returned there, and the trace does not have them.
    NotDeferred,
    /// The recorder cut it, for a reason that needs nothing else.
    Recorded(ChainCut),
    /// No file is known to be mapped at the last frame's address.
    NoFile,
    /// The last frame's file cannot be used.
    File(DsoId, FileCut),
}

/// The error in the file of the last frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileCut {
    /// It cannot be read, or is not the file that was mapped.
    NotRead,
    /// It has no unwind table.
    NoTable,
    /// Its table has no entry for the address.
    NoEntry,
    /// The entry is longer than is evaluated.
    LongEntry,
    /// The entry cannot be parsed.
    BadEntry,
    /// An expression in the entry cannot be evaluated.
    BadExpression,
}

/// Where a stack ended: what the reason depends on.
#[derive(Clone, Copy)]
pub(crate) struct LastFrame {
    /// The file; `None` if it is not known.
    pub(crate) file: Option<DsoId>,
    /// The error in the file as a whole.
    pub(crate) wrong: Option<FileCut>,
    /// Bytes of the stack that were copied.
    pub(crate) copied: usize,
    /// The requested number of frames.
    pub(crate) limit: usize,
}

impl StackCut {
    /// The cut of a chain of so many frames by the recorder; `file` is the last frame's.
    pub(crate) fn recorded(cut: ChainCut, frames: usize, file: Option<DsoId>) -> Self {
        let of_file = match cut {
            ChainCut::FileNotRead => FileCut::NotRead,
            ChainCut::NoTable => FileCut::NoTable,
            ChainCut::NoEntry => FileCut::NoEntry,
            ChainCut::LongEntry => FileCut::LongEntry,
            ChainCut::BadEntry => FileCut::BadEntry,
            ChainCut::Limit => return Self::Limit(frames),
            ChainCut::NoFile => return Self::NoFile,
            ChainCut::NotAbove => return Self::NotAbove,
            ChainCut::Program32 => return Self::Program32,
            other => return Self::Recorded(other),
        };
        file.map_or(Self::NoFile, |file| Self::File(file, of_file))
    }

    /// `None` if the stack is not cut.
    pub(crate) fn from_end(end: StackEnd, last: LastFrame) -> Option<Self> {
        let file = |cut| match last.file {
            Some(file) => Self::File(file, last.wrong.unwrap_or(cut)),
            None => Self::NoFile,
        };
        Some(match end {
            StackEnd::Outermost => return None,
            StackEnd::Limit => Self::Limit(last.limit),
            StackEnd::CopyEnds => Self::CopyEnds(last.copied),
            StackEnd::NotCopied(address) => Self::NotCopied(Some(address)),
            StackEnd::UnknownRegister(column) => Self::UnknownRegister(column),
            StackEnd::NotAbove => Self::NotAbove,
            StackEnd::NoFrame => Self::Recorded(ChainCut::NoFrame),
            StackEnd::TooMuchWork => Self::Recorded(ChainCut::TooMuchWork),
            StackEnd::OtherStack => Self::Recorded(ChainCut::OtherStack),
            StackEnd::NoCode => file(FileCut::NotRead),
            StackEnd::NoEntry => file(FileCut::NoEntry),
            StackEnd::LongEntry => file(FileCut::LongEntry),
            StackEnd::BadEntry => file(FileCut::BadEntry),
            StackEnd::BadExpression => file(FileCut::BadExpression),
        })
    }
}

impl StackCut {
    /// The same value for all stacks that are cut for the same reason.
    pub(crate) const fn without_address(self) -> Self {
        match self {
            Self::NotCopied(_) => Self::NotCopied(None),
            other => other,
        }
    }

    /// The same value in all recordings, although the numbers of files differ.
    pub(crate) const fn without_file(self) -> Self {
        match self {
            Self::File(_, cut) => Self::File(DsoId(0), cut),
            other => other,
        }
    }
}
