//! Selection of the probes of `-e`, from the cache, the traced processes and the command.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use usdtrec_buildid_cache::elf::{FileId, ObjectFile};
use usdtrec_buildid_cache::process::{self, MappedFile, code_mappings};
use usdtrec_buildid_cache::{
    Cache, CacheError, KeptProbes, Running, RunningFile, live_directory, open, resolve, running,
};
use usdtrec_format::escape::{escape, shown};
use usdtrec_format::{Pattern, counted};
use usdtrec_record::{
    Completion, EventSelector, Following, PlannedProbe, RecordError, Request, Selection,
    descendants, select,
};

use super::options::process_choice;
use crate::advice::explained;
use crate::cli::CaptureArgs;
use crate::cmd::list::{Matching, container_of_process, matching, warn_about_unread};
use crate::functions::Functions;
use crate::slow_start::waiting_for;
use crate::terminal::say;

/// Selects the probes from the cache and from the binaries of the traced processes and the command. What was read is set in `following`.
pub(super) fn choose(
    args: &CaptureArgs,
    following: &mut Following,
    buildid_dir: Option<&Path>,
) -> anyhow::Result<Selection> {
    let events = &following.events;
    let cache = crate::cmd::buildid_cache::open(buildid_dir);
    let (mut indexed, mut files, mut host) = (Vec::new(), Vec::new(), None);
    let mut running_files = HashMap::new();
    if events.iter().any(|wanted| wanted.pattern.path().is_none()) {
        indexed = match &cache {
            Ok(cache) => cache.binaries()?,
            Err(CacheError::NoDirectory) => Vec::new(),
            Err(error) => {
                say(format_args!("usdtrec: {}", explained(error)));
                Vec::new()
            }
        };
        files = traced(args);
        if is_system_wide(args) {
            let patterns = events.iter().map(|event| &event.pattern);
            let patterns = patterns.filter(|one| one.path().is_none());
            let patterns: Vec<&Pattern> = patterns.collect();
            // These say what runs: what is attached is read from the files.
            let kept = KeptProbes {
                keep: &|provider, name| patterns.iter().any(|one| one.matches(provider, name)),
                of_file: 64,
                notes_of_user: u64::MAX,
            };
            let mut found = waiting_for(
                "the files of running processes: all that may have probes are read",
                args.quiet,
                || running(&kept),
            )
            .context("/proc")?;
            following.read = Some(Arc::new(std::mem::take(&mut found.inodes)));
            keep_chosen(&mut found, args)?;
            if args.verbose || !rustix::process::geteuid().is_root() {
                warn_about_unread(&found);
            }
            // The command's program is named.
            let named: HashSet<FileId> = files.iter().map(|file| file.id()).collect();
            for RunningFile { mapped, processes } in &found.files {
                if !named.contains(&mapped.file.id()) {
                    running_files.insert(mapped.file.id(), processes.clone());
                    files.push(Arc::clone(&mapped.file));
                }
            }
            host = Some(found);
        }
    }
    let processes: Vec<u32> = args.pid.iter().chain(&args.tid).copied().collect();
    let request = Request {
        events,
        indexed,
        files,
        found: running_files,
        places: &following.places,
        is_host: host.is_some(),
        processes: &processes,
        force: args.force,
        starts_programs: processes.is_empty()
            && (args.delay.is_none() || args.all_cpus || args.command.is_empty()),
        may_wait: following.waits,
        schemas: &following.schemas,
    };
    let mut selection = waiting_for(
        "the selected files, their debugging information and their pages on disk",
        args.quiet,
        || select(request),
    )?;
    if let Some(host) = host.filter(|_| !args.quiet) {
        print_running(&host, events, &selection);
    }
    following.refused_files = std::mem::take(&mut selection.refused_files);
    let dir = cache.as_ref().ok().map(Cache::dir);
    add_functions(&mut selection.probes, dir);
    // If one does not exist, that is said next, and nothing is attached.
    let exist = |pid: &u32| Path::new(&format!("/proc/{pid}")).exists();
    let not_mapped = selection.not_mapped.iter();
    for pattern in not_mapped.filter(|_| processes.iter().all(exist)) {
        say(format_args!(
            "usdtrec: the traced processes map no file with a probe {}: attached to the indexed files that have it, \
             in case they load one later or a child runs one",
            escape(pattern)
        ));
    }
    if let Ok(cache) = cache {
        index(&cache, &selection, args.verbose);
    }
    Ok(selection)
}

/// Whether hits of all processes are recorded.
const fn is_system_wide(args: &CaptureArgs) -> bool {
    args.pid.is_empty() && args.tid.is_empty() && (args.all_cpus || args.command.is_empty())
}

/// Leaves out what only processes run that are not recorded.
fn keep_chosen(found: &mut Running, args: &CaptureArgs) -> anyhow::Result<()> {
    let choice = process_choice(args);
    if choice.is_all() {
        return Ok(());
    }
    let chosen = choice.running().map_err(RecordError::from)?;
    for file in &mut found.files {
        file.processes.retain(|pid| chosen.contains(pid));
    }
    found.files.retain(|file| !file.processes.is_empty());
    Ok(())
}

