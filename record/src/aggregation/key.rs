//! What hits are grouped by.

use usdtrec_format::Value;

/// What hits are grouped by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AggregateKey {
    /// The name of the thread.
    Comm,
    /// The process.
    Pid,
    /// The thread.
    Tid,
    /// The real user id of the process, in the initial user namespace.
    Uid,
    /// An argument, by its name, or as `arg1`, `arg2`, ….
    Argument(String),
}

/// What a key is in a group.
#[derive(Clone, Debug, PartialEq)]
pub enum AggregateValue {
    /// The name of the thread at the hit.
    Comm(Vec<u8>),
    /// A process, thread or user.
    Number(u32),
    /// The value of an argument, or why it is missing.
    Argument(Value),
    /// The probe has no such argument.
    Absent,
}
