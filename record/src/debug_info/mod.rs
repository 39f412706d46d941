//! Names and types of arguments from a binary's debugging information (DWARF).
//!
//! A note says where an argument's value is; debugging information says which variable is there at that instruction. What
//! is read from a variable's place *is* that variable, so the name is never a guess. An operand that is no variable's
//! (a sum, a member of a structure) stays unnamed.

mod kind;
mod place;
mod variables;

use std::borrow::Cow;
use std::fs::File;
use std::path::{Path, PathBuf};

use gimli::{Dwarf, DwarfSections, EndianSlice, RunTimeEndian, SectionId, UnitRef};
use object::{Object, ObjectSection};
use usdtrec_format::schema::Argument;
use usdtrec_format::{Arch, BuildId, Operand, Site, parse_operands};

use crate::plan::Frames;
use crate::select::map;
use place::Place;
use variables::{Variable, variables};

/// What the readers of DWARF read from.
type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// Where distributions put debugging information that is not in the binary itself, by build-id.
const SEPARATE: &str = "/usr/lib/debug/.build-id";

/// Describes the arguments of probes of one binary, each given by its sites. An argument is [`Argument::unnamed`] where
/// there is no debugging information, where no variable has the operand's place, or where two sites differ.
#[must_use]
pub fn arguments<'a>(
    path: &Path,
    build_id: Option<&BuildId>,
    arch: Option<Arch>,
    probes: impl IntoIterator<Item = &'a [Site]>,
) -> Vec<Vec<Argument>> {
    let content = File::open(path).ok().and_then(|file| map(&file));
    let separate = build_id
        .and_then(|id| File::open(separate(id)).ok())
        .and_then(|file| map(&file));
    let info = content.as_deref().zip(arch).and_then(|(content, arch)| {
        let sections = sections(content);
        let sections = sections.or_else(|| sections_of_same(separate.as_deref()?, build_id));
        Some((content, arch, sections?))
    });
    let Some((content, arch, sections)) = info else {
        let none = |sites: &[Site]| unnamed(sites, arch);
        return probes.into_iter().map(none).collect();
    };
    let endian = endian(content);
    let reader = Reader {
        arch,
        dwarf: sections.borrow(|section| Slice::new(section, endian)),
        frames: Frames::of(content, Some(arch)),
    };
    let describe = |sites| reader.probe(sites);
    probes.into_iter().map(describe).collect()
}

/// The file for a build-id.
fn separate(id: &BuildId) -> PathBuf {
    let id = id.to_string();
    let (first, rest) = id.split_at_checked(2).unwrap_or((&id, ""));
    Path::new(SEPARATE)
        .join(first)
        .join(format!("{rest}.debug"))
}

/// Sections of a file that has debugging information.
type Sections<'a> = DwarfSections<Cow<'a, [u8]>>;

fn sections(content: &[u8]) -> Option<Sections<'_>> {
    let file = object::File::parse(content).ok()?;
    file.section_by_name(SectionId::DebugInfo.name())?;
    let load = |id: SectionId| {
        let section = file.section_by_name(id.name());
        let data = section.map(|section| section.uncompressed_data());
        data.unwrap_or(Ok(Cow::default()))
    };
    DwarfSections::load(load).ok()
}

/// Sections of a separate file, if it is of the same build.
fn sections_of_same<'a>(content: &'a [u8], build_id: Option<&BuildId>) -> Option<Sections<'a>> {
    let file = object::File::parse(content).ok()?;
    let found = file.build_id().ok()??;
    let same = build_id.is_some_and(|build_id| build_id.as_bytes() == found);
    if same { sections(content) } else { None }
}

fn endian(content: &[u8]) -> RunTimeEndian {
    let little = object::File::parse(content).is_ok_and(|file| file.is_little_endian());
    if little {
        RunTimeEndian::Little
    } else {
        RunTimeEndian::Big
    }
}