/// Prints which of the files that run now are selected by patterns without a path: each inode once.
fn print_running(host: &Running, events: &[EventSelector], selection: &Selection) {
    let patterns = events.iter().map(|event| &event.pattern);
    let patterns = patterns.filter(|one| one.path().is_none());
    // Of a build that is only indexed, nothing runs.
    let files = patterns.flat_map(|one| matching(host, [one].into_iter()).unwrap_or_default());
    let files: Vec<Matching<'_>> = files.collect();
    let selected = selection.probes.iter();
    let selected: HashSet<FileId> = selected.map(|probe| probe.program.file().id()).collect();
    let mut inodes: HashSet<FileId> = files
        .iter()
        .map(|file| file.running.mapped.file.id())
        .collect();
    inodes.retain(|inode| selected.contains(inode));
    let pids = files.iter().flat_map(|file| &file.running.processes);
    let pids: HashSet<u32> = pids.copied().collect();
    let containers: HashSet<String> = pids
        .iter()
        .filter_map(|pid| container_of_process(*pid))
        .collect();
    if inodes.is_empty() {
        return;
    }
    let containers = match containers.len() {
        0 => String::new(),
        number => format!(", {}", counted(number, "container")),
    };
    say(format_args!(
        "usdtrec: running now: {}, {}{containers}",
        counted(inodes.len(), "file"),
        counted(pids.len(), "process")
    ));
}

/// The files of the traced processes and of the command, indexed or not. Unreadable ones are skipped.
fn traced(args: &CaptureArgs) -> Vec<Arc<ObjectFile>> {
    let command = args.command.first();
    let command = command.and_then(|program| open(Path::new(program)).ok());
    let mut files: Vec<Arc<ObjectFile>> = command.into_iter().map(Arc::new).collect();
    let children = match args.no_inherit {
        true => Vec::new(),
        false => descendants(&args.pid),
    };
    for &pid in args.pid.iter().chain(&args.tid).chain(&children) {
        let mapped = process::binaries(pid)
            .map(|files| files.mapped)
            .unwrap_or_default();
        for MappedFile { file, .. } in mapped {
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    files
}

/// Adds to the probes of files that appear what [`choose`] adds to those of the selection.
pub(super) fn completion(buildid_dir: Option<&Path>) -> Arc<Completion> {
    let cache = Cache::open(buildid_dir).ok();
    let dir = cache.map(|cache| cache.dir().to_owned());
    Arc::new(move |probes| add_functions(probes, dir.as_deref()))
}

/// Adds to each site the function that it is in, for readers on hosts that do not have the file.
fn add_functions(probes: &mut [PlannedProbe], buildid_dir: Option<&Path>) {
    let mut functions = Functions::new(buildid_dir);
    for probe in probes {
        for site in &mut probe.sites {
            let offset = site.site.offset;
            let file = probe.program.file();
            site.place.function = offset.and_then(|offset| functions.at(file, offset));
        }
    }
}

/// Adds the files named by path to the cache, for symbols in their traces. A failure does not affect the recording, and is printed with `-v`.
fn index(cache: &Cache, selection: &Selection, verbose: bool) {
    for file in &selection.named {
        let scan = file.scan().map_err(|error| error.to_string());
        let added = scan.and_then(|scan| {
            let added = cache.add_scan(scan, file);
            added.map_err(|error| format!("{:#}", anyhow::Error::from(error)))
        });
        match added {
            Err(error) if verbose => say(format_args!("usdtrec: cannot index: {}", escape(&error))),
            _ => {}
        }
    }
}

/// A process whose loader was told to run a file.
struct LoadedProgram {
    pid: u32,
    loader: PathBuf,
}

/// Says which process runs one of these files by its loader, as that explains why it has no events.
pub(super) fn print_loaded(executables: &[PathBuf]) {
    for path in executables {
        if let Some(LoadedProgram { pid, loader }) = loaded(path) {
            say(format_args!(
                "usdtrec: process {pid} executes {}, which runs {}: -p {pid} records it, or --exe with the loader",
                shown(&loader),
                shown(path)
            ));
        }
    }
}

fn loaded(path: &Path) -> Option<LoadedProgram> {
    let path = resolve(path).ok()?;
    let pids = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.find_map(|pid| {
        let loader = fs::read_link(live_directory(pid).join("exe")).ok()?;
        let name = loader.file_name()?.to_str()?;
        if !name.starts_with("ld") || !name.contains(".so") {
            return None;
        }
        let mappings = code_mappings(pid).ok()?;
        let mut mapped = mappings.iter();
        let runs_it = mapped.any(|mapping| mapping.display_path() == path);
        runs_it.then_some(LoadedProgram { pid, loader })
    })
}
