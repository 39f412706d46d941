//! Control groups of processes, the programs that they execute, their parents and services, over time.

use std::collections::BTreeMap;

use usdtrec_format::perf::{RawRecord, SampleType};
use usdtrec_format::trace::ProcessCgroup;

use crate::process::interner::{StringId, StringPool};
use crate::process::names::{EscapedName, NameId, Names};

/// What a recorder read of a process, which holds from a time on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CgroupNote {
    /// ns.
    time: u64,
    pid: i32,
    parent: Option<u32>,
    /// As [`RecordedFacts::names`].
    names: [Option<StringId>; NAMES],
}

/// Number of the strings that are recorded of a process.
const NAMES: usize = 4;

/// The control groups and programs of all processes.
#[derive(Debug, Default)]
pub(crate) struct Cgroups {
    paths: Names,
    /// By process and time, ns.
    notes: BTreeMap<(i32, u64), RecordedFacts>,
}

/// What a recorder read of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordedFacts {
    /// Its parent.
    pub(crate) parent: Option<u32>,
    /// Path of its control group, path of its program, name of its parent, name of its service.
    names: [Option<NameId>; NAMES],
}

impl RecordedFacts {
    /// Path of the control group.
    pub const fn path(&self) -> Option<NameId> {
        self.names[0]
    }

    /// Path of the program.
    pub(crate) const fn exe(&self) -> Option<NameId> {
        self.names[1]
    }

    /// Name of the parent.
    pub(crate) const fn parent_name(&self) -> Option<NameId> {
        self.names[2]
    }

    /// Name of the service.
    pub const fn service(&self) -> Option<NameId> {
        self.names[3]
    }

    /// All names, which are replaced when others are forgotten.
    pub(crate) fn names_mut(&mut self) -> impl Iterator<Item = &mut NameId> {
        self.names.iter_mut().flatten()
    }
}

/// What is known of a process for a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CgroupSpan {
    pub(crate) facts: RecordedFacts,
    /// First time, ns.
    pub(crate) from: u64,
    /// Time after the last, ns; `u64::MAX` for the end.
    pub(crate) until: u64,
}

impl CgroupNote {
    /// A record's; `None` if it is too short. `intern` keeps strings.
    pub(crate) fn from_record(
        record: &RawRecord<'_>,
        sample_type: SampleType,
        mut intern: impl FnMut(&[u8]) -> StringId,
    ) -> Option<Self> {
        let read = ProcessCgroup::parse(record, sample_type)?;
        let known = |string: &[u8]| (!string.is_empty()).then(|| intern(string));
        Some(Self {
            time: read.id.time,
            pid: read.pid,
            parent: u32::try_from(read.parent).ok().filter(|parent| *parent > 0),
            names: [read.path, read.exe, read.parent_name, read.service].map(known),
        })
    }

    /// With the numbers of another pool.
    pub(crate) fn renumbered(self, number: impl Fn(StringId) -> StringId) -> Self {
        let names = self.names.map(|name| name.map(&number));
        Self { names, ..self }
    }
}

impl Cgroups {
    /// Adds notes. Of two of a process with the same time, the last one holds.
    pub(crate) fn learn(&mut self, notes: Vec<CgroupNote>, strings: &StringPool) {
        for note in notes {
            let mut intern = |path: StringId| self.paths.intern(strings.get(path));
            let facts = RecordedFacts {
                parent: note.parent,
                names: note.names.map(|name| name.map(&mut intern)),
            };
            self.notes.insert((note.pid, note.time), facts);
        }
    }

    /// Whether there are no notes.
    pub(crate) fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    /// Whether something is known of any process.
    pub(crate) fn has(&self, is_known: impl Fn(&RecordedFacts) -> bool) -> bool {
        self.notes.values().any(is_known)
    }

    /// Where a process is at a time, and from when to when.
    pub(crate) fn at(&self, pid: i32, time: u64) -> CgroupSpan {
        let before = self.notes.range((pid, 0)..=(pid, time)).next_back();
        let after = time
            .checked_add(1)
            .map(|after| (pid, after)..=(pid, u64::MAX));
        let next = after.and_then(|after| self.notes.range(after).next());
        CgroupSpan {
            facts: before.map(|(_, facts)| *facts).unwrap_or_default(),
            from: before.map_or(0, |((_, from), _)| *from),
            until: next.map_or(u64::MAX, |((_, until), _)| *until),
        }
    }

