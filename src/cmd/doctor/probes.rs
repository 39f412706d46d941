//! Why the probes of a process, of a file or of a pattern would be hit or not.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_buildid_cache::process::{MappedFile, binaries};
use usdtrec_buildid_cache::{KeptProbes, running};
use usdtrec_format::escape::shown;
use usdtrec_format::schema::Schemas;
use usdtrec_format::{Pattern, Probe, counted};
use usdtrec_record::{RunningSites, SiteNote};

use super::finding::Finding;
use crate::advice::message;
use crate::cmd::list::{matching, patterns};
use crate::schemas;

/// Files, and probes of a file, that are looked at.
const MAX_FILES: usize = 20;
const MAX_PROBES: usize = 100;
/// Processes of a file in which sites are looked at.
const MAX_PROCESSES: usize = 3;

/// A file, the processes that map it, and its probes that were asked for.
struct Target {
    mapped: MappedFile,
    processes: Vec<u32>,
    probes: Vec<Probe>,
}

/// What was found of the probes of a process (its id), of a file (its path), or of those that a pattern matches in files that run here.
///
/// # Errors
/// If the process or the file cannot be read, or the text is not a pattern.
pub(super) fn findings(what: &str) -> anyhow::Result<Vec<Finding>> {
    let schemas = schemas::in_force(&[])?;
    let targets = targets(what)?;
    if targets.is_empty() {
        let advice = "start the program; usdtrec list --dir DIR finds files with probes, and readelf -n FILE shows whether it has notes .note.stapsdt, \
             which strip may have removed, and which a build without sys/sdt.h does not have";
        let found = "no running file has such a probe";
        return Ok(vec![Finding::fails(what, found, advice)]);
    }
    let mut findings = Vec::new();
    let running = RunningSites::default();
    for target in targets.iter().take(MAX_FILES) {
        target.add_file(&mut findings);
        for probe in target.probes.iter().take(MAX_PROBES) {
            findings.push(target.probe(probe, &schemas, &running));
        }
        let more = target.probes.len().saturating_sub(MAX_PROBES);
        if more > 0 {
            let found = format!("{} not looked at", counted(more as u64, "more probe"));
            findings.push(Finding::limited("…", found, "name them by a pattern"));
        }
    }
    let more = targets.len().saturating_sub(MAX_FILES);
    if more > 0 {
        let found = format!("{} not looked at", counted(more as u64, "more file"));
        findings.push(Finding::limited("…", found, "name one by its path"));
    }
    Ok(findings)
}

fn targets(what: &str) -> anyhow::Result<Vec<Target>> {
    if let Ok(pid) = what.parse::<u32>() {
        let files = binaries(pid).with_context(|| format!("process {pid}"))?;
        let mapped = files.mapped.into_iter();
        return Ok(mapped
            .map(|mapped| Target {
                probes: mapped.scan.binary.probes.clone(),
                processes: vec![pid],
                mapped,
            })
            .collect());
    }
    if Path::new(what).is_file() {
        return Ok(file_target(Path::new(what))?.into_iter().collect());
    }
    let patterns: Vec<Pattern> = patterns(&[what.to_owned()])?;
    let running = running(&KeptProbes::ALL).context("/proc")?;
    let found = matching(&running, patterns.iter())?;
    Ok(found
        .into_iter()
        .map(|found| Target {
            mapped: found.running.mapped.clone(),
            processes: found.running.processes.clone(),
            probes: found.probes.into_iter().cloned().collect(),
        })
        .collect())
}

/// A file, if it has probes.
fn file_target(path: &Path) -> anyhow::Result<Option<Target>> {
    let file = ObjectFile::open(path).with_context(|| shown(path).to_string())?;
    let scan = file.scan().with_context(|| shown(path).to_string())?;
    let running = running(&KeptProbes::ALL).context("/proc")?;
    let mut of_file = running.files.into_iter();
    let known = of_file.find(|running| running.mapped.file.id() == file.id());
    let probes = scan.binary.probes.clone();
    Ok((!probes.is_empty()).then(|| Target {
        mapped: MappedFile {
            is_whole: true,
            file: Arc::new(file),
            scan,
            deleted: false,
        },
        processes: known.map_or_else(Vec::new, |known| known.processes),
        probes,
    }))
}

