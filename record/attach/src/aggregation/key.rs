//! What hits are grouped by.

use std::sync::Arc;

use usdtrec_format::Value;

use super::counted_stack::CountedStack;

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
    /// The id of the container that the control group at the hit (version 2) is of.
    Container,
    /// The unit of systemd that it is of.
    Unit,
    /// The stack by frame pointers. The recording needs a call graph of them.
    Stack,
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
    /// A container or unit, or why it is not known.
    Group(Result<String, NoGroupName>),
    /// The stack.
    Stack(Arc<CountedStack>),
    /// The value of an argument, or why it is missing.
    Argument(Value),
    /// The probe has no such argument.
    Absent,
}

/// Why the container or unit of a hit is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoGroupName {
    /// The control group is of none.
    None,
    /// The control group was made after the recording began, and removed before what was counted was read.
    Removed,
}
