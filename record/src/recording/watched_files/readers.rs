//! Naming the programs that read files with breakpoints.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use usdtrec_format::trace::ShortfallKind;
use usdtrec_kernel::host::kernel_version::tells_processes;
use usdtrec_kernel::host::process::Process;
use usdtrec_watch::shortfalls::{FoundShortfall, Shortfalls};

use super::file::ProbedFile;
use super::search::{Mapped, mapped_by};

/// Loaders map a file as readers do, and execute it a moment later.
pub(super) const LOADER_TIME: Duration = Duration::from_secs(1);
/// Maximum number of programs and files that are named, and of processes that are looked at once more.
const MAX_NAMED: usize = 256;
const MAX_SUSPECTED: usize = 256;

/// What leaves readers alone, where children can be held until probes are attached to them (Linux 6.18).
pub const SPARED: &str = "to record named processes or a command plants none in others";
/// The same where probes can be attached to single processes (Linux 6.11).
pub const SPARED_ALONE: &str =
    "to record named processes without their children plants none in others";

/// The programs that were named, and the processes that may be readers.
#[derive(Debug, Default)]
pub(super) struct Readers {
    /// Name of the program, and place of the file.
    named: HashSet<(String, usize)>,
    /// Process and place of the file, and when it was seen.
    suspected: Vec<(i32, usize, Instant)>,
    /// Whether other processes than recorded ones and their children can be left without breakpoints.
    holds: bool,
}

impl Readers {
    pub(super) fn new(holds: bool) -> Self {
        Self {
            holds,
            ..Self::default()
        }
    }

    /// Notes a process that was seen reading. It is named if it still does a moment later.
    pub(super) fn suspect(&mut self, pid: i32, file: usize) {
        let is_known = self
            .suspected
            .iter()
            .any(|(of, at, _)| (*of, *at) == (pid, file));
        if !is_known && self.suspected.len() < MAX_SUSPECTED {
            self.suspected.push((pid, file, Instant::now()));
        }
    }

    /// Names the processes that were seen a moment ago and still read.
    pub(super) fn look_again(&mut self, files: &[ProbedFile], shortfalls: &Shortfalls) {
        const READS_ONLY: Mapped = Mapped {
            executes: false,
            reads: true,
        };
        let is_due = |(_, _, since): &mut (i32, usize, Instant)| since.elapsed() >= LOADER_TIME;
        let due: Vec<(i32, usize, Instant)> = self.suspected.extract_if(.., is_due).collect();
        let places: Vec<usize> = due.iter().map(|(_, at, _)| *at).collect();
        let mut mapped = HashMap::new();
        for (pid, at, _) in due {
            let Ok(stat) = Process::open(pid).and_then(|process| process.stat()) else {
                continue;
            };
            let by_process = mapped
                .entry(pid)
                .or_insert_with(|| mapped_by(pid, files, &places));
            if let Some(file) = files.get(at)
                && by_process.get(&at) == Some(&READS_ONLY)
            {
                let name = String::from_utf8_lossy(&stat.comm).into_owned();
                self.name(name, pid, (at, file), shortfalls);
            }
        }
    }

    /// Names a program, once for each file.
    pub(super) fn name(
        &mut self,
        name: String,
        pid: i32,
        (at, file): (usize, &ProbedFile),
        shortfalls: &Shortfalls,
    ) {
        let key = (name, at);
        if self.named.len() >= MAX_NAMED || self.named.contains(&key) {
            return;
        }
        let remedy = match (self.holds, tells_processes()) {
            (true, _) => SPARED,
            (false, true) => SPARED_ALONE,
            (false, false) => "what is to be written from it should not be recorded meanwhile",
        };
        shortfalls.add(FoundShortfall {
            kind: ShortfallKind::Reader,
            path: file.path.clone(),
            pid: Some(pid),
            processes: 1,
            events: file.events.iter().take(1).cloned().collect(),
            sites: file.sites() as u64,
            build_id: file.build_id,
            found: format!(
                "{} ({pid}) reads {} while it has breakpoints",
                key.0,
                file.path.display()
            ),
            effect: "what it writes from it may be broken".to_owned(),
            remedy: remedy.to_owned(),
            ..FoundShortfall::default()
        });
        self.named.insert(key);
    }
}
