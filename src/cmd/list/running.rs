//! `list -a`: the files with probes that run on this host, the processes that run them, and where these are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, BufWriter, Write};

use serde::Serialize;
use unicode_width::UnicodeWidthStr as _;
use usdtrec_buildid_cache::{BuildError, Running, RunningFile, WantedFile, live_directory};
use usdtrec_format::control_group::{container_id, path_of_process, unit};
use usdtrec_format::escape::{escape, escape_json, shown};
use usdtrec_format::{BuildId, Pattern, Probe, counted};

use crate::cli::{ListArgs, ListFormat};
use crate::cmd::selection;
#[cfg(feature = "record")]
use crate::shell;
use crate::text_room::{self, Fold};

/// Digits of a container's id that texts show.
const CONTAINER_DIGITS: usize = 12;
/// Digits of a build-id that texts show.
const BUILD_ID_DIGITS: usize = 12;

/// A file that runs, and its probes that were asked for.
pub(in crate::cmd) struct Matching<'a> {
    pub(in crate::cmd) running: &'a RunningFile,
    pub(in crate::cmd) probes: Vec<&'a Probe>,
}

#[cfg(feature = "record")]
impl Matching<'_> {
    /// Whether it was deleted or replaced since it was mapped: its path does not lead to it.
    pub(super) const fn is_deleted(&self) -> bool {
        self.running.mapped.deleted
    }

    /// The options of `record` for the probes of its first provider: those in all its processes, or of a file that has no path in one of them.
    pub(super) fn for_record(&self) -> String {
        let provider = self.probes.first().map_or("", |probe| &probe.provider);
        let pattern = format!("{provider}:*");
        match self.running.processes.first() {
            Some(pid) if self.is_deleted() => format!("-p {pid} -e {}", shell::word(pattern)),
            _ => format!(
                "-a -e {}",
                shell::event(&pattern, self.running.mapped.file.path())
            ),
        }
    }
}

/// The files with probes that match any of the patterns (all probes without patterns).
///
/// # Errors
/// [`BuildError`]: a pattern does not name one build.
pub(in crate::cmd) fn matching<'a, 'p>(
    running: &'a Running,
    patterns: impl Iterator<Item = &'p Pattern>,
) -> Result<Vec<Matching<'a>>, BuildError> {
    let binaries = || running.files.iter().map(|file| &file.mapped.scan.binary);
    let mut wanted = Vec::new();
    for pattern in patterns {
        wanted.push((pattern, WantedFile::new(pattern, binaries())?));
    }
    let files = running.files.iter().map(|running| {
        let binary = &running.mapped.scan.binary;
        let of_file = wanted.iter().filter(|(_, file)| file.is(binary));
        let patterns: Vec<&Pattern> = of_file.map(|(pattern, _)| *pattern).collect();
        let is_wanted = |probe: &&Probe| {
            let is_of = |one: &&Pattern| one.matches(&probe.provider, &probe.name);
            wanted.is_empty() || patterns.iter().any(is_of)
        };
        Matching {
            running,
            probes: binary.probes.iter().filter(is_wanted).collect(),
        }
    });
    Ok(files.filter(|file| !file.probes.is_empty()).collect())
}