fn unnamed(sites: &[Site], arch: Option<Arch>) -> Vec<Argument> {
    let sites = sites.iter();
    let count = sites.map(|site| parse_operands(&site.args, arch).len());
    (0..count.max().unwrap_or(0))
        .map(Argument::unnamed)
        .collect()
}

/// The debugging information of one binary.
struct Reader<'a> {
    arch: Arch,
    dwarf: Dwarf<Slice<'a>>,
    frames: Frames<'a>,
}

impl Reader<'_> {
    /// The arguments of a probe as all of its sites that know a name agree.
    fn probe(&self, sites: &[Site]) -> Vec<Argument> {
        let mut known = unnamed(sites, Some(self.arch));
        let mut differ = vec![false; known.len()];
        for site in sites {
            for (place, found) in self.site(site).into_iter().enumerate() {
                let (Some(found), Some(known)) = (found, known.get_mut(place)) else {
                    continue;
                };
                if *known == Argument::unnamed(place) {
                    *known = found;
                } else if *known != found {
                    differ[place] = true;
                }
            }
        }
        let differing = differ.iter().enumerate().filter(|(_, differ)| **differ);
        for (place, _) in differing {
            known[place] = Argument::unnamed(place);
        }
        distinct(known)
    }

    /// The arguments of one site; `None` for operands that are no variable's.
    fn site(&self, site: &Site) -> Vec<Option<Argument>> {
        let operands = parse_operands(&site.args, Some(self.arch));
        let Some(unit) = self.unit(site.pc) else {
            return Vec::new();
        };
        let unit = UnitRef::new(&self.dwarf, &unit);
        let caller = self.frames.caller(site.pc);
        let scopes = variables(unit, site.pc, caller);
        let argument = |operand| argument(unit, &scopes, operand, self.arch);
        operands.iter().map(argument).collect()
    }

    /// The compilation unit of an address.
    fn unit(&self, pc: u64) -> Option<gimli::Unit<Slice<'_>>> {
        let mut headers = self.dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let Ok(unit) = self.dwarf.unit(header) else {
                continue;
            };
            let ranges = self.dwarf.unit_ranges(&unit);
            if ranges.is_ok_and(|ranges| covers(ranges, pc)) {
                return Some(unit);
            }
        }
        None
    }
}

/// Whether one of the ranges has the address; damaged ones have none.
fn covers(mut ranges: gimli::RangeIter<Slice<'_>>, pc: u64) -> bool {
    while let Ok(Some(range)) = ranges.next() {
        if (range.begin..range.end).contains(&pc) {
            return true;
        }
    }
    false
}

/// The variable at an operand's place: that of the innermost scope that has one there, unless that has several.
fn argument<'a>(
    unit: UnitRef<'a, Slice<'a>>,
    scopes: &[Vec<Variable>],
    operand: &Operand,
    arch: Arch,
) -> Option<Argument> {
    let place = Place::of(operand, arch)?;
    let here = |variable: &&Variable| variable.place == place;
    let scope = scopes
        .iter()
        .rev()
        .find(|scope| scope.iter().any(|v| v.place == place))?;
    let mut here = scope.iter().filter(here);
    let (variable, None) = (here.next()?, here.next()) else {
        return None;
    };
    let kind = kind::of(unit, variable.kind, operand, arch)?;
    Some(Argument {
        name: variable.name.clone(),
        kind: kind.kind,
        labels: kind.labels,
        ..Argument::default()
    })
}

/// Two arguments of one name would be one in an expression.
fn distinct(mut arguments: Vec<Argument>) -> Vec<Argument> {
    let names: Vec<_> = arguments
        .iter()
        .map(|argument| argument.name.clone())
        .collect();
    for (place, argument) in arguments.iter_mut().enumerate() {
        if names.iter().filter(|name| **name == argument.name).count() > 1 {
            *argument = Argument::unnamed(place);
        }
    }
    arguments
}
