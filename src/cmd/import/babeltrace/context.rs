//! Which process, thread and CPU had an event.

use std::borrow::Cow;

use super::super::bad_line::BadLine;
use super::super::event::ImportedValue;
use super::structures::Structures;

/// What the contexts say.
#[derive(Debug)]
pub(super) struct Context<'a> {
    pub(super) cpu: Option<u32>,
    pub(super) pid: Option<u32>,
    pub(super) tid: Option<u32>,
    pub(super) comm: Option<Cow<'a, [u8]>>,
}

impl<'a> Context<'a> {
    /// Takes it out of the contexts. Of two numbers of a process, that of the host is used (`pid`, not `vpid`).
    pub(super) fn take(structures: &mut Structures<'a>) -> Result<Self, BadLine> {
        let mut number = |names, what| match structures.take_context(names) {
            Some(value) => id(&value, what),
            None => Ok(None),
        };
        let cpu = number(&["cpu_id"], "a CPU")?;
        let pid = number(&["pid", "vpid"], "a process id")?;
        let tid = number(&["tid", "vtid"], "a thread id")?;
        let comm = match structures.take_context(&["procname", "comm"]) {
            Some(ImportedValue::Text(text)) => Some(text),
            Some(other) => {
                return Err(BadLine::bytes("the name of a thread", &other.text()));
            }
            None => None,
        };
        Ok(Self {
            cpu,
            pid,
            tid,
            comm,
        })
    }
}

/// A number; -1 is none.
fn id(value: &ImportedValue<'_>, what: &'static str) -> Result<Option<u32>, BadLine> {
    let number = value.integer();
    if number == Some(-1) {
        return Ok(None);
    }
    match number.and_then(|number| u32::try_from(number).ok()) {
        Some(number) => Ok(Some(number)),
        None => Err(BadLine::bytes(what, &value.text())),
    }
}
