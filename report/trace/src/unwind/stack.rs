//! The stack of a hit as functions, so that it is the same in all processes that run the same files.

use crate::process::DsoId;
use crate::symbols::NameOfSymbol;
use crate::unwind::cut::StackCut;

/// A part of a stack: a frame, or after the last frame the reason why there are no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StackPart {
    /// A frame in a function.
    Function {
        /// The function's file.
        file: DsoId,
        /// The function's name.
        name: NameOfSymbol,
        /// Whether its code was inlined in that of the next frame.
        inlined: bool,
    },
    /// A frame in a file that has no symbol there.
    Offset {
        /// The file.
        file: DsoId,
        /// Offset in the file, bytes.
        offset: u64,
    },
    /// A frame in a function that the process made at run time, where no file is known to be mapped.
    Made {
        /// The function's name.
        name: NameOfSymbol,
    },
    /// A frame at an address where no file is known to be mapped.
    Address(u64),
    /// Not a frame: the stack is cut.
    Cut(StackCut),
}
