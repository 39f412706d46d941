//! Reports of files that appeared, for the user and for the trace.

use std::time::Duration;

use usdtrec_attach::target::Target;
use usdtrec_buildid_cache::served::ANSWER_TIME;
use usdtrec_format::counted;
use usdtrec_format::scaled::duration;
use usdtrec_format::trace::ShortfallKind;
use usdtrec_kernel::host::process::Process;
use usdtrec_watch::shortfalls::FoundShortfall;

use super::origin::Origin;
use super::search::{RefusedFile, SelectedFile};
use crate::recording::build_ids::UnansweredFile;
use crate::recording::unread_files::UnreadCounts;
use crate::recording::unread_files::UnreadReason::{
    Denied, Ended, Failed, Late, NoAnswer, Unmapped,
};

/// Maximum number of events that are named.
const NAMED: usize = 6;

/// A file whose probes were attached.
pub(super) struct PlantedFile<'a> {
    pub(super) origin: Origin,
    /// The events, each once.
    pub(super) events: Vec<&'a str>,
    /// Number of sites.
    pub(super) sites: usize,
    /// Whether they are attached in all processes of the file, although only some are recorded.
    pub(super) is_everywhere: bool,
    /// When they were attached, ns of the trace's clock.
    pub(super) planted_at: u64,
    /// For how long the thread that mapped it was held until then; `None` if it was not.
    pub(super) held: Option<Duration>,
}

/// Makes the reports of a recording.
#[derive(Debug)]
pub(super) struct Reports {
    /// Users whose files are attached without naming them: root, and those of the recorded processes.
    users: Vec<u32>,
}

impl Reports {
    pub(super) fn for_target(target: &Target) -> Self {
        let pids: &[u32] = match target {
            Target::All => &[],
            Target::Processes(ids) | Target::Threads(ids) => ids,
            Target::Command(pid) => std::slice::from_ref(pid),
        };
        let owner = |pid: &u32| {
            let process = Process::open(i32::try_from(*pid).ok()?).ok()?;
            process.owner().ok()
        };
        let users = pids.iter().filter_map(owner);
        Self {
            users: std::iter::once(0).chain(users).collect(),
        }
    }

    pub(super) fn planted(&self, file: PlantedFile<'_>) -> FoundShortfall {
        let PlantedFile {
            origin,
            events,
            sites,
            is_everywhere,
            planted_at,
            held,
        } = file;
        let gap = planted_at.saturating_sub(origin.mapped_at);
        let gap = (origin.mapped_at > 0).then(|| Duration::from_nanos(gap));
        let (gap, when, effect) = match (held, gap) {
            (Some(held), _) => (
                Some(Duration::ZERO),
                format!(
                    "before its code ran: the thread was held for {}",
                    duration(held.as_nanos() as f64)
                ),
                "no hit is missed",
            ),
            (None, Some(gap)) => (
                Some(gap),
                format!("{} after it was mapped", duration(gap.as_nanos() as f64)),
                "hits in that time are not recorded",
            ),
            (None, None) => (
                None,
                "after it was mapped".to_owned(),
                "hits in that time are not recorded",
            ),
        };
        let probes = counted(events.len(), "probe");
        let owner = self.owner(&origin);
        let earlier = match origin.ended {
            0 => String::new(),
            ended => format!(
                ", and after {} that mapped it ended before it was read",
                counted(ended, "program")
            ),
        };
        let scope = match is_everywhere {
            true => ", in all processes of the file",
            false => "",
        };
        FoundShortfall {
            kind: ShortfallKind::Followed,
            events: named(events.iter().map(ToString::to_string)),
            sites: sites as u64,
            gap_ns: gap.map(|gap| gap.as_nanos() as u64),
            found: format!("attached {probes} {when}{earlier}{scope}{owner}"),
            effect: effect.to_owned(),
            ..about(origin)
        }
    }

    pub(super) fn refused(&self, file: RefusedFile) -> FoundShortfall {
        let RefusedFile { file, reason } = file;
        let pattern = &file.pattern;
        let owner = self.owner(&file.origin);
        let found = format!(
            "mapped while recording, with probes that match '{pattern}'{owner}, not attached: {reason}"
        );
        not_followed(file, found, "its hits are not recorded")
    }

    /// Probes that are not attached, although others of their file are.
    pub(super) fn refused_probes(&self, file: RefusedFile) -> FoundShortfall {
        let RefusedFile { file, reason } = file;
        let probes = counted(file.events.len(), "probe");
        let owner = self.owner(&file.origin);
        let found = format!("mapped while recording{owner}: {probes} not attached: {reason}");
        not_followed(file, found, "their hits are not recorded")
    }

    /// The owner of a file, if another user than root and those of the recorded processes.
    fn owner(&self, origin: &Origin) -> String {
        match self.users.contains(&origin.owner) {
            true => String::new(),
            false => format!(" (owned by user {})", origin.owner),
        }
    }
}

