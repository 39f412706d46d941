//! What is found not to work in recorded processes: collected here from everywhere in the recorder, for the trace and the messages.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use usdtrec_attach::select::refusal::{NAME_BYTES, shortened};
use usdtrec_format::BuildId;
use usdtrec_format::perf::{SampleId, SampleType};
use usdtrec_format::trace::{Shortfall, ShortfallKind};
use usdtrec_kernel::trace_clock;

use crate::limits::{MAX_SAID, MAX_SHORTFALLS};

/// The same of files that appear: any user can map files.
const MAX_FILES: usize = 24;
/// The same of files that are not read for one reason.
const MAX_UNREAD: usize = 6;
/// Maximum number of processes and events that are named in one.
const NAMED: usize = 6;

/// The shortfalls of a recording. Clones are handles of the same.
#[derive(Clone, Debug, Default)]
pub struct Shortfalls(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    all: Vec<Noted>,
    /// Whether something changed since the records were written.
    has_changed: bool,
    /// All of them, if they were asked for since the last one was added.
    shared: Option<Arc<[Shortfall]>>,
}

#[derive(Debug)]
struct Noted {
    shortfall: Shortfall,
    is_written: bool,
}

/// Something that was found in one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundShortfall {
    /// What does not work.
    pub kind: ShortfallKind,
    /// The file; empty if it is about several. Shortfalls of one kind and file are one, with several processes.
    pub path: PathBuf,
    /// The process; `None` if many are counted.
    pub pid: Option<i32>,
    /// Number of processes that are new: 0 for one that was reported before.
    pub processes: u64,
    /// Events of the probes concerned.
    pub events: Vec<String>,
    /// Number of sites concerned in this process.
    pub sites: u64,
    /// Build-id of a file that appeared.
    pub build_id: Option<BuildId>,
    /// Time in which hits were missed, ns.
    pub gap_ns: Option<u64>,
    /// What was found.
    pub found: String,
    /// What follows from it.
    pub effect: String,
    /// What can be done.
    pub remedy: String,
}

impl FoundShortfall {
    /// With what a record can hold of names that a file has chosen.
    fn cut(mut self) -> Self {
        for event in &mut self.events {
            *event = shortened(event, NAME_BYTES).into_owned();
        }
        self.found = shortened(&self.found, MAX_SAID).into_owned();
        self
    }
}

impl Shortfalls {
    /// Adds what was found in a process.
    pub fn add(&self, found: FoundShortfall) {
        let found = found.cut();
        let mut known = self.known();
        known.has_changed = true;
        known.shared = None;
        let is_kind = |noted: &&Noted| {
            // What is said of some files hides no other reason for not reading files.
            let is_reason =
                found.kind != ShortfallKind::NotRead || noted.shortfall.found == found.found;
            noted.shortfall.kind == found.kind && is_reason
        };
        let is_same = |noted: &Noted| is_kind(&noted) && noted.shortfall.path == found.path;
        let of_kind = known.all.iter().filter(is_kind).count();
        let is_full = known.all.len() >= MAX_SHORTFALLS || of_kind >= most_of(found.kind);
        // Each file that was attached is one, also of the same path, until the last one is for the rest; so are each reason for not reading files, each reader,
        // and each pattern.
        let is_one = matches!(
            found.kind,
            ShortfallKind::Followed
                | ShortfallKind::NotRead
                | ShortfallKind::Reader
                | ShortfallKind::NoProbe
        );
        let same = known.all.iter().position(is_same).filter(|_| !is_one);
        let same = same.or_else(|| {
            let last = known.all.iter().rposition(|noted| is_kind(&noted));
            last.filter(|_| is_full)
        });
        let number = known.all.len();
        let noted = match same {
            Some(at) => &mut known.all[at],
            None if number < 2 * MAX_SHORTFALLS => {
                known.all.push(Noted::new(number as u32, &found));
                &mut known.all[number]
            }
            None => return,
        };
        noted.join(found);
    }

