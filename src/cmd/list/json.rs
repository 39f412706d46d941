//! The list as JSON: one object per line for each probe of each file.

use std::io::{self, Write};

use serde::{Serialize, Serializer};
use usdtrec_buildid_cache::IndexedProbe;
use usdtrec_buildid_cache::elf::FileState;
use usdtrec_format::escape::escape_json;
use usdtrec_format::schema::{Argument, Choice, Description};
use usdtrec_format::{Arch, BuildId, CodePlace, JsonOperand, Operand, Site};

use super::describe::{Described, SiteNote, operands};

/// One line. Numbers that can need 64 bits are strings, because many JSON readers keep only 53 bits.
#[derive(Serialize)]
struct Line<'a> {
    event: String,
    provider: &'a str,
    name: &'a str,
    path: std::borrow::Cow<'a, str>,
    build_id: Option<BuildId>,
    arch: Option<Arch>,
    /// `changed` or `gone`; absent if the file at the path is the indexed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    /// The probe's description, with `-v`.
    #[serde(flatten)]
    known: Option<JsonDescription<'a>>,
    sites: Vec<JsonSite<'a>>,
}

/// Description of a probe from a schema or debugging information.
#[derive(Serialize)]
struct JsonDescription<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    /// What a program needs for the probe to be hit at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    needs: Option<&'a str>,
    /// Source of the schema; absent without a schema.
    #[serde(skip_serializing_if = "str::is_empty")]
    schema: &'a str,
    /// The arguments, as many as there are operands at the site with the most.
    arguments: Vec<JsonArgument<'a>>,
}

/// An argument: `name`, and if known `type`, `unit`, `enum` or `flags` (words by numbers), `description`.
struct JsonArgument<'a>(&'a Argument);

impl Serialize for JsonArgument<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_bare() {
            return serializer.collect_map([("name", &self.0.name)]);
        }
        self.0.serialize(serializer)
    }
}

impl<'a> JsonDescription<'a> {
    fn new(description: &'a Description) -> Self {
        let Choice { schema, place, .. } = &description.choice;
        Self {
            description: schema
                .as_ref()
                .and_then(|schema| schema.description.as_deref()),
            needs: schema.as_ref().and_then(|schema| schema.needs.as_deref()),
            schema: place,
            arguments: description.arguments.iter().map(JsonArgument).collect(),
        }
    }
}

#[derive(Serialize)]
struct JsonSite<'a> {
    pc: Hex,
    base: Hex,
    semaphore: Hex,
    offset: Option<Hex>,
    semaphore_offset: Option<Hex>,
    args: &'a str,
    operands: Operands,
    /// Where in the code it is, with `-v`.
    #[serde(flatten)]
    place: Option<&'a CodePlace>,
    /// What matters about it in the listed processes, with `-v` and `-p`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    processes: Vec<JsonNote<'a>>,
}

/// Something about a site in a process.
#[derive(Serialize)]
struct JsonNote<'a> {
    pid: u32,
    address: Hex,
    found: &'a str,
}

struct Hex(u64);

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:#x}", self.0))
    }
}

/// The operands of a site and the architecture that names their registers.
struct Operands {
    operands: Vec<Operand>,
    arch: Option<Arch>,
}

impl Serialize for Operands {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Operands of an unknown architecture are unparsed text, so that any architecture serves here.
        let arch = self.arch.unwrap_or(Arch::X86_64);
        let forms: Vec<JsonOperand<'_>> = self.operands.iter().map(|o| o.json(arch)).collect();
        serializer.collect_seq(forms)
    }
}

pub(super) fn print(
    out: &mut impl Write,
    found: &[IndexedProbe<'_>],
    described: Option<&[Described]>,
) -> io::Result<()> {
    for (at, IndexedProbe { indexed, probe }) in found.iter().enumerate() {
        let binary = &indexed.binary;
        let described = described.and_then(|all| all.get(at));
        let operands = match described {
            Some(described) => described.operands.clone(),
            None => operands(probe, binary.arch),
        };
        let places = described
            .into_iter()
            .flat_map(|described| &described.places);
        let places = places.map(Some).chain(std::iter::repeat(None));
        let notes = described.into_iter().flat_map(|described| &described.notes);
        let notes = notes.map(Vec::as_slice).chain(std::iter::repeat(&[][..]));
        let sites = probe.sites.iter().zip(operands).zip(places).zip(notes);
        let line = Line {
            event: probe.event(),
            provider: &probe.provider,
            name: &probe.name,
            path: binary.path.to_string_lossy(),
            build_id: binary.build_id,
            arch: binary.arch,
            state: match indexed.state {
                FileState::Current => None,
                FileState::Changed(_) => Some("changed"),
                FileState::Gone => Some("gone"),
            },
            known: described.map(|described| JsonDescription::new(&described.description)),
            sites: sites
                .map(|(((site, operands), place), notes)| JsonSite {
                    place,
                    processes: notes.iter().map(json_note).collect(),
                    ..json_site(site, operands, binary.arch)
                })
                .collect(),
        };
        let line = serde_json::to_string(&line)?;
        writeln!(out, "{}", escape_json(&line))?;
    }
    Ok(())
}

fn json_site(site: &Site, operands: Vec<Operand>, arch: Option<Arch>) -> JsonSite<'_> {
    JsonSite {
        pc: Hex(site.pc),
        base: Hex(site.base),
        semaphore: Hex(site.semaphore),
        offset: site.offset.map(Hex),
        semaphore_offset: site.semaphore_offset.map(Hex),
        args: &site.args,
        operands: Operands { operands, arch },
        place: None,
        processes: Vec::new(),
    }
}

fn json_note(note: &SiteNote) -> JsonNote<'_> {
    JsonNote {
        pid: note.pid,
        address: Hex(note.address),
        found: &note.found,
    }
}
