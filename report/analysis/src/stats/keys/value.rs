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
    /// The name of an event, of a thread (escaped; `:TID` where it is not known), or a string about a process (escaped).
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
    /// A null pointer to a string.
    Null,
    /// One of the strings beyond those that are counted one by one.
    OtherStrings,
    /// The event has no such argument, or the process no such field.
    Absent,
}

/// What decides between equal groups: numbers by value, then strings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KeyOrder<'v> {
    Integer(i128),
    /// `None` for NaN.
    Float(Option<Float>),
    String(Cow<'v, [u8]>),
}

impl KeyOrder<'_> {
    /// The same value without a borrowed string.
    pub(crate) fn into_owned(self) -> KeyOrder<'static> {
        match self {
            KeyOrder::Integer(number) => KeyOrder::Integer(number),
            KeyOrder::Float(number) => KeyOrder::Float(number),
            KeyOrder::String(borrowed) => KeyOrder::String(Cow::Owned(borrowed.into_owned())),
        }
    }
}

impl KeyValue {
    /// Its place among the values of the same key, which are of this form.
    pub(crate) fn order<'v>(&'v self, form: &Form) -> KeyOrder<'v> {
        let borrowed = |bytes: &'v [u8]| KeyOrder::String(Cow::Borrowed(bytes));
        let made = |owned: String| KeyOrder::String(Cow::Owned(owned.into_bytes()));
        match self {
            Self::Name(name) => borrowed(name.as_bytes()),
            Self::Process { pid, .. } => KeyOrder::Integer((*pid).into()),
            Self::Integer(number) => KeyOrder::Integer(*number),
            Self::Cpu(cpu) => KeyOrder::Integer((*cpu).into()),
            Self::File(None) => borrowed(b"[unknown]"),
            Self::File(Some(path)) => {
                borrowed(path.file_name().unwrap_or(path.as_os_str()).as_bytes())
            }
            Self::Function(name) => borrowed(name.as_bytes()),
            Self::Address(address) => made(format!("{address:#018x}")),
            Self::Source(None) => borrowed(b"[unknown]"),
            // The lines of a file in their order.
            Self::Source(Some(source)) => made(format!("{}:{:020}", source.file, source.line)),
            Self::Stack(stack) => KeyOrder::String(Cow::Owned(stack.order())),
            Self::Frame(frame) => KeyOrder::String(Cow::Owned(frame.order())),
            Self::Cut(cut) => KeyOrder::String(Cow::Owned(cut.order())),
            Self::OtherStacks => borrowed(b"<other stacks>"),
            Self::Argument(value) => match value {
                Value::Unsigned(number) => integer((*number).into(), form),
                Value::Signed(number) => integer((*number).into(), form),
                Value::Float32(number) => KeyOrder::Float(Float::single(*number)),
                Value::Float64(number) => KeyOrder::Float(Float::double(*number)),
                Value::String(string) => borrowed(&string.bytes),
                _ => borrowed(b"-"),
            },
            Self::Missing(reason) => made(format!("<{reason}>")),
            Self::Null => borrowed(b"NULL"),
            Self::OtherStrings => borrowed(b"<other strings>"),
            Self::Absent => borrowed(b"-"),
        }
    }

    /// What tells values of one [`order`](Self::order) apart: the folder of a file, the name of a process, or what kind of value it is, and whether a string is cut.
    pub(crate) fn rest(&self) -> (u8, &[u8]) {
        match self {
            Self::File(Some(path)) => (0, path.as_os_str().as_bytes()),
            Self::Process { comm, .. } => (0, comm.as_bytes()),
            Self::Null => (1, &[]),
            Self::Missing(_) => (2, &[]),
            Self::OtherStrings => (3, &[]),
            Self::Absent | Self::File(None) => (4, &[]),
            Self::Argument(Value::String(string)) if string.cut => (5, &[]),
            _ => (0, &[]),
        }
    }
}

/// Words of an enumeration are strings.
fn integer<'v>(number: i128, form: &Form) -> KeyOrder<'v> {
    let word = match form {
        Form::Enum(words) => i64::try_from(number).ok().and_then(|at| words.get(&at)),
        _ => None,
    };
    match word {
        Some(word) => KeyOrder::String(Cow::Owned(word.as_bytes().to_vec())),
        None => KeyOrder::Integer(number),
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use usdtrec_format::StringAt;

    use super::*;
    use crate::stats::keys::key::Key;

    /// Values that look alike have one order in every run.
    #[test]
    fn different_values_are_never_equal() {
        let file = |path: &str| KeyValue::File(Some(PathBuf::from(path)));
        let process = |pid, comm: &str| KeyValue::Process {
            pid,
            comm: comm.to_owned(),
        };
        let string = KeyValue::Argument(Value::String(StringAt {
            address: 0,
            bytes: b"NULL".to_vec(),
            cut: false,
            guessed: false,
            from_file: false,
        }));
        let files = [file("/b/a.so"), file("/a/b.so"), file("/c/b.so")];
        let processes = [process(3, "z"), process(7, "a"), process(7, "b")];
        let cut = match &string {
            KeyValue::Argument(Value::String(whole)) => {
                let cut = true;
                KeyValue::Argument(Value::String(StringAt {
                    cut,
                    ..whole.clone()
                }))
            }
            other => other.clone(),
        };
        let strings = [string, KeyValue::Null, cut];
        let compared = |key: Key, values: &[KeyValue]| {
            for pair in values.windows(2) {
                let [a, b] = pair else { unreachable!() };
                let keys = [key.clone()];
                let (a, b) = (std::slice::from_ref(a), std::slice::from_ref(b));
                assert_eq!(Key::compare(&keys, a, b), Ordering::Less, "{a:?} {b:?}");
                assert_eq!(Key::compare(&keys, b, a), Ordering::Greater, "{a:?} {b:?}");
            }
        };
        compared(Key::Dso, &files);
        compared(Key::Pid, &processes);
        compared(Key::Tid, &strings);
        // The order of all keys decides before what else tells values apart.
        let keys = [Key::Dso, Key::Tid];
        let row = |path: &str, tid| [file(path), KeyValue::Integer(tid)];
        let order = Key::compare(&keys, &row("/b/a.so", 1), &row("/a/a.so", 2));
        assert_eq!(order, Ordering::Less);
    }
}
