//! Names and types of arguments, and lines of sites, from a binary's debugging information (DWARF).
//!
//! A note has the location of an argument's value; debugging information has the variable at that location and instruction. A value that is
//! read from a variable's location *is* that variable, so the name is not a guess. An operand that is not the location of a variable (a
//! sum, a member of a structure) stays unnamed.
//!
//! Debugging information is the last source: it is used if no schema has the probe. An operand that is exactly the
//! location of one variable at that instruction (register, frame slot or address, same size) gets the variable's name
//! and type. A location that two variables of one scope share stays `argN`. `char *` is read as a string, and
//! enumerations become words.
//!
//! The information comes from the binary, from `/usr/lib/debug/.build-id` or the file of `.gnu_debuglink`, from the file that
//! these share with others (dwz), and from `.dwo` files and their package, for all seven architectures, by the register
//! numbers of their ABIs.

pub(super) mod array;
mod files;
mod kind;
mod limits;
mod variables;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use gimli::{
    BaseAddresses, CfaRule, DebugFrame, EhFrame, EndianSlice, RunTimeEndian, UnwindContext,
    UnwindSection, Vendor,
};
use usdtrec_dwarf::{Die, DwarfInfo, WholeUnit};
use usdtrec_format::schema::{Argument, Labels};
use usdtrec_format::{Arch, Operand, SourceLine};

use self::files::{Files, Unwind};
use self::limits::{FOUND_PATIENCE, MAX_WORD_BYTES, PATIENCE, WORD_BYTES, is_late};
use self::variables::{Here, ValueLocation, Variable, variables};
use crate::plan::frame::{Frames, RegisterOffset};
use crate::plan::symbols::NeededSymbols;
use crate::select::probe::PlannedSite;
use crate::select::program::Program;

pub use usdtrec_dwarf::DwarfNeed;

/// Maximum length of debugging information that is read for lines alone, bytes: reading takes time and memory in proportion.
const MAX_BYTES_FOR_LINES: u64 = 128 << 20;

/// Reads the debugging information of a file; `None` if there is none, or if it is too long for what is needed: very long one is read only
/// for variables.
pub fn read<T>(
    program: &Program,
    need: DwarfNeed,
    answer: impl FnOnce(&DebugInfo<'_>) -> T,
) -> Option<T> {
    let arch = program.file().arch()?;
    let files = Files::open(program.file())?;
    if need == DwarfNeed::CallsAndLines && files.length() > MAX_BYTES_FOR_LINES {
        return None;
    }
    let info = DebugInfo {
        arch,
        dwarf: files.read(need)?,
        files,
        units: RefCell::default(),
        frames: program.frames(),
        separate_symbols: RefCell::new(program.needed_symbols()),
        until: Instant::now()
            + match program.is_found() {
                true => FOUND_PATIENCE,
                false => PATIENCE,
            },
        word_bytes_left: Cell::new(MAX_WORD_BYTES),
        program,
    };
    Some(answer(&info))
}

fn unnamed(sites: &[PlannedSite]) -> Vec<Argument> {
    let count = sites.iter().map(|site| site.operands.len());
    (0..count.max().unwrap_or(0))
        .map(Argument::unnamed)
        .collect()
}

/// The debugging information of one binary.
pub struct DebugInfo<'a> {
    arch: Arch,
    files: Files,
    dwarf: DwarfInfo,
    /// The units that were read, by their places in the file.
    units: RefCell<HashMap<u32, Option<Rc<WholeUnit>>>>,
    frames: Arc<Frames>,
    program: &'a Program,
    /// Symbols of the separate file.
    separate_symbols: RefCell<NeededSymbols>,
    /// When the search for variables ends.
    until: Instant,
    /// Size of the words of enumerations that may still be kept.
    word_bytes_left: Cell<usize>,
}

impl std::fmt::Debug for DebugInfo<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("DebugInfo").field(self.program).finish()
    }
}