impl Target {
    /// Adds what concerns all probes of the file.
    fn add_file(&self, findings: &mut Vec<Finding>) {
        let MappedFile {
            file,
            scan,
            deleted,
            ..
        } = &self.mapped;
        let path = shown(file.path()).to_string();
        let running = self.running();
        findings.push(match (self.processes.is_empty(), *deleted) {
            (true, _) => Finding::limited(&path, "no process maps it",
                "start the program; a recording follows files that appear, but misses their first milliseconds without --no-gap",
            ),
            (_, true) => Finding::limited(&path, format!("{running} it, and it was deleted or replaced since then: recording by its path records the new version"),
                "restart these processes, or record them by -p PID",
            ),
            _ => Finding::works(&path, format!("{running} it")),
        });
        if let Err(error) = file.check_file(scan.binary.build_id) {
            let advice = "name the program's file itself";
            findings.push(Finding::fails(&path, message(&error), advice));
        }
        for error in &scan.damaged {
            let advice = "build the program again: its other probes can be recorded";
            findings.push(Finding::limited(&path, error.to_string(), advice));
        }
        if file.section(".symtab").is_none() && file.section(".gnu_debugdata").is_none() {
            let found = "it is stripped of its symbols: functions in stacks may have no names";
            let advice = "install its debugging information, or set DEBUGINFOD_URLS";
            findings.push(Finding::limited(&path, found, advice));
        }
        if file.section(".eh_frame").is_none() && file.section(".debug_frame").is_none() {
            let found = "it has no unwind tables: callers are found by frame pointers";
            let advice =
                "build it with -fno-omit-frame-pointer, or with -fasynchronous-unwind-tables";
            findings.push(Finding::limited(&path, found, advice));
        }
    }

    /// `process 5 maps`.
    fn running(&self) -> String {
        let some = self.processes.iter().take(MAX_PROCESSES);
        let some: Vec<String> = some.map(ToString::to_string).collect();
        let count = self.processes.len();
        let more = match count - some.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let (ending, maps) = match count {
            1 => ("", "maps"),
            _ => ("es", "map"),
        };
        format!("process{ending} {}{more} {maps}", some.join(", "))
    }

    fn probe(&self, probe: &Probe, schemas: &Schemas, running: &RunningSites) -> Finding {
        let event = probe.event();
        let file = &self.mapped.file;
        for site in &probe.sites {
            if let Err(error) = file.check_site(site) {
                let advice = "this site is not attached to; build the program again";
                return Finding::fails(&event, message(&error), advice);
            }
            if file.unplanted_prefix(site).is_some() {
                let found = format!("cannot attach at {:#x}: its nop has a prefix", site.pc);
                let advice = "build the program with another assembler, or without this prefix";
                return Finding::fails(&event, found, advice);
            }
        }
        let processes = self.processes.iter().take(MAX_PROCESSES);
        let notes = processes.flat_map(|&pid| running.notes(pid, file, &probe.sites));
        let notes: Vec<SiteNote> = notes.flatten().collect();
        if let Some(note) = notes.iter().find(|note| note.is_obstacle) {
            let found = format!("process {}, {:#x}: {}", note.pid, note.address, note.found);
            let advice = "restart the process if it is not being recorded";
            return Finding::limited(&event, found, advice);
        }
        let description = schemas.describe(probe, self.mapped.scan.binary.arch);
        let sites = counted(probe.sites.len() as u64, "site");
        let needs = description.choice.schema.and_then(|schema| schema.needs);
        let started = needs.as_deref().and_then(|needs| self.started_with(needs));
        if let Some(needs) = needs.filter(|_| started != Some(true)) {
            let found = format!("{sites}; it is hit only with {needs}");
            return Finding {
                advice: started.map(|_| "start the program with it".to_owned()),
                ..Finding::limited(&event, found, "")
            };
        }
        let recorded = match notes.is_empty() {
            true => "",
            false => "; another tracer is attached to it, too, which does not prevent recording",
        };
        let guarded = probe
            .sites
            .iter()
            .filter(|site| site.semaphore != 0)
            .count();
        let semaphores = match guarded {
            0 => String::new(),
            _ => format!("; {guarded} guarded by a semaphore, which recorders increment"),
        };
        Finding::works(&event, format!("{sites}{semaphores}{recorded}"))
    }

    /// Whether the processes were started with what a probe needs: with one of the options or variables that its schema names. `None` if it names none.
    fn started_with(&self, needs: &str) -> Option<bool> {
        let words = needs.split_whitespace();
        let words = words.map(|word| word.trim_matches(['(', ')', ',', ';']));
        let is_of_start = |word: &&str| word.starts_with('-') || word.contains('=');
        let words: Vec<&str> = words.filter(is_of_start).collect();
        let has = |pid: &u32, file| {
            let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            let mut all = text.split(|byte| *byte == 0);
            all.any(|one| words.iter().any(|word| word.as_bytes() == one))
        };
        let mut processes = self.processes.iter().take(MAX_PROCESSES);
        let is_set = processes.all(|pid| has(pid, "cmdline") || has(pid, "environ"));
        (!words.is_empty()).then_some(is_set && !self.processes.is_empty())
    }
}