/// Prints the files.
pub(super) fn print(args: &ListArgs, files: &[Matching<'_>]) -> anyhow::Result<()> {
    let mut processes: BTreeMap<u32, Process> = BTreeMap::new();
    for &pid in files.iter().flat_map(|file| &file.running.processes) {
        processes.entry(pid).or_insert_with(|| Process::read(pid));
    }
    let out = BufWriter::new(selection::paged_output(args.pager)?);
    let mut out = Fold::new(out, text_room::fold_columns(args.width.width));
    match (args.format, args.by) {
        (ListFormat::Json, _) => print_json(&mut out, files, &processes)?,
        (ListFormat::Text, None) => print_files(&mut out, files, &processes)?,
        (ListFormat::Text, Some(_)) => print_places(&mut out, files, &processes)?,
    }
    Ok(out.flush()?)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The path of the control group of a process; `None` if it has ended, or there are no control groups.
fn control_group(pid: u32) -> Option<String> {
    let lines = fs::read(live_directory(pid).join("cgroup")).ok()?;
    path_of_process(&lines, false).map(text)
}

/// The id of the container that a process is in.
#[cfg(feature = "record")]
pub(in crate::cmd) fn container_of_process(pid: u32) -> Option<String> {
    container_id(&control_group(pid)?).map(str::to_owned)
}

/// A process that runs a file. It may have ended meanwhile.
#[derive(Debug, Default, Serialize)]
struct Process {
    pid: u32,
    comm: Option<String>,
    /// Path of its control group.
    cgroup: Option<String>,
    /// The container's id.
    container: Option<String>,
    /// The unit of systemd.
    unit: Option<String>,
}

impl Process {
    fn read(pid: u32) -> Self {
        let name = fs::read(format!("/proc/{pid}/comm")).ok();
        let cgroup = control_group(pid);
        let path = cgroup.as_deref().unwrap_or_default();
        Self {
            pid,
            comm: name.map(|name| text(name.strip_suffix(b"\n").unwrap_or(&name))),
            container: container_id(path).map(str::to_owned),
            unit: unit(path).map(str::to_owned),
            cgroup,
        }
    }

    fn surroundings(&self) -> Surroundings {
        match (&self.container, &self.unit, &self.cgroup) {
            (Some(id), ..) => Surroundings::Container(id.clone()),
            (None, Some(unit), _) => Surroundings::Unit(unit.clone()),
            (None, None, Some(path)) => Surroundings::ControlGroup(path.clone()),
            (None, None, None) => Surroundings::Unknown,
        }
    }
}

/// What a process runs in: the innermost of these that is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Surroundings {
    Container(String),
    Unit(String),
    ControlGroup(String),
    /// The process has ended, or there are no control groups.
    Unknown,
}

impl Surroundings {
    fn text(&self) -> String {
        match self {
            Self::Container(id) => format!("container {}", &id[..CONTAINER_DIGITS.min(id.len())]),
            Self::Unit(name) | Self::ControlGroup(name) => escape(name).into_owned(),
            Self::Unknown => "-".to_owned(),
        }
    }
}

/// The name of some places, or their number.
fn summary(places: &BTreeSet<Surroundings>) -> String {
    if let (1, Some(place)) = (places.len(), places.first()) {
        return place.text();
    }
    let count = |is: fn(&Surroundings) -> bool, what: &str| {
        let count = places.iter().filter(|place| is(place)).count();
        (count > 0).then(|| counted(count, what))
    };
    let counts = [
        count(
            |place| matches!(place, Surroundings::Container(_)),
            "container",
        ),
        count(|place| matches!(place, Surroundings::Unit(_)), "unit"),
        count(
            |place| matches!(place, Surroundings::ControlGroup(_)),
            "control group",
        ),
    ];
    counts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn places(pids: &[u32], processes: &BTreeMap<u32, Process>) -> BTreeSet<Surroundings> {
    let known = pids.iter().filter_map(|pid| processes.get(pid));
    known.map(Process::surroundings).collect()
}

/// One line a file.
fn print_files(
    out: &mut impl Write,
    files: &[Matching<'_>],
    processes: &BTreeMap<u32, Process>,
) -> io::Result<()> {
    let rows = files.iter().map(|file| {
        let pids = &file.running.processes;
        Row {
            build_id: file.build_id(),
            probes: file.probes.len(),
            processes: pids.len(),
            place: Some(summary(&places(pids, processes))),
            path: shown(file.running.mapped.file.path()).to_string(),
        }
    });
    Row::print_all(out, "", &rows.collect::<Vec<_>>())
}

/// A heading for each container and unit, and below it one line a file.
fn print_places(
    out: &mut impl Write,
    files: &[Matching<'_>],
    processes: &BTreeMap<u32, Process>,
) -> io::Result<()> {
    let mut by_place: BTreeMap<Surroundings, (BTreeSet<u32>, Vec<Row>)> = BTreeMap::new();
    for file in files {
        let mut pids_by_place: BTreeMap<Surroundings, Vec<u32>> = BTreeMap::new();
        for pid in &file.running.processes {
            let place = processes
                .get(pid)
                .map_or(Surroundings::Unknown, Process::surroundings);
            pids_by_place.entry(place).or_default().push(*pid);
        }
        for (place, pids) in pids_by_place {
            let (all, rows) = by_place.entry(place).or_default();
            rows.push(Row {
                build_id: file.build_id(),
                probes: file.probes.len(),
                processes: pids.len(),
                place: None,
                path: shown(file.running.mapped.file.path()).to_string(),
            });
            all.extend(pids);
        }
    }
    for (number, (place, (pids, rows))) in by_place.iter().enumerate() {
        let line = if number == 0 { "" } else { "\n" };
        writeln!(
            out,
            "{line}{}: {}",
            place.text(),
            counted(pids.len(), "process")
        )?;
        Row::print_all(out, "  ", rows)?;
    }
    Ok(())
}

impl Matching<'_> {
    fn build_id(&self) -> Option<BuildId> {
        self.running.mapped.scan.binary.build_id
    }
}

/// A line of the table.
struct Row {
    build_id: Option<BuildId>,
    probes: usize,
    processes: usize,
    /// Where the processes are; `None` if a heading says it.
    place: Option<String>,
    path: String,
}

impl Row {
    fn print_all(out: &mut impl Write, indent: &str, rows: &[Self]) -> io::Result<()> {
        const PLACE: &str = "CONTAINER OR UNIT";
        if rows.is_empty() {
            return Ok(());
        }
        let widths = rows.iter().filter_map(|row| row.place.as_ref());
        let width = widths.map(|place| place.width()).max();
        let width = width.map(|width| width.max(PLACE.len()));
        let put_place = |place: &str| match width {
            Some(width) => format!("  {place}{}", " ".repeat(width - place.width().min(width))),
            None => String::new(),
        };
        let id_width = BUILD_ID_DIGITS;
        let head = put_place(PLACE);
        writeln!(
            out,
            "{indent}PROBES PROCESSES  {:<id_width$}{head}  FILE",
            "BUILD-ID"
        )?;
        for row in rows {
            let mut id = row.build_id.map_or("-".to_owned(), |id| id.to_string());
            id.truncate(BUILD_ID_DIGITS);
            let place = put_place(row.place.as_deref().unwrap_or_default());
            let (probes, processes, path) = (row.probes, row.processes, &row.path);
            writeln!(
                out,
                "{indent}{probes:>6} {processes:>9}  {id:<id_width$}{place}  {path}"
            )?;
        }
        Ok(())
    }
}

/// A file as JSON.
#[derive(Serialize)]
struct Line<'a> {
    path: std::borrow::Cow<'a, str>,
    build_id: Option<BuildId>,
    /// Whether the file was deleted or replaced after it was mapped.
    deleted: bool,
    /// Its probes that were asked for.
    events: Vec<String>,
    processes: Vec<&'a Process>,
}

fn print_json(
    out: &mut impl Write,
    files: &[Matching<'_>],
    processes: &BTreeMap<u32, Process>,
) -> anyhow::Result<()> {
    for file in files {
        let mapped = &file.running.mapped;
        let line = Line {
            path: mapped.file.path().to_string_lossy(),
            build_id: file.build_id(),
            deleted: mapped.deleted,
            events: file.probes.iter().map(|probe| probe.event()).collect(),
            processes: {
                let pids = file.running.processes.iter();
                pids.filter_map(|pid| processes.get(pid)).collect()
            },
        };
        writeln!(out, "{}", escape_json(&serde_json::to_string(&line)?))?;
    }
    Ok(())
}
