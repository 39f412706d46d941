//! The files whose probes are listed.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, bail};
use usdtrec_buildid_cache::elf::{ElfError, FileState, ObjectFile, ProbeScan};
use usdtrec_buildid_cache::process::{self, UnreadableFile};
use usdtrec_buildid_cache::{
    Account, BuildError, Cache, Indexed, IndexedProbe, KeptProbes, MAX_FILES_OF_USER, ProbeSource,
    Running, WalkEvent, WantedFile, open, running, select, suggest, walk,
};
use usdtrec_format::escape::{escape, shown};
use usdtrec_format::{Pattern, counted};

use crate::cli::ListArgs;
use crate::mutex::locked;
use crate::shell;
use crate::terminal::{self, say};

/// Open files, by their displayed paths.
pub(super) type Files = HashMap<PathBuf, Arc<ObjectFile>>;

/// The binaries to list, from the cache or from the options' files, processes and directories. Unreadable ones are warned about.
#[derive(Default)]
pub(super) struct Listing {
    pub(super) binaries: Vec<Indexed>,
    /// The open files among them.
    pub(super) files: Files,
    /// The processes, and the displayed paths of what each maps.
    pub(super) processes: Vec<(u32, Vec<PathBuf>)>,
    /// What all processes of this host run.
    pub(super) running: Option<Running>,
    from_cache: bool,
}

impl Listing {
    pub(super) fn gather(
        &mut self,
        args: &ListArgs,
        buildid_dir: Option<&Path>,
    ) -> anyhow::Result<()> {
        self.from_cache =
            args.file.is_empty() && args.pid.is_empty() && args.dir.is_empty() && !args.all;
        if self.from_cache {
            self.binaries = Cache::open(buildid_dir)?.binaries()?;
        }
        for file in &args.file {
            self.file(file)?;
        }
        for &pid in &args.pid {
            self.process(pid)?;
        }
        for dir in &args.dir {
            self.dir(dir)?;
        }
        if args.all {
            self.running()?;
        }
        for indexed in &self.binaries {
            for error in &indexed.damaged {
                terminal::warn(&indexed.binary.path, error);
            }
        }
        Ok(())
    }

    fn file(&mut self, name: &Path) -> anyhow::Result<()> {
        let file = open(name)?;
        let name = || shown(file.path()).to_string();
        let scan = file.scan().with_context(name)?;
        if scan.debug_file {
            return Err(ElfError::DebugFile).with_context(name);
        }
        self.files.insert(file.path().to_owned(), Arc::new(file));
        self.binaries.push(present(scan));
        Ok(())
    }

    /// Reads the files of patterns of which the cache has none.
    pub(super) fn read_named(&mut self, patterns: &[Pattern]) -> anyhow::Result<()> {
        if !self.from_cache {
            return Ok(());
        }
        for pattern in patterns {
            let known = self.binaries.iter().map(|indexed| &indexed.binary);
            let wanted = WantedFile::new(pattern, known)?;
            let is_known = self.binaries.iter().any(|one| wanted.is(&one.binary));
            if let Some(path) = pattern.path().filter(|_| !is_known) {
                self.file(path)?;
            }
        }
        Ok(())
    }

