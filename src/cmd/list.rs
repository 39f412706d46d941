//! `usdtrec list`.

mod describe;
mod json;
mod text;

use std::collections::HashMap;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, bail};
use usdtrec_buildid_cache::elf::{ElfError, FileState, ObjectFile, ProbeScan};
use usdtrec_buildid_cache::{
    Cache, Indexed, ProbeSource, WalkEvent, open, process, select, suggest, walk,
};
use usdtrec_format::escape::{escape, escape_bytes};
use usdtrec_format::{Pattern, Probe};

use crate::cli::{ListArgs, ListFormat};
use crate::fold;
use crate::schemas;
use crate::terminal::{self, say};

/// A probe to list, and its file.
type Found<'a> = (&'a Indexed, &'a Probe);

/// Open files, by their displayed paths.
type Files = HashMap<PathBuf, Arc<ObjectFile>>;

/// Runs the verb.
pub(crate) fn run(args: &ListArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        args.schema.is_empty() || args.verbose,
        "--schema has no effect without -v, which shows the names and types of arguments"
    );
    let patterns = patterns(&args.patterns)?;
    let mut listing = Listing::default();
    listing.gather(args, buildid_dir)?;
    let found = choose(&listing.binaries, &patterns);
    let mut out = BufWriter::new(io::stdout());
    match args.format {
        ListFormat::Json if args.verbose => {
            let schemas = schemas::in_force(&args.schema)?;
            json::print(
                &mut out,
                &found,
                Some(&describe::describe(&found, &listing.files, &schemas)),
            )?
        }
        ListFormat::Json => json::print(&mut out, &found, None)?,
        ListFormat::Text if args.verbose => {
            let schemas = schemas::in_force(&args.schema)?;
            let described = describe::describe(&found, &listing.files, &schemas);
            let mut folded = fold::stdout();
            text::explain(&mut folded, &found, described)?;
            folded.flush()?;
        }
        ListFormat::Text => text::print(&mut out, &found)?,
    }
    out.flush()?;
    if args.format == ListFormat::Text && !args.verbose {
        warn_about_changed(&found);
    }
    if found.is_empty() && !patterns.is_empty() {
        listing.print_closest(&args.patterns);
        return Ok(ExitCode::FAILURE);
    }
    if found.is_empty() {
        listing.print_empty(args);
    }
    Ok(ExitCode::SUCCESS)
}

/// Parses patterns as `perf list` does: without a colon or a glob, a pattern matches any part of a name; `sdt` matches every probe.
pub(super) fn patterns(texts: &[String]) -> anyhow::Result<Vec<Pattern>> {
    let texts = texts.iter().map(|text| match text.as_str() {
        "sdt" => "*".to_owned(),
        text if text.contains([':', '*', '?', '[', '@']) => text.to_owned(),
        text => format!("*{}*", text.strip_prefix("sdt_").unwrap_or(text)),
    });
    texts.map(|text| Ok(Pattern::parse(&text)?)).collect()
}

/// The probes that match any of the patterns (all probes without patterns), in the order of `perf list`.
fn choose<'a>(binaries: &'a [Indexed], patterns: &[Pattern]) -> Vec<Found<'a>> {
    let mut found: Vec<Found<'a>> = if patterns.is_empty() {
        let all = binaries.iter();
        all.flat_map(|indexed| {
            indexed
                .binary
                .probes
                .iter()
                .map(move |probe| (indexed, probe))
        })
        .collect()
    } else {
        patterns
            .iter()
            .flat_map(|pattern| select(binaries, pattern))
            .collect()
    };
    // perf sorts the text EVENT@BUILD-ID.
    found.sort_by_cached_key(|(indexed, probe)| {
        let build_id = indexed.binary.build_id;
        let id = build_id.map_or_else(String::new, |id| id.to_string());
        format!("{}@{id}", probe.event())
    });
    found.dedup_by(|a, b| std::ptr::eq(a.1, b.1));
    found
}

/// The binaries to list, from the cache or from the options' files, processes and directories. Unreadable ones are warned about.
#[derive(Default)]
struct Listing {
    binaries: Vec<Indexed>,
    /// The open files among them.
    files: Files,
    from_cache: bool,
}

impl Listing {
    fn gather(&mut self, args: &ListArgs, buildid_dir: Option<&Path>) -> anyhow::Result<()> {
        self.from_cache = args.file.is_empty() && args.pid.is_empty() && args.dir.is_empty();
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
        for indexed in &self.binaries {
            for error in &indexed.damaged {
                terminal::warn(&indexed.binary.path, error);
            }
        }
        Ok(())
    }

    fn file(&mut self, name: &Path) -> anyhow::Result<()> {
        let file = open(name)?;
        let shown = || escape_bytes(file.path().as_os_str().as_encoded_bytes()).into_owned();
        let scan = file.scan().with_context(shown)?;
        if scan.debug_file {
            return Err(ElfError::DebugFile).with_context(shown);
        }
        self.files.insert(file.path().to_owned(), Arc::new(file));
        self.binaries.push(present(scan));
        Ok(())
    }

    fn process(&mut self, pid: u32) -> anyhow::Result<()> {
        let files = match process::binaries(pid) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => bail!("no process {pid}"),
            outcome => outcome.with_context(|| format!("process {pid}"))?,
        };
        for (path, error) in &files.unreadable {
            terminal::warn(path, error);
        }
        for mapped in files.mapped {
            self.files
                .insert(mapped.file.path().to_owned(), mapped.file);
            self.binaries.push(present(mapped.scan));
        }
        Ok(())
    }

    fn dir(&mut self, dir: &Path) -> anyhow::Result<()> {
        let found = Mutex::new(Vec::new());
        let failed = Mutex::new(Vec::new());
        walk(dir, &|step| match step {
            WalkEvent::File => {}
            WalkEvent::Probes(scan, _) => terminal::locked(&found).push(present(scan)),
            WalkEvent::Unreadable(path, error) => terminal::locked(&failed).push((path, error)),
        })
        .with_context(|| escape_bytes(dir.as_os_str().as_encoded_bytes()).into_owned())?;
        self.binaries.append(&mut terminal::locked(&found));
        for (path, error) in terminal::locked(&failed).iter() {
            terminal::warn(path, error);
        }
        Ok(())
    }

    /// Prints that the cache, or each file, process and directory of the options, has no probes.
    fn print_empty(&self, args: &ListArgs) {
        if self.from_cache {
            return say(
                "usdtrec: no probes are indexed; to index binaries: usdtrec buildid-cache --add PATH, or --scan DIR",
            );
        }
        let shown = |path: &Path| escape_bytes(path.as_os_str().as_encoded_bytes()).into_owned();
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
        let failure = if self.from_cache {
            "no indexed binary has a probe"
        } else {
            "no probe"
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
    }
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

/// Warns about the files that are not listed because they changed since they were indexed.
fn warn_about_changed(found: &[Found<'_>]) {
    let mut seen: Vec<&Path> = Vec::new();
    for (indexed, _) in found.iter().filter(|(indexed, _)| !indexed.is_current()) {
        let path = indexed.binary.path.as_path();
        if seen.contains(&path) {
            continue;
        }
        seen.push(path);
        let shown = escape_bytes(path.as_os_str().as_encoded_bytes());
        match indexed.state {
            FileState::Gone => say(format_args!(
                "usdtrec: skipped {shown}: gone since it was indexed; to remove its entry: usdtrec buildid-cache --purge {shown}"
            )),
            _ => say(format_args!(
                "usdtrec: skipped {shown}: changed since it was indexed; to index it again: usdtrec buildid-cache --update {shown}"
            )),
        }
    }
}
