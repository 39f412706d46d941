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
use usdtrec_buildid_cache::elf::{ElfError, FileState, ObjectFile, Scan};
use usdtrec_buildid_cache::{Cache, Indexed, Source, Step, open, process, select, suggest, walk};
use usdtrec_format::escape::{escape, escape_bytes};
use usdtrec_format::{Pattern, Probe};

use crate::cli::{ListArgs, ListFormat};
use crate::fold;
use crate::schemas;
use crate::terminal::{self, say};

/// A probe to list, and the file that carries it.
type Found<'a> = (&'a Indexed, &'a Probe);

/// Open files by what they are called.
type Files = HashMap<PathBuf, Arc<ObjectFile>>;

/// Runs the verb.
pub(crate) fn run(args: &ListArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(
        args.schema.is_empty() || args.verbose,
        "--schema has no effect without -v: names and types of arguments are shown with it"
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
        warn_of_changed(&found);
    }
    if found.is_empty() && !patterns.is_empty() {
        listing.say_closest(&args.patterns);
        return Ok(ExitCode::FAILURE);
    }
    if found.is_empty() {
        listing.say_empty(args);
    }
    Ok(ExitCode::SUCCESS)
}

/// As perf does, a pattern without a colon or a glob fits anywhere in a name; `sdt` is all.
pub(super) fn patterns(texts: &[String]) -> anyhow::Result<Vec<Pattern>> {
    let texts = texts.iter().map(|text| match text.as_str() {
        "sdt" => "*".to_owned(),
        text if text.contains([':', '*', '?', '[', '@']) => text.to_owned(),
        text => format!("*{}*", text.strip_prefix("sdt_").unwrap_or(text)),
    });
    texts.map(|text| Ok(Pattern::parse(&text)?)).collect()
}

/// The probes that any of the patterns selects, all if there is none, in the order of perf's list.
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

/// The binaries to list, from wherever they are asked for. What cannot be read among them is told of.
#[derive(Default)]
struct Listing {
    binaries: Vec<Indexed>,
    /// Those of their files that are open, by what they are called.
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
            Step::File => {}
            Step::Probes(scan, _) => terminal::locked(&found).push(present(scan)),
            Step::Unreadable(path, error) => terminal::locked(&failed).push((path, error)),
        })
        .with_context(|| escape_bytes(dir.as_os_str().as_encoded_bytes()).into_owned())?;
        self.binaries.append(&mut terminal::locked(&found));
        for (path, error) in terminal::locked(&failed).iter() {
            terminal::warn(path, error);
        }
        Ok(())
    }

    /// Says of everything that was looked at that it has no probes.
    fn say_empty(&self, args: &ListArgs) {
        if self.from_cache {
            return say(
                "usdtrec: no probes are indexed; index some with: usdtrec buildid-cache --add PATH, or --scan DIR",
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

    fn say_closest(&self, patterns: &[String]) {
        let where_from = if self.from_cache {
            "no indexed binary has a probe"
        } else {
            "no probe"
        };
        for pattern in patterns {
            say(format_args!("usdtrec: {where_from} {}", escape(pattern)));
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

/// A file that was just read.
fn present(scan: Scan) -> Indexed {
    Indexed {
        binary: scan.binary,
        state: FileState::Current,
        source: Source::Notes,
        damaged: scan.damaged,
    }
}

/// Names the files that were left out because they changed since they were indexed.
fn warn_of_changed(found: &[Found<'_>]) {
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
                "usdtrec: left out {shown}, gone since it was indexed; forget it with: usdtrec buildid-cache --purge {shown}"
            )),
            _ => say(format_args!(
                "usdtrec: left out {shown}, changed since it was indexed; refresh with: usdtrec buildid-cache --update {shown}"
            )),
        }
    }
}
