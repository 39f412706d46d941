//! Sentences that say why a call chain is cut.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;

use usdtrec_format::Register;
use usdtrec_format::escape::escape_bytes;
use usdtrec_format::perf::ChainCut;
use usdtrec_trace::unwind::cut::{FileCut, StackCut};
use usdtrec_trace::unwind::known_cut::KnownCut;
use usdtrec_unwind::column;

/// Why a call chain is cut.
pub fn reason(known: &KnownCut) -> Cow<'static, str> {
    match known.cut {
        StackCut::Limit(most) => format!("the limit of frames is {most}").into(),
        StackCut::Machine => {
            let machine = escape_bytes(known.machine.as_bytes());
            format!("stacks of {machine} are not unwound").into()
        }
        StackCut::Program32 => "stacks of 32-bit programs are not unwound".into(),
        StackCut::NoRegisters => "the sample has no registers".into(),
        StackCut::CopyEnds(bytes) => {
            format!("the next frame is beyond the {bytes} bytes of stack that were copied").into()
        }
        StackCut::NotCopied(Some(address)) => {
            format!("the memory at {address:#x} was not copied").into()
        }
        StackCut::NotCopied(None) => "memory that is needed was not copied".into(),
        StackCut::UnknownRegister(number) => {
            format!("{} is not known in this frame", register(known, number)).into()
        }
        StackCut::NotAbove => "the caller's frame is not above this one".into(),
        StackCut::NoFramePointer => "ended at frame pointer 0".into(),
        StackCut::NotDeferred => {
            "its part in user space, which is written when the thread returns there, is not in the trace".into()
        }
        StackCut::Recorded(cut) => recorded(cut).into(),
        StackCut::NoFile => "no file is known to be mapped here".into(),
        StackCut::File(_, cut) => of_file(&path(known), cut).into(),
    }
}

/// A reason that the recorder wrote.
const fn recorded(cut: ChainCut) -> &'static str {
    match cut {
        ChainCut::CopyEnds => "the next frame is beyond the stack that was copied",
        ChainCut::NotCopied => "memory that was not copied is needed",
        ChainCut::UnknownRegister => "a register that is not known in this frame is needed",
        ChainCut::NoFrame => "the frame pointer leads to no frame above this one",
        ChainCut::Unreadable => "the memory at the frame pointer cannot be read",
        ChainCut::TooMuchWork => "unwinding this stack would take too much work",
        ChainCut::NoRoom => "there are more frames than there was room for",
        ChainCut::OtherStack => {
            "a signal was handled on a stack of its own, and the interrupted one was not copied"
        }
        ChainCut::Rate => "no stack was taken: there were too many in this second",
        _ => "the recorder found no more callers",
    }
}

fn of_file(path: &str, cut: FileCut) -> String {
    match cut {
        FileCut::NotRead => {
            format!(
                "no unwind information for {path}: it is not the recorded file, or not readable"
            )
        }
        FileCut::NoTable => format!("no unwind information in {path}"),
        FileCut::NoEntry => format!("no unwind information for this function in {path}"),
        FileCut::LongEntry => {
            format!("the unwind information for this function in {path} is too long")
        }
        FileCut::BadEntry | FileCut::BadExpression => {
            format!("the unwind information for this function in {path} is not valid")
        }
    }
}

fn path(known: &KnownCut) -> String {
    known.file.as_ref().map_or(String::new(), |file| {
        escape_bytes(file.as_os_str().as_bytes()).into_owned()
    })
}

/// The name of the register with a column of unwind tables.
fn register(known: &KnownCut, number: u16) -> String {
    let name = known.arch().and_then(|arch| {
        let mut registers = (0..=u8::MAX).map(Register);
        let found = registers.find(|register| column(arch, *register) == Some(number))?;
        Some(arch.register_name(found).to_owned())
    });
    name.unwrap_or_else(|| format!("register {number}"))
}
