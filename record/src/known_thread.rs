//! Records that say of a thread what is known of it already.

use usdtrec_format::perf::{Comm, SampleId, SampleType, Task};

/// A thread that ran before the records begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownThread<'a> {
    pub(crate) pid: i32,
    pub(crate) tid: i32,
    /// The process that started it.
    pub(crate) parent: i32,
    /// `None` if it is not known.
    pub(crate) name: Option<&'a [u8]>,
}

impl KnownThread<'_> {
    /// Appends the records, which have no time.
    pub(crate) fn encode(self, id_type: SampleType, out: &mut Vec<u8>) {
        let Self {
            pid,
            tid,
            parent,
            name,
        } = self;
        let id = SampleId {
            pid,
            tid,
            ..SampleId::default()
        };
        let fork = Task {
            pid,
            parent_pid: parent,
            tid,
            parent_tid: parent,
            time: 0,
            already_ran: true,
            id,
        };
        fork.encode_fork(id_type, out);
        if let Some(name) = name {
            Comm {
                pid,
                tid,
                exec: false,
                name,
                id,
            }
            .encode(id_type, out);
        }
    }
}
