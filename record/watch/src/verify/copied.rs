//! Files with semaphores that a process maps more than once.

use usdtrec_format::trace::ShortfallKind;

use super::expected::{ExpectedFile, ExpectedFiles};
use crate::semaphores::copies::{CopiedSemaphore, Copies};
use crate::semaphores::left_raised::not_lowered;
use crate::shortfalls::{FoundShortfall, Shortfalls};

/// Raises the semaphores of the copies that the kernel does not raise, and reports these copies.
#[derive(Debug, Default)]
pub(super) struct CopiedFiles {
    /// `None` if they are only reported.
    pub(super) copies: Option<Copies>,
}

impl CopiedFiles {
    /// Raises what a look has found in a process. Returns whether all semaphores of copies are raised.
    pub(super) fn raise(
        &mut self,
        pid: i32,
        copied: &[CopiedSemaphore],
        files: &ExpectedFiles,
        shortfalls: &Shortfalls,
    ) -> bool {
        let Some(copies) = &mut self.copies else {
            return false;
        };
        let mut is_raised = true;
        let by_hand = copies.has(pid);
        let concerned = |semaphore: &&CopiedSemaphore| by_hand || semaphore.copies > 1;
        for semaphore in copied.iter().filter(concerned) {
            let Some(file) = files.0.get(semaphore.file) else {
                continue;
            };
            let raised = (file.identity).map(|file| copies.raise(pid, file, semaphore));
            let Some(Ok(number)) = raised else {
                is_raised = false;
                continue;
            };
            if number > 0 {
                let found = format!(
                    "the process maps it {} times (dlmopen, LD_AUDIT): the kernel raises the semaphore of one copy only, and the recorder raised \
                     those of the others when it found them",
                    semaphore.copies
                );
                let is_concerned = |ref_ctr| ref_ctr == semaphore.offset;
                shortfalls.add(FoundShortfall {
                    kind: ShortfallKind::Gap,
                    found,
                    effect: "hits of these copies before that are missing".to_owned(),
                    ..of_file(pid, file, is_concerned)
                });
            }
        }
        is_raised
    }

    /// Whether semaphores of a process are raised by hand.
    pub(super) fn has(&self, pid: i32) -> bool {
        self.copies.as_ref().is_some_and(|copies| copies.has(pid))
    }

    /// Forgets a process that has ended, or begins another program.
    pub(super) fn forget(&mut self, pid: i32) {
        if let Some(copies) = &mut self.copies {
            copies.forget(pid);
        }
    }

    /// Lowers what was raised by hand, and reports the processes in which that failed.
    pub(super) fn lower(&mut self, shortfalls: &Shortfalls) {
        let copies = self.copies.take();
        let failed = copies.map_or_else(Vec::new, |mut copies| copies.lower());
        for (pid, error) in failed {
            shortfalls.add(not_lowered(pid, &error));
        }
    }

    /// Reports that a process mapped a file at so many addresses, and was not looked at since.
    pub(super) fn report_unseen(
        pid: i32,
        file: &ExpectedFile,
        copies: usize,
        shortfalls: &Shortfalls,
    ) {
        if copies < 2 || !has_semaphores(file) {
            return;
        }
        let found = format!(
            "the process mapped it at {copies} addresses (dlmopen, LD_AUDIT), and ended before it was looked at: the kernel raises the semaphore of one \
             copy only"
        );
        shortfalls.add(FoundShortfall {
            kind: ShortfallKind::Semaphore,
            found,
            effect: "hits of the other copies are missing".to_owned(),
            ..of_file(pid, file, |ref_ctr| ref_ctr != 0)
        });
    }
}

/// Whether the kernel raises semaphores of a file.
pub(super) fn has_semaphores(file: &ExpectedFile) -> bool {
    file.sites.iter().any(|site| site.ref_ctr != 0)
}

/// What is the same of all that is found of a file in a process.
fn of_file(pid: i32, file: &ExpectedFile, is_concerned: impl Fn(u64) -> bool) -> FoundShortfall {
    let sites = file.sites.iter().filter(|site| is_concerned(site.ref_ctr));
    FoundShortfall {
        path: file.path.clone(),
        pid: Some(pid),
        processes: 1,
        events: sites.map(|site| site.event.clone()).collect(),
        ..FoundShortfall::default()
    }
}