    fn process(&mut self, pid: u32) -> anyhow::Result<()> {
        let files = match process::binaries(pid) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => bail!("no process {pid}"),
            outcome => outcome.with_context(|| format!("process {pid}"))?,
        };
        for UnreadableFile { path, error } in &files.unreadable {
            terminal::warn(path, error);
        }
        let paths = files.mapped.iter();
        let paths = paths.map(|mapped| mapped.file.path().to_owned());
        self.processes.push((pid, paths.collect()));
        for mapped in files.mapped {
            self.files
                .insert(mapped.file.path().to_owned(), mapped.file);
            self.binaries.push(present(mapped.scan));
        }
        Ok(())
    }

    fn running(&mut self) -> anyhow::Result<()> {
        let running = running(&KeptProbes::ALL).context("/proc")?;
        let mut processes: BTreeMap<u32, Vec<PathBuf>> = BTreeMap::new();
        for file in &running.files {
            let path = file.mapped.file.path().to_owned();
            for &pid in &file.processes {
                processes.entry(pid).or_default().push(path.clone());
            }
            self.binaries.push(present(file.mapped.scan.clone()));
            self.files.insert(path, Arc::clone(&file.mapped.file));
        }
        self.processes.extend(processes);
        warn_about_unread(&running);
        self.running = Some(running);
        Ok(())
    }

    fn dir(&mut self, dir: &Path) -> anyhow::Result<()> {
        let found = Mutex::new(Vec::new());
        let failed = Mutex::new(Vec::new());
        walk(dir, &|step| match step {
            WalkEvent::File => {}
            WalkEvent::Probes(scan, _) => locked(&found).push(present(scan)),
            WalkEvent::Unreadable(path, error) => locked(&failed).push((path, error)),
        })
        .with_context(|| shown(dir).to_string())?;
        self.binaries.append(&mut locked(&found));
        for (path, error) in locked(&failed).iter() {
            terminal::warn(path, error);
        }
        Ok(())
    }

    /// If nothing is listed, prints why. Returns the exit status: without the probes that were asked for, that of a failure.
    pub(super) fn print_nothing(&self, args: &ListArgs, is_empty: bool) -> ExitCode {
        if is_empty && !args.patterns.is_empty() {
            self.print_closest(&args.patterns);
            return ExitCode::FAILURE;
        }
        if is_empty {
            self.print_empty(args);
        }
        ExitCode::SUCCESS
    }

    /// Prints that the cache, or each file, process and directory of the options, has no probes.
    fn print_empty(&self, args: &ListArgs) {
        if self.from_cache {
            return say(
                "usdtrec: no probes are indexed; to list running files with probes: usdtrec list -a; to index binaries: usdtrec buildid-cache --add PATH, or --scan DIR",
            );
        }
        if args.all {
            say("usdtrec: no process maps code with SDT probes");
        }
        for file in &args.file {
            say(format_args!("usdtrec: {} has no SDT probes", shown(file)));
        }
        for pid in &args.pid {
            say(format_args!(
                "usdtrec: process {pid} maps no file with SDT probes"
            ));
        }
        for dir in &args.dir {
            say(format_args!(
                "usdtrec: no file below {} has SDT probes",
                shown(dir)
            ));
        }
    }

    /// Prints, for each pattern, that nothing matches it, and the closest names.
    fn print_closest(&self, patterns: &[String]) {
        let failure = match self.from_cache {
            true => "no indexed binary has a probe",
            false if self.running.is_some() => "no process maps code with a probe",
            false => "no probe",
        };
        for pattern in patterns {
            say(format_args!("usdtrec: {failure} {}", escape(pattern)));
            let closest = Pattern::parse(pattern).map_or_else(
                |_| Vec::new(),
                |pattern| {
                    let binaries = self.binaries.iter().map(|indexed| &indexed.binary);
                    suggest(binaries, &pattern, 3)
                },
            );
            if !closest.is_empty() {
                say(format_args!("  closest: {}", escape(&closest.join(", "))));
            }
        }
        if !self.from_cache {
            return;
        }
        let is_file = |pattern: &&String| pattern.contains('/') && Path::new(pattern).is_file();
        let (files, patterns): (Vec<&String>, Vec<&String>) = patterns.iter().partition(is_file);
        for file in files {
            let file = shell::path(Path::new(file));
            say(format_args!("  of this file: usdtrec list --file {file}"));
        }
        // `record` finds these, too.
        if !patterns.is_empty() {
            let patterns: Vec<String> = patterns.into_iter().map(shell::word).collect();
            say(format_args!(
                "  of the files that processes map now: usdtrec list -a {}",
                patterns.join(" ")
            ));
        }
    }
}

/// Prints which processes and files could not be read.
pub(in crate::cmd) fn warn_about_unread(running: &Running) {
    if !running.denied.is_empty() {
        let hint = match rustix::process::geteuid().is_root() {
            true => "",
            false => " (run as root, or with CAP_SYS_PTRACE)",
        };
        say(format_args!(
            "usdtrec: left out, because their mappings may not be read: {}{hint}",
            named_processes(&running.denied)
        ));
    }
    if running.unreadable > 0 {
        say(format_args!(
            "usdtrec: left out, because they cannot be read: {} that processes map",
            counted(running.unreadable, "file")
        ));
    }
    if !running.oversized.is_empty() {
        say(format_args!(
            "usdtrec: left out, because they have too many mappings: {}",
            named_processes(&running.oversized)
        ));
    }
    if !running.unanswered.is_empty() {
        say(format_args!(
            "usdtrec: left out, because their mappings could not be read in time: {}",
            named_processes(&running.unanswered)
        ));
    }
    for (Account { user, .. }, files) in &running.unread {
        say(format_args!(
            "usdtrec: left out, because the processes of uid {user} map more than {MAX_FILES_OF_USER} files: {}",
            counted(*files, "file")
        ));
    }
}

/// `2 processes (17, 23)`; of many, their number alone.
fn named_processes(pids: &[u32]) -> String {
    const NAMED: usize = 3;
    let count = counted(pids.len(), "process");
    if pids.len() > NAMED {
        return count;
    }
    let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
    format!("{count} ({})", pids.join(", "))
}

/// The entry of a file that was read just now.
fn present(scan: ProbeScan) -> Indexed {
    Indexed {
        binary: scan.binary,
        state: FileState::Current,
        source: ProbeSource::Notes,
        damaged: scan.damaged,
    }
}

/// The probes that match any of the patterns (all probes without patterns), in the order of `perf list`.
///
/// # Errors
/// [`BuildError`]: a pattern does not name one build.
pub(super) fn choose<'a>(
    binaries: &'a [Indexed],
    patterns: &[Pattern],
) -> Result<Vec<IndexedProbe<'a>>, BuildError> {
    let mut found: Vec<IndexedProbe<'a>> = if patterns.is_empty() {
        IndexedProbe::all(binaries).collect()
    } else {
        let mut found = Vec::new();
        for pattern in patterns {
            found.extend(select(binaries, pattern)?);
        }
        found
    };
    // perf sorts the text EVENT@BUILD-ID.
    found.sort_by_cached_key(|found| {
        let build_id = found.indexed.binary.build_id;
        let id = build_id.map_or_else(String::new, |id| id.to_string());
        format!("{}@{id}", found.probe.event())
    });
    found.dedup_by(|a, b| std::ptr::eq(a.probe, b.probe));
    Ok(found)
}