    /// Replaces what was found of a kind, of which there is one at most.
    pub fn replace(&self, found: FoundShortfall) {
        let mut known = self.known();
        let mut all = known.all.iter_mut();
        let same = all.find(|noted| noted.shortfall.kind == found.kind);
        let Some(noted) = same else {
            drop(known);
            return self.add(found);
        };
        noted.shortfall.found = found.found;
        noted.shortfall.effect = found.effect;
        noted.is_written = false;
        known.has_changed = true;
        known.shared = None;
    }

    /// All of them.
    pub fn all(&self) -> Arc<[Shortfall]> {
        let Known { all, shared, .. } = &mut *self.known();
        let all = || all.iter().map(|noted| noted.shortfall.clone()).collect();
        Arc::clone(shared.get_or_insert_with(all))
    }

    /// Passes the records of those that are new or have changed since the last call to `sink`.
    pub fn write(&self, id_type: SampleType, mut sink: impl FnMut(&[u8])) {
        let mut known = self.known();
        if !std::mem::take(&mut known.has_changed) {
            return;
        }
        let id = SampleId {
            time: trace_clock::now(),
            ..SampleId::default()
        };
        let mut record = Vec::new();
        for noted in known.all.iter_mut().filter(|noted| !noted.is_written) {
            noted.is_written = true;
            record.clear();
            // It has nothing that JSON has not.
            if noted.shortfall.encode(&id, id_type, &mut record).is_ok() {
                sink(&record);
            }
        }
    }

