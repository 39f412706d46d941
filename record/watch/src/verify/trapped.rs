//! Processes that were killed by SIGTRAP while probes were attached in their code.
//!
//! The kernel knows a breakpoint by the file and the offset of the mapping that has it. In a copy that the program made of its code it finds no
//! probe, and takes the breakpoint for the program's own (kernel/events/uprobes.c, `handle_swbp`).

use std::collections::HashSet;

use usdtrec_format::trace::ShortfallKind;

use super::expected::ExpectedFiles;
use crate::limits::MAX_TRAPPED;
use crate::shortfalls::{FoundShortfall, Shortfalls};

/// What is found of a process that was killed by its copy of a breakpoint.
pub const TRAPPED: &str = "killed by SIGTRAP";
/// Number of events that are named.
const NAMED: usize = 2;

/// The processes of which it was reported.
#[derive(Debug, Default)]
pub(super) struct TrappedProcesses(HashSet<i32>);

impl TrappedProcesses {
    pub(super) fn has(&self, pid: i32) -> bool {
        self.0.contains(&pid)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reports one, once; `None` if it is not known which.
    pub(super) fn report(
        &mut self,
        pid: Option<i32>,
        files: &ExpectedFiles,
        shortfalls: &Shortfalls,
    ) {
        if let Some(pid) = pid
            && (self.0.len() >= MAX_TRAPPED || !self.0.insert(pid))
        {
            return;
        }
        let sites = files.0.iter().flat_map(|file| &file.sites);
        shortfalls.add(FoundShortfall {
            kind: ShortfallKind::MovedCode,
            pid,
            processes: 1,
            events: sites.map(|site| site.event.clone()).take(NAMED).collect(),
            found: format!(
                "{TRAPPED}: most likely it copied its code, and executed a breakpoint of this recording in the copy, where the kernel takes it for the \
                 program's own (huge pages, as those of Node.js, iodlr and BOLT's hugify; Valgrind; a checkpoint that was restored)"
            ),
            effect: "without a recording it does not end like this, unless it has breakpoints of its own"
                .to_owned(),
            remedy: "attach the probes after it has copied its code: it then runs on, but hits in the copy are not recorded; or run it so that it does \
                     not copy its code, and all are recorded"
                .to_owned(),
            ..FoundShortfall::default()
        });
    }
}