impl DebugInfo<'_> {
    /// The lines of addresses of code, as linked; `None` where no line table has the address.
    #[must_use]
    pub fn lines(&self, addresses: &[u64]) -> Vec<Option<SourceLine>> {
        // Each table of lines is read once.
        let mut of_units: BTreeMap<_, Vec<u64>> = BTreeMap::new();
        for &address in addresses {
            if let Some(place) = self.dwarf.unit_at(address) {
                of_units.entry(place).or_default().push(address);
            }
        }
        let mut found = HashMap::new();
        for (place, addresses) in of_units {
            let Some(unit) = self.dwarf.own.unit(place) else {
                continue;
            };
            let Some(lines) = self.dwarf.lines(&unit) else {
                continue;
            };
            let line = |address| Some((address, self.dwarf.line_at(&lines, &unit, address)?));
            found.extend(addresses.into_iter().filter_map(line));
        }
        let line = |address| found.get(address).cloned();
        addresses.iter().map(line).collect()
    }

    /// The arguments of a probe, given by its sites: [`Argument::unnamed`] where no variable has the operand's place, or where two sites differ.
    #[must_use]
    pub fn arguments(&self, sites: &[PlannedSite]) -> Vec<Argument> {
        let operands = || sites.iter().flat_map(|site| &site.operands);
        self.program.need_symbols(operands());
        self.separate_symbols.borrow_mut().add(operands());
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
        let mut known = distinct(known);
        for argument in &mut known {
            argument.labels = argument.labels.take().filter(|words| self.keeps(words));
        }
        known
    }

    /// Whether the words of an enumeration are kept.
    fn keeps(&self, words: &Labels) -> bool {
        let words = words.words().values();
        let sizes = words.map(|word| word.len() + WORD_BYTES);
        let left = self.word_bytes_left.get().checked_sub(sizes.sum());
        self.word_bytes_left.set(left.unwrap_or_default());
        left.is_some()
    }

    /// The arguments of one site; `None` for operands that are not the location of a variable.
    fn site(&self, PlannedSite { site, operands, .. }: &PlannedSite) -> Vec<Option<Argument>> {
        if is_late(self.until) {
            return Vec::new();
        }
        let Some(unit) = self.unit(site.pc) else {
            return Vec::new();
        };
        let root = self.dwarf.first_entry(&unit);
        let address = |symbol: &str| self.address(symbol);
        let global = operands.iter().any(self::variables::global);
        let frame = OnceCell::new();
        let caller = || *frame.get_or_init(|| self.caller(site.pc));
        let here = Here {
            pc: site.pc,
            caller: &caller,
            symbols: global.then_some(&address),
            until: self.until,
        };
        let scopes = variables(&root, &here);
        let cast = self.is_cast_to_isize(&root, operands);
        let argument = |(slot, operand): (usize, &Operand)| {
            let variable = || {
                let place = ValueLocation::from_operand(operand, self.arch, address)?;
                argument(&scopes, place, operand, self.arch, cast)
            };
            variable().or_else(|| self.array(&scopes, operand, (site.pc, slot), &caller))
        };
        operands.iter().enumerate().map(argument).collect()
    }

    /// The unit with the code at an address.
    fn unit(&self, pc: u64) -> Option<Rc<WholeUnit>> {
        let place = self.dwarf.unit_at(pc)?;
        let mut units = self.units.borrow_mut();
        let read = || self.dwarf.unit(place).map(Rc::new);
        units.entry(place).or_insert_with(read).clone()
    }

    /// Whether the signs of a note have no meaning: the macro of Rust's crate `probe` casts every argument to `isize` (its
    /// `platform/systemtap.rs`).
    fn is_cast_to_isize(&self, root: &Die<'_>, operands: &[Operand]) -> bool {
        let word = self.arch.pointer_size();
        operands
            .iter()
            .all(|operand| operand.signed == Some(true) && operand.size == Some(word))
            && kind::is_rust(root)
    }

    fn caller(&self, pc: u64) -> Option<RegisterOffset> {
        let own = self.frames.caller(pc);
        own.or_else(|| caller(self.files.unwind(), self.arch, self.files.endian(), pc))
    }

    /// The link-time address of a symbol that one variable or function alone has.
    fn address(&self, symbol: &str) -> Option<u64> {
        let own = self.program.symbols().value(symbol);
        own.ok().or_else(|| {
            let separate = self.files.separate.as_ref()?;
            let mut symbols = self.separate_symbols.borrow_mut();
            symbols.of_file(&separate.0).value(symbol).ok()
        })
    }
}

