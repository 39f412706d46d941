//! Names and types of arguments, and lines of sites, from a binary's debugging information (DWARF).
//!
//! A note has the location of an argument's value; debugging information has the variable at that location and instruction. A value that is
//! read from a variable's location *is* that variable, so the name is not a guess. An operand that is not the location of a variable (a
//! sum, a member of a structure) stays unnamed.

mod files;
mod kind;
mod lines;
mod place;
mod sections;
mod slice;
mod units;
mod unwind;
mod variables;

use std::cell::OnceCell;
use std::sync::Arc;

use usdtrec_format::schema::Argument;
use usdtrec_format::{Arch, Operand, SourceLine};

use crate::plan::symbols::Symbols;
use crate::plan::{Frames, RegisterOffset};
use crate::probe::PlannedSite;
use crate::program::Program;
use files::Files;
use place::Place;
use units::Units;
use variables::{Here, Variable, variables};

/// Maximum length of debugging information that is read for lines alone, bytes: reading takes time and memory in proportion.
const MOST_FOR_LINES: u64 = 128 << 20;

/// What debugging information says of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeInfo {
    /// Its arguments: [`Argument::unnamed`] where there is no debugging information, where no variable has the operand's place, or where two
    /// sites differ.
    pub arguments: Vec<Argument>,
    /// The line of each site.
    pub lines: Vec<Option<SourceLine>>,
}

/// Describes probes of one file, each given by its sites.
#[must_use]
pub fn describe<'a>(
    program: &Program,
    probes: impl IntoIterator<Item = &'a [PlannedSite]>,
) -> Vec<ProbeInfo> {
    let probes: Vec<&[PlannedSite]> = probes.into_iter().collect();
    let found = read(program, u64::MAX, |reader| reader.describe(&probes));
    let unknown = |sites: &&[PlannedSite]| ProbeInfo {
        arguments: unnamed(sites),
        lines: vec![None; sites.len()],
    };
    found.unwrap_or_else(|| probes.iter().map(unknown).collect())
}

/// The lines of sites of one file, unless its debugging information is very long.
#[must_use]
pub fn lines(program: &Program, sites: &[PlannedSite]) -> Vec<Option<SourceLine>> {
    let found = read(program, MOST_FOR_LINES, |reader| reader.lines(sites));
    found.unwrap_or_else(|| vec![None; sites.len()])
}

/// Reads debugging information that is at most so long; `None` if there is none.
fn read<T>(program: &Program, most: u64, answer: impl FnOnce(&Reader<'_>) -> T) -> Option<T> {
    let arch = program.file().arch()?;
    let files = Files::open(program.file())?;
    if files.length() > most {
        return None;
    }
    let (own, shared) = files.sections()?;
    let reader = Reader {
        arch,
        files: &files,
        units: Units::new(&own, shared.as_ref(), files.endian()),
        frames: program.frames(),
        symbols: OnceCell::new(),
        program,
    };
    Some(answer(&reader))
}

fn unnamed(sites: &[PlannedSite]) -> Vec<Argument> {
    let count = sites.iter().map(|site| site.operands.len());
    (0..count.max().unwrap_or(0))
        .map(Argument::unnamed)
        .collect()
}

/// The debugging information of one binary.
struct Reader<'a> {
    arch: Arch,
    files: &'a Files,
    units: Units<'a>,
    frames: Arc<Frames>,
    program: &'a Program,
    /// Symbols of the binary, and of the separate file.
    symbols: OnceCell<(Arc<Symbols>, Symbols)>,
}

impl Reader<'_> {
    fn describe(&self, probes: &[&[PlannedSite]]) -> Vec<ProbeInfo> {
        let sites: Vec<PlannedSite> = probes.concat();
        let mut lines = self.lines(&sites).into_iter();
        let probes = probes.iter().map(|sites| ProbeInfo {
            arguments: self.probe(sites),
            lines: lines.by_ref().take(sites.len()).collect(),
        });
        probes.collect()
    }

    fn lines(&self, sites: &[PlannedSite]) -> Vec<Option<SourceLine>> {
        let addresses: Vec<u64> = sites.iter().map(|site| site.site.pc).collect();
        lines::lines(&self.units, &addresses)
    }

    /// The arguments of a probe on which all sites with a name agree.
    fn probe(&self, sites: &[PlannedSite]) -> Vec<Argument> {
        let mut known = unnamed(sites);
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

    /// The arguments of one site; `None` for operands that are not the location of a variable.
    fn site(&self, PlannedSite { site, operands, .. }: &PlannedSite) -> Vec<Option<Argument>> {
        let Some(root) = self.units.at_address(site.pc) else {
            return Vec::new();
        };
        let address = |symbol: &str| self.address(symbol);
        let global = operands.iter().any(place::global);
        let here = Here {
            pc: site.pc,
            caller: &|| self.caller(site.pc),
            symbols: global.then_some(&address),
        };
        let scopes = variables(&root, &here);
        let cast = self.is_cast_to_isize(&root, operands);
        let argument = |operand: &Operand| {
            let place = Place::of(operand, self.arch, address)?;
            argument(&scopes, place, operand, self.arch, cast)
        };
        operands.iter().map(argument).collect()
    }

    /// Whether the signs of a note have no meaning: the macro of Rust's crate `probe` casts every argument to `isize` (its
    /// `platform/systemtap.rs`).
    fn is_cast_to_isize(&self, root: &units::Die<'_, '_>, operands: &[Operand]) -> bool {
        let word = self.arch.pointer_size();
        operands
            .iter()
            .all(|operand| operand.signed == Some(true) && operand.size == Some(word))
            && kind::is_rust(root)
    }

    fn caller(&self, pc: u64) -> Option<RegisterOffset> {
        let own = self.frames.caller(pc);
        own.or_else(|| unwind::caller(self.files.unwind(), self.arch, self.files.endian(), pc))
    }

    /// The link-time address of a symbol that one variable or function alone has.
    fn address(&self, symbol: &str) -> Option<u64> {
        let (own, separate) = self.symbols.get_or_init(|| {
            let separate = self.files.separate.as_ref();
            let separate = separate.map(Symbols::of).unwrap_or_default();
            (self.program.symbols(), separate)
        });
        let value = own.value(symbol).or_else(|_| separate.value(symbol));
        value.ok()
    }
}

/// The variable at an operand's place: that of the innermost scope that has one there, unless that has several. `cast`: the note
/// has signs that are not the variables'.
fn argument(
    scopes: &[Vec<Variable<'_, '_>>],
    place: Place,
    operand: &Operand,
    arch: Arch,
    cast: bool,
) -> Option<Argument> {
    let here = |variable: &&Variable<'_, '_>| variable.place == place;
    let scope = scopes
        .iter()
        .rev()
        .find(|scope| scope.iter().any(|v| v.place == place))?;
    let mut here = scope.iter().filter(here);
    let (variable, None) = (here.next()?, here.next()) else {
        return None;
    };
    let kind = kind::of(&variable.kind, operand, arch, cast)?;
    Some(Argument {
        name: variable.name.clone(),
        kind: kind.kind,
        labels: kind.labels,
        ..Argument::default()
    })
}

/// Removes the names of arguments with the same name, which expressions could not distinguish.
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