    /// The path of a control group or a program.
    pub(crate) fn path(&self, id: NameId) -> Option<EscapedName<'_>> {
        self.paths.get(id)
    }

    /// Forgets where processes of a stream no longer were at a time, and the processes that do not live any more. Paths get new numbers, and so do
    /// those that are `used` elsewhere.
    pub(crate) fn forget_before<'n>(
        &mut self,
        time: u64,
        lives: impl Fn(i32) -> bool,
        used: impl Iterator<Item = &'n mut NameId>,
    ) {
        let mut newer = None;
        let mut kept = BTreeMap::new();
        // Of each process, the last one up to the time holds.
        while let Some(((pid, from), facts)) = self.notes.pop_last() {
            let has_newer = newer == Some(pid);
            if from <= time {
                newer = Some(pid);
            }
            if from > time || (!has_newer && lives(pid)) {
                kept.insert((pid, from), facts);
            }
        }
        let paths = kept.values_mut().flat_map(RecordedFacts::names_mut);
        // As long as those of the notes.
        let used = used.map(|id| &mut *id);
        self.paths.keep(paths.chain(used));
        self.notes = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::{CgroupNote, Cgroups, NAMES};
    use crate::process::interner::StringPool;

    fn known(notes: &[(i32, u64, &str)]) -> Cgroups {
        let mut strings = StringPool::default();
        let note = |&(pid, time, path): &(i32, u64, &str)| CgroupNote {
            time,
            pid,
            parent: u32::try_from(pid - 1).ok(),
            names: match path {
                "" => [None; NAMES],
                path => [path, &format!("/bin{path}"), "sh", "shop"]
                    .map(|name| Some(strings.intern(name.as_bytes()).0)),
            },
        };
        let notes = notes.iter().map(note).collect();
        let mut cgroups = Cgroups::default();
        cgroups.learn(notes, &strings);
        cgroups
    }

    fn path(cgroups: &Cgroups, pid: i32, time: u64) -> Option<&str> {
        let facts = cgroups.at(pid, time).facts;
        let path = cgroups.path(facts.path()?)?.unescaped();
        let [exe, parent, service] = [facts.exe(), facts.parent_name(), facts.service()]
            .map(|name| name.and_then(|name| cgroups.path(name)));
        assert_eq!(exe?.unescaped(), format!("/bin{path}"));
        assert_eq!(parent?.unescaped(), "sh");
        assert_eq!(service?.unescaped(), "shop");
        assert_eq!(facts.parent, u32::try_from(pid - 1).ok());
        Some(path)
    }

    #[test]
    fn a_later_process_of_the_same_id_is_not_in_the_group_of_the_first() {
        let cgroups = known(&[(7, 10, "/a"), (7, 20, ""), (7, 30, "/b"), (8, 15, "/c")]);
        for (time, expected) in [
            (9, None),
            (10, Some("/a")),
            (19, Some("/a")),
            (20, None),
            (30, Some("/b")),
            (u64::MAX, Some("/b")),
        ] {
            assert_eq!(path(&cgroups, 7, time), expected, "at {time}");
        }
        let span = cgroups.at(7, 12);
        assert_eq!((span.from, span.until), (10, 20));
        assert_eq!(path(&cgroups, 6, 15), None);
    }

    #[test]
    fn what_holds_is_kept() {
        let mut cgroups = known(&[
            (7, 10, "/a"),
            (7, 20, "/b"),
            (7, 30, "/c"),
            (8, 15, "/d"),
            (9, 26, "/e"),
        ]);
        // What is forgotten of a process, and what stays.
        let mut used = [12, 20].map(|time| cgroups.at(7, time).facts.path().unwrap());
        cgroups.forget_before(25, |pid| pid == 7, used.iter_mut());
        let used = used.map(|id| cgroups.path(id).unwrap().unescaped());
        assert_eq!(used, ["/a", "/b"]);
        assert_eq!(path(&cgroups, 7, 12), None);
        assert_eq!(path(&cgroups, 7, 25), Some("/b"));
        assert_eq!(path(&cgroups, 7, 30), Some("/c"));
        assert_eq!(path(&cgroups, 8, 25), None);
        assert_eq!(path(&cgroups, 9, 26), Some("/e"));
        assert_eq!(cgroups.notes.len(), 3);
    }
}