/// The variable at an operand's place: that of the innermost scope that has one there, unless that has several. `cast`: the note
/// has signs that are not the variables'.
fn argument(
    scopes: &[Vec<Variable<'_>>],
    place: ValueLocation,
    operand: &Operand,
    arch: Arch,
    cast: bool,
) -> Option<Argument> {
    let here = |variable: &&Variable<'_>| variable.place == place;
    let scope = scopes
        .iter()
        .rev()
        .find(|scope| scope.iter().any(|v| v.place == place))?;
    let mut here = scope.iter().filter(here);
    let (variable, None) = (here.next()?, here.next()) else {
        return None;
    };
    let kind = kind::from_operand(&variable.kind, operand, arch, cast)?;
    Some(Argument {
        name: variable.name.clone(),
        kind: kind.kind,
        labels: kind.labels,
        ..Argument::default()
    })
}

/// Removes the names of arguments with the same name, which expressions could not distinguish.
fn distinct(mut arguments: Vec<Argument>) -> Vec<Argument> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for argument in &arguments {
        *counts.entry(argument.name.clone()).or_default() += 1;
    }
    for (place, argument) in arguments.iter_mut().enumerate() {
        if counts.get(&argument.name).is_some_and(|count| *count > 1) {
            *argument = Argument::unnamed(place);
        }
    }
    arguments
}

/// The caller's frame (the canonical frame address) at a link-time address, from `.eh_frame`, else from `.debug_frame`.
fn caller(tables: &Unwind, arch: Arch, endian: RunTimeEndian, pc: u64) -> Option<RegisterOffset> {
    // Tables mark the instruction from which on the return address is signed, by an opcode with another meaning on other architectures.
    let vendor = match arch.pointer_authentication_bits() {
        Some(_) => Vendor::AArch64,
        None => Vendor::Default,
    };
    if let Some((address, data)) = &tables.eh_frame {
        let mut table = EhFrame::from(EndianSlice::new(data, endian));
        table.set_address_size(arch.pointer_size());
        table.set_vendor(vendor);
        let bases = BaseAddresses::default().set_eh_frame(*address);
        let found = cfa(&table, &bases, pc, EhFrame::cie_from_offset);
        if found.is_some() {
            return found;
        }
    }
    let (_, data) = tables.debug_frame.as_ref()?;
    let mut table = DebugFrame::from(EndianSlice::new(data, endian));
    table.set_address_size(arch.pointer_size());
    table.set_vendor(vendor);
    cfa(
        &table,
        &BaseAddresses::default(),
        pc,
        DebugFrame::cie_from_offset,
    )
}

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

fn cfa<'a, S: UnwindSection<Slice<'a>>>(
    table: &S,
    bases: &BaseAddresses,
    pc: u64,
    cie: impl FnMut(
        &S,
        &BaseAddresses,
        S::Offset,
    ) -> gimli::Result<gimli::CommonInformationEntry<Slice<'a>>>,
) -> Option<RegisterOffset> {
    let mut context = UnwindContext::new();
    let row = table
        .unwind_info_for_address(bases, &mut context, pc, cie)
        .ok()?;
    match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => Some(RegisterOffset {
            register: *register,
            offset: *offset,
        }),
        CfaRule::Expression(_) => None,
    }
}
