//! The value that a key has in a group.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use usdtrec_format::{SourceLine, Value};
use usdtrec_trace::form::Form;
use usdtrec_trace::unwind::known_cut::KnownCut;

use crate::stats::keys::stack::{CallStack, FrameName};
use crate::stats::number::Float;

/// The value of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyValue {
    /// The name of an event, of a thread (escaped; `:TID` where it is not known), or a text about a process (escaped).
    Name(String),
    /// A process with its name (escaped; `:PID` where it is not known).
    Process {
        /// Process id.
        pid: i32,
        /// Name of its main thread.
        comm: String,
    },
    /// A thread id, a number about the process, or the number of an interval.
    Integer(i128),
    /// A CPU.
    Cpu(u32),
    /// A file; `None` if it is not known.
    File(Option<PathBuf>),
    /// A function.
    Function(Arc<str>),
    /// An address that is in no known function.
    Address(u64),
    /// A line of source; `None` if it is not known.
    Source(Option<SourceLine>),
    /// A stack.
    Stack(CallStack),
    /// A caller that is in no known function.
    Frame(FrameName),
    /// The stack is cut, so that the caller is not known.
    Cut(KnownCut),
    /// One of the stacks beyond those that are counted one by one.
    OtherStacks,
    /// The value of an argument, which is there.
    Argument(Value),
    /// The reason why an argument's value is missing.
    Missing(String),
    /// A null pointer to a text.
    Null,
    /// One of the texts beyond those that are counted one by one.
    OtherTexts,
    /// The event has no such argument, or the process no such field.
    Absent,
}

/// What decides between equal groups: numbers by value, then texts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KeyOrder<'v> {
    Integer(i128),
    /// `None` for NaN.
    Float(Option<Float>),
    Text(Cow<'v, [u8]>),
}

impl KeyOrder<'_> {
    /// The same value without a borrowed text.
    pub(crate) fn into_owned(self) -> KeyOrder<'static> {
        match self {
            KeyOrder::Integer(number) => KeyOrder::Integer(number),
            KeyOrder::Float(number) => KeyOrder::Float(number),
            KeyOrder::Text(text) => KeyOrder::Text(Cow::Owned(text.into_owned())),
        }
    }
}

impl KeyValue {
    /// Its place among the values of the same key, which are of this form.
    pub(crate) fn order<'v>(&'v self, form: &Form) -> KeyOrder<'v> {
        let text = |text: &'v [u8]| KeyOrder::Text(Cow::Borrowed(text));
        let made = |text: String| KeyOrder::Text(Cow::Owned(text.into_bytes()));
        match self {
            Self::Name(name) => text(name.as_bytes()),
            Self::Process { pid, .. } => KeyOrder::Integer((*pid).into()),
            Self::Integer(number) => KeyOrder::Integer(*number),
            Self::Cpu(cpu) => KeyOrder::Integer((*cpu).into()),
            Self::File(None) => text(b"[unknown]"),
            Self::File(Some(path)) => text(path.file_name().unwrap_or(path.as_os_str()).as_bytes()),
            Self::Function(name) => text(name.as_bytes()),
            Self::Address(address) => made(format!("{address:#018x}")),
            Self::Source(None) => text(b"[unknown]"),
            // The lines of a file in their order.
            Self::Source(Some(source)) => made(format!("{}:{:020}", source.file, source.line)),
            Self::Stack(stack) => KeyOrder::Text(Cow::Owned(stack.order())),
            Self::Frame(frame) => KeyOrder::Text(Cow::Owned(frame.order())),
            Self::Cut(cut) => KeyOrder::Text(Cow::Owned(cut.order())),
            Self::OtherStacks => text(b"<other stacks>"),
            Self::Argument(value) => match value {
                Value::Unsigned(number) => integer((*number).into(), form),
                Value::Signed(number) => integer((*number).into(), form),
                Value::Float32(number) => KeyOrder::Float(Float::single(*number)),
                Value::Float64(number) => KeyOrder::Float(Float::double(*number)),
                Value::String(string) => text(&string.bytes),
                _ => text(b"-"),
            },
            Self::Missing(reason) => made(format!("<{reason}>")),
            Self::Null => text(b"NULL"),
            Self::OtherTexts => text(b"<other texts>"),
            Self::Absent => text(b"-"),
        }
    }
}

/// Words of an enumeration are texts.
fn integer<'v>(number: i128, form: &Form) -> KeyOrder<'v> {
    let word = match form {
        Form::Enum(words) => i64::try_from(number).ok().and_then(|at| words.get(&at)),
        _ => None,
    };
    match word {
        Some(word) => KeyOrder::Text(Cow::Owned(word.as_bytes().to_vec())),
        None => KeyOrder::Integer(number),
    }
}
