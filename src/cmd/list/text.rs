//! The list as text: perf's lines, or with `-v` files, sites and operands.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use unicode_width::UnicodeWidthStr as _;
use usdtrec_buildid_cache::elf::FileState;
use usdtrec_buildid_cache::{Indexed, IndexedProbe, ProbeSource};
use usdtrec_format::escape::{escape, shown};
use usdtrec_format::schema::{Argument, Description};
use usdtrec_format::{Arch, BuildId, CodePlace, FunctionPlace, Operand, Site, split_operands};

use super::describe::{Described, SiteNote};

/// Prints events as `perf list sdt` does: with the file if several files have the event, without files that changed since they were
/// indexed, and one line for a build-id with several paths.
pub(super) fn print(out: &mut impl Write, found: &[IndexedProbe<'_>]) -> io::Result<()> {
    let current = found.iter().filter(|found| found.indexed.is_current());
    let mut lines: Vec<(String, &Indexed)> = Vec::new();
    for IndexedProbe { indexed, probe } in current {
        let event = probe.event();
        let repeats = lines.last().is_some_and(|(last, other)| {
            *last == event
                && indexed.binary.build_id.is_some()
                && other.binary.build_id == indexed.binary.build_id
        });
        if !repeats {
            lines.push((event, indexed));
        }
    }
    let mut files: HashMap<&str, u32> = HashMap::new();
    for (event, _) in &lines {
        *files.entry(event).or_default() += 1;
    }
    for (event, indexed) in &lines {
        let mut name = escape(event).into_owned();
        if files.get(event.as_str()).is_some_and(|&count| count > 1) {
            let path = shown(&indexed.binary.path);
            name = format!("{name}@{path}({})", short(indexed.binary.build_id, 12));
        }
        writeln!(out, "  {name:<50} [SDT event]")?;
    }
    Ok(())
}

/// Prints each event with its files, sites and operands.
pub(super) fn explain(
    out: &mut impl Write,
    found: &[IndexedProbe<'_>],
    described: &[Described],
) -> io::Result<()> {
    let mut last = None;
    for (IndexedProbe { indexed, probe }, described) in found.iter().zip(described) {
        let description = &described.description;
        let event = probe.event();
        if last.as_ref() != Some(&event) {
            writeln!(out, "{:<52} [SDT event]", escape(&event))?;
        }
        last = Some(event);
        let semaphores = probe.sites.iter().map(|site| site.semaphore);
        print_file(out, indexed, semaphores)?;
        print_schema(out, description)?;
        let sites = probe.sites.iter().zip(&described.places);
        let sites = sites.zip(&described.notes);
        for (((site, place), notes), operands) in sites.zip(&described.operands) {
            let prefix = print_site(out, site, operands, indexed.binary.arch, description)?;
            print_place(out, &prefix, place)?;
            for note in notes {
                let SiteNote {
                    pid,
                    address,
                    found,
                    ..
                } = note;
                writeln!(
                    out,
                    "{prefix}  process {pid} at {address:#x}: {}",
                    escape(found)
                )?;
            }
        }
    }
    Ok(())
}

fn print_file(
    out: &mut impl Write,
    indexed: &Indexed,
    semaphores: impl Iterator<Item = u64>,
) -> io::Result<()> {
    let path = shown(&indexed.binary.path);
    write!(out, "  {path}  ")?;
    match indexed.binary.build_id {
        Some(id) => write!(out, "build-id {}…", short(Some(id), 12))?,
        None => write!(out, "no build-id")?,
    }
    let mut semaphores: Vec<u64> = semaphores.filter(|&semaphore| semaphore != 0).collect();
    semaphores.sort_unstable();
    semaphores.dedup();
    for semaphore in semaphores {
        write!(out, "  semaphore at {semaphore:#x}")?;
    }
    match indexed.state {
        FileState::Current => {}
        FileState::Gone => write!(out, "  (gone)")?,
        FileState::Changed(_) => write!(out, "  (changed since it was indexed)")?,
    }
    if indexed.source == ProbeSource::Text {
        write!(out, "  sites unknown: no file has this build-id any more")?;
    }
    writeln!(out)
}

/// Prints the probe's description and its source, what it needs, and disagreements between schemas and the note.
fn print_schema(out: &mut impl Write, description: &Description) -> io::Result<()> {
    let choice = &description.choice;
    if let Some(schema) = &choice.schema {
        let words = schema.description.as_deref();
        let words = words.map_or_else(String::new, |words| format!("{}  ", escape(words)));
        writeln!(out, "    {words}(schema: {})", choice.place)?;
    }
    let needs = choice
        .schema
        .as_ref()
        .and_then(|schema| schema.needs.as_deref());
    if let Some(needs) = needs {
        writeln!(out, "    needs: {}", escape(needs))?;
    }
    for disagreement in &description.disagreements {
        let words = escape(&disagreement.words);
        writeln!(out, "    schema of {}: {words}", disagreement.place)?;
    }
    Ok(())
}

/// `NAME: TYPE` of the argument with this index, or its name if the type is unknown.
fn signature(argument: Option<&Argument>, index: usize) -> String {
    match argument {
        Some(argument) if !argument.is_bare() => {
            format!(
                "{}: {}",
                escape(&argument.name),
                escape(&argument.type_words())
            )
        }
        Some(argument) => escape(&argument.name).into_owned(),
        None => Argument::unnamed(index).name,
    }
}

/// Prints where a site is and its operands. Returns what lines about it begin with.
fn print_site(
    out: &mut impl Write,
    site: &Site,
    operands: &[Operand],
    arch: Option<Arch>,
    description: &Description,
) -> io::Result<String> {
    let mut prefix = format!("    site {:#x}", site.pc);
    match site.offset {
        Some(offset) if offset == site.pc => {}
        Some(offset) => prefix += &format!(" (file offset {offset:#x})"),
        None => prefix += " (in no segment of the file)",
    }
    let blank = " ".repeat(prefix.width());
    if operands.is_empty() {
        writeln!(out, "{prefix}  no arguments")?;
        return Ok(blank);
    }
    let texts: Vec<_> = split_operands(&site.args).map(escape).collect();
    let width = texts.iter().map(|text| text.width()).max();
    let width = width.unwrap_or_default().min(24);
    let arguments = (0..operands.len()).map(|at| signature(description.arguments.get(at), at));
    let arguments: Vec<String> = arguments.collect();
    let names = arguments.iter().map(|text| text.width()).max();
    let names = names.unwrap_or_default().min(28);
    for ((operand, text), argument) in operands.iter().zip(&texts).zip(&arguments) {
        let words = match arch {
            Some(arch) => operand.explain(arch),
            None => "not parsed: unknown architecture".to_owned(),
        };
        writeln!(
            out,
            "{prefix}  {}  {}  {}",
            padded(argument, names),
            padded(text, width),
            escape(&words)
        )?;
        prefix.clone_from(&blank);
    }
    Ok(blank)
}

/// A text with blanks up to a width.
fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// Prints the function and the line of a site, as far as they are known.
fn print_place(out: &mut impl Write, prefix: &str, place: &CodePlace) -> io::Result<()> {
    let function = place.function.as_ref().map(|function| {
        let FunctionPlace { name, offset } = function;
        format!("{}+{offset:#x}", escape(name))
    });
    let source = place.source.as_ref().map(|source| {
        let file = Path::new(&source.file).file_name().unwrap_or_default();
        format!("{}:{}", shown(Path::new(file)), source.line)
    });
    match (function, source) {
        (Some(function), Some(source)) => writeln!(out, "{prefix}  in {function} ({source})"),
        (Some(place), None) | (None, Some(place)) => writeln!(out, "{prefix}  in {place}"),
        (None, None) => Ok(()),
    }
}

/// The first digits of a build-id.
fn short(build_id: Option<BuildId>, digits: usize) -> String {
    build_id.map_or_else(
        || "no build-id".to_owned(),
        |id| id.to_string().chars().take(digits).collect(),
    )
}