/// The reports of files that were not read, so that it is not known whether they have selected probes; `too_many` is the number of those for
/// which there was no time.
pub(super) fn unread(
    too_many: usize,
    counts: UnreadCounts,
) -> impl Iterator<Item = FoundShortfall> {
    let of = |reason| counts.of(reason);
    let programs = of(Ended);
    let its = match programs {
        1 => "its",
        _ => "their",
    };
    let ended = counted(programs, "program");
    let ended = format!("{ended} ended before {its} file was read");
    let unanswered = counted(counts.processes, "process");
    let unanswered = format!("not read in time: the mappings of {unanswered}");
    let files = [
        (of(Unmapped), ", unmapped first"),
        (too_many, ", too many at once"),
        (of(Denied), " that this user may not open"),
        (of(NoAnswer), " whose file system did not answer in time"),
        (of(Failed), " that could not be opened"),
        (of(Late), ", mapped later: the recording follows none"),
    ];
    let files = files.map(|(number, which)| {
        let files = counted(number, "file");
        (number, format!("not read: {files}{which}"))
    });
    let processes = [(programs, ended), (counts.processes, unanswered)];
    let found = processes.into_iter().chain(files);
    let found = found.filter(|(number, _)| *number > 0);
    let found = found.map(move |(number, found)| FoundShortfall {
        kind: ShortfallKind::NotRead,
        processes: number as u64,
        found,
        effect: match number {
            1 => "hits of its probes, if it has selected ones, are not recorded".to_owned(),
            _ => "hits of their probes, if they have selected ones, are not recorded".to_owned(),
        },
        ..FoundShortfall::default()
    });
    found.chain(lost(counts.lost_records))
}

/// The report of a file whose file system did not answer.
pub(in crate::recording) fn unanswered(file: &UnansweredFile) -> FoundShortfall {
    FoundShortfall {
        kind: ShortfallKind::NotRead,
        path: file.path.clone(),
        pid: Some(file.pid),
        processes: 1,
        found: format!(
            "not read: its file system did not answer within {} s",
            ANSWER_TIME.as_secs()
        ),
        effect: "hits of its probes, if it has selected ones, are not recorded until it answers; it is tried again".to_owned(),
        ..FoundShortfall::default()
    }
}

/// The report of lost process records.
fn lost(records: u64) -> Option<FoundShortfall> {
    let were = match records {
        0 => return None,
        1 => "was",
        _ => "were",
    };
    let records_lost = counted(records, "process record");
    Some(FoundShortfall {
        kind: ShortfallKind::NotRead,
        processes: records,
        found: format!("{records_lost} {were} lost: files that were mapped then may not be read"),
        effect: "hits of their probes, if they have selected ones, are not recorded".to_owned(),
        ..FoundShortfall::default()
    })
}

fn not_followed(file: SelectedFile, found: String, effect: &str) -> FoundShortfall {
    let SelectedFile { origin, events, .. } = file;
    FoundShortfall {
        kind: ShortfallKind::NotFollowed,
        events: named(events.into_iter()),
        found,
        effect: effect.to_owned(),
        ..about(origin)
    }
}

fn named(events: impl Iterator<Item = String>) -> Vec<String> {
    events.take(NAMED).collect()
}

fn about(origin: Origin) -> FoundShortfall {
    FoundShortfall {
        path: origin.path,
        pid: Some(origin.pid),
        processes: 1,
        build_id: origin.build_id,
        ..FoundShortfall::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(owner: u32) -> Origin {
        Origin {
            pid: 7,
            tid: 7,
            mapped_at: 1_000_000,
            path: "/lib/x.so".into(),
            ended: 0,
            build_id: None,
            owner,
        }
    }

    #[test]
    fn the_gap_and_a_foreign_owner_are_named() {
        let reports = Reports::for_target(&Target::All);
        let planted = |owner, mapped_at, held| {
            reports.planted(PlantedFile {
                origin: Origin {
                    mapped_at,
                    ..origin(owner)
                },
                events: vec!["sdt_x:a", "sdt_x:b"],
                sites: 3,
                is_everywhere: false,
                planted_at: 4_200_000,
                held,
            })
        };
        let own = planted(0, 1_000_000, None);
        assert_eq!(own.found, "attached 2 probes 3.2ms after it was mapped");
        assert_eq!(
            (own.gap_ns, own.sites, own.pid),
            (Some(3_200_000), 3, Some(7))
        );
        let foreign = planted(1000, 0, None);
        assert_eq!(
            foreign.found,
            "attached 2 probes after it was mapped (owned by user 1000)"
        );
        assert_eq!(foreign.gap_ns, None);
        let later = reports.planted(PlantedFile {
            origin: Origin {
                ended: 2,
                ..origin(0)
            },
            events: vec!["sdt_x:a"],
            sites: 1,
            is_everywhere: false,
            planted_at: 4_200_000,
            held: None,
        });
        assert_eq!(
            later.found,
            "attached 1 probe 3.2ms after it was mapped, and after 2 programs that mapped it ended before it was read"
        );
        let held = planted(0, 1_000_000, Some(Duration::from_micros(3_100)));
        assert_eq!(
            held.found,
            "attached 2 probes before its code ran: the thread was held for 3.1ms"
        );
        assert_eq!(held.effect, "no hit is missed");
        assert_eq!(held.gap_ns, Some(0));
        let mine = std::process::id();
        let reports = Reports::for_target(&Target::Processes(vec![mine]));
        let user = rustix::process::geteuid().as_raw();
        assert_eq!(reports.owner(&origin(user)), "");
    }

    #[test]
    fn what_was_not_read_is_said_by_its_reason() {
        let mut counts = UnreadCounts {
            lost_records: 4,
            ..UnreadCounts::default()
        };
        counts.processes = 2;
        counts.by_reason[Ended as usize] = 1;
        counts.by_reason[Denied as usize] = 2;
        let found: Vec<String> = unread(3, counts).map(|unread| unread.found).collect();
        assert_eq!(
            found,
            [
                "1 program ended before its file was read",
                "not read in time: the mappings of 2 processes",
                "not read: 3 files, too many at once",
                "not read: 2 files that this user may not open",
                "4 process records were lost: files that were mapped then may not be read"
            ]
        );
        assert_eq!(unread(0, UnreadCounts::default()).count(), 0);
    }
}