    /// A file begins, which must have the records of all.
    pub fn begin_file(&self) {
        let mut known = self.known();
        known.has_changed = true;
        known
            .all
            .iter_mut()
            .for_each(|noted| noted.is_written = false);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Maximum number of shortfalls of one kind.
const fn most_of(kind: ShortfallKind) -> usize {
    match kind {
        ShortfallKind::NotRead => MAX_UNREAD,
        ShortfallKind::Followed | ShortfallKind::NotFollowed | ShortfallKind::Reader => MAX_FILES,
        _ => MAX_SHORTFALLS,
    }
}

impl Noted {
    /// One without processes.
    fn new(number: u32, found: &FoundShortfall) -> Self {
        Self {
            shortfall: Shortfall {
                number,
                kind: found.kind,
                path: found.path.clone(),
                build_id: found.build_id,
                found: found.found.clone(),
                effect: found.effect.clone(),
                remedy: found.remedy.clone(),
                ..Shortfall::default()
            },
            is_written: false,
        }
    }

    fn join(&mut self, found: FoundShortfall) {
        self.is_written = false;
        let shortfall = &mut self.shortfall;
        let is_first = shortfall.processes == 0;
        if found.path != shortfall.path || !is_first && found.kind == ShortfallKind::Followed {
            shortfall.path = PathBuf::new();
            shortfall.build_id = None;
        }
        // The longest of several files.
        if found.gap_ns > shortfall.gap_ns {
            shortfall.gap_ns = found.gap_ns;
            shortfall.found = found.found;
            shortfall.effect = found.effect;
        }
        shortfall.sites = shortfall.sites.max(found.sites);
        let pid = found.pid.filter(|pid| !shortfall.pids.contains(pid));
        // Of several files of one process, which is counted once.
        if pid.is_some() || found.pid.is_none() {
            shortfall.processes += found.processes;
        }
        if let Some(pid) = pid.filter(|_| shortfall.pids.len() < NAMED) {
            shortfall.pids.push(pid);
        }
        for event in found.events {
            if shortfall.events.len() < NAMED && !shortfall.events.contains(&event) {
                shortfall.events.push(event);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use usdtrec_format::perf::Records;

    use super::*;

    const IDS: SampleType = SampleType(SampleType::TID.0 | SampleType::TIME.0);

    fn found(kind: ShortfallKind, path: &str, pid: i32) -> FoundShortfall {
        FoundShortfall {
            kind,
            path: path.into(),
            pid: Some(pid),
            processes: 1,
            events: vec!["sdt_a:b".to_owned()],
            sites: 1,
            found: format!("found in {pid}"),
            ..FoundShortfall::default()
        }
    }

    fn written(shortfalls: &Shortfalls) -> Vec<Shortfall> {
        let mut records = Vec::new();
        shortfalls.write(IDS, |record| records.extend_from_slice(record));
        let records = Records::new(&records);
        records
            .filter_map(|record| Shortfall::parse(&record, IDS))
            .collect()
    }

    #[test]
    fn the_same_in_several_processes_is_one_and_changes_are_written() {
        let shortfalls = Shortfalls::default();
        assert_eq!(written(&shortfalls), []);
        shortfalls.add(found(ShortfallKind::Semaphore, "/a", 1));
        shortfalls.add(found(ShortfallKind::NoBreakpoint, "/a", 1));
        assert_eq!(written(&shortfalls).len(), 2);
        assert_eq!(written(&shortfalls), []);
        for pid in 2..10 {
            shortfalls.add(found(ShortfallKind::Semaphore, "/a", pid));
        }
        let changed = written(&shortfalls);
        let [semaphore] = changed.as_slice() else {
            panic!("{changed:?}")
        };
        assert_eq!(semaphore.number, 0);
        assert_eq!(semaphore.processes, 9);
        assert_eq!(semaphore.pids, [1, 2, 3, 4, 5, 6]);
        assert_eq!(semaphore.found, "found in 1");
        shortfalls.begin_file();
        assert_eq!(written(&shortfalls), *shortfalls.all());
    }

    #[test]
    fn they_are_bounded() {
        let shortfalls = Shortfalls::default();
        for file in 0..1000 {
            shortfalls.add(found(ShortfallKind::Semaphore, &format!("/{file}"), file));
        }
        let all = shortfalls.all();
        assert_eq!(all.len(), MAX_SHORTFALLS);
        assert_eq!(all.iter().map(|noted| noted.processes).sum::<u64>(), 1000);
        assert_eq!(all[MAX_SHORTFALLS - 1].path, PathBuf::new());
    }

    #[test]
    fn files_that_are_not_read_hide_no_other_reason() {
        let shortfalls = Shortfalls::default();
        for file in 0..1000 {
            shortfalls.add(FoundShortfall {
                found: "no answer".to_owned(),
                ..found(ShortfallKind::NotRead, &format!("/{file}"), file / 500)
            });
        }
        shortfalls.add(found(ShortfallKind::NotRead, "", 7));
        let all = shortfalls.all();
        assert_eq!(all.len(), MAX_UNREAD + 1);
        let joined = &all[MAX_UNREAD - 1];
        assert_eq!((&*joined.path, &*joined.pids), (Path::new(""), &[0, 1][..]));
        assert_eq!(all[MAX_UNREAD].found, "found in 7");
    }

    #[test]
    fn files_that_appear_leave_room_for_others() {
        let shortfalls = Shortfalls::default();
        let last = MAX_FILES as i32 + 5;
        for file in 0..last {
            shortfalls.add(FoundShortfall {
                gap_ns: Some(if file == last - 2 { 9 } else { 3 }),
                effect: format!("effect of {file}"),
                ..found(ShortfallKind::Followed, "/same", file)
            });
        }
        // Another file of a process is not another process.
        shortfalls.add(found(ShortfallKind::Followed, "/same", last - 1));
        shortfalls.add(found(ShortfallKind::Semaphore, "/a", 1));
        let all = shortfalls.all();
        assert_eq!(all.len(), MAX_FILES + 1);
        assert_eq!(
            (&*all[0].path, all[0].gap_ns),
            (Path::new("/same"), Some(3))
        );
        let rest = &all[MAX_FILES - 1];
        assert_eq!((rest.processes, rest.gap_ns), (6, Some(9)));
        assert_eq!(rest.found, format!("found in {}", last - 2));
        assert_eq!(rest.effect, format!("effect of {}", last - 2));
        assert_eq!(rest.path, PathBuf::new());
    }
}
