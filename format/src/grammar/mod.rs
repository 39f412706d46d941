//! The grammar of argument strings: one for all architectures. An architecture's [`Syntax`] describes
//! the form of its operands.
//!
//! ```text
//! arguments  operand, blanks, operand, …
//! operand    [ ["-"] size ["f"] "@" ] location
//! location   register | constant | memory | symbol | segment ":" memory | constant expression
//! ```
//!
//! `sys/sdt.h` writes the size; the rest is what the compiler prints in assembly, including blanks.

mod displacement;
mod expression;
mod failure;
mod location;
mod memory;
mod number;
mod prefix;
mod split;

use crate::arch::Arch;
use crate::arch::{RegisterPart, RegisterPrefix, Syntax, Table};
use crate::operand::{Location, Operand, OperandErrorKind};

use failure::{Failure, Parsed};
use prefix::Prefix;

/// Parses an argument string. Every argument yields one operand, in order; one that cannot be parsed is
/// [`Location::Unparsed`] and does not affect others. If `arch` is `None` (unknown architecture),
/// all operands are unparsed.
///
/// ```
/// use usdtrec_format::{Arch, parse_operands};
///
/// let arch = Arch::X86_64;
/// let operands = parse_operands("-4@%ebx 8@-320(%rbp) 4@what?", Some(arch));
/// let words: Vec<String> = operands.iter().map(|operand| operand.explain(arch)).collect();
/// assert_eq!(words[0], "s32 in ebx");
/// assert_eq!(words[1], "u64 in memory at rbp-320");
/// assert_eq!(words[2], "not understood: expected + or -, found \"?\"");
/// ```
#[must_use]
pub fn parse_operands(args: &str, arch: Option<Arch>) -> Vec<Operand> {
    split_operands(args)
        .map(|text| operand(text, arch))
        .collect()
}

/// The texts of the operands in an argument string, in order, without surrounding blanks: as many as
/// [`parse_operands`] returns.
pub fn split_operands(args: &str) -> impl Iterator<Item = &str> {
    // A string that begins with a colon, like an empty one, means that there are no arguments.
    split::arguments(if args.starts_with(':') { "" } else { args })
}

/// One operand.
fn operand(text: &str, arch: Option<Arch>) -> Operand {
    let (prefix, location) = match prefix::parse(text) {
        Ok((prefix, body)) => {
            let location = parse_location(body, &prefix, arch);
            (prefix, location.map_err(|failure| failure.in_operand(text)))
        }
        Err(failure) => (Prefix::default(), Err(failure.in_operand(text))),
    };
    Operand {
        size: prefix.size,
        signed: prefix.signed,
        float: prefix.float,
        location: location.unwrap_or_else(|error| Location::Unparsed {
            text: text.to_owned(),
            error,
        }),
    }
}

/// Parses the part after the size.
fn parse_location<'a>(body: &'a str, prefix: &Prefix, arch: Option<Arch>) -> Parsed<'a, Location> {
    let arch = arch.ok_or_else(|| OperandErrorKind::Machine.at(body))?;
    if body.is_empty() {
        return Err(OperandErrorKind::NoLocation.at(body));
    }
    let location = Machine::new(arch).location(body, prefix)?;
    let in_memory = matches!(
        location,
        Location::RegisterDeref { .. }
            | Location::Indexed(_)
            | Location::SymbolDeref { .. }
            | Location::SymbolIndexed { .. }
            | Location::Absolute { .. }
            | Location::Segment { .. }
    );
    if prefix.is_number() || in_memory {
        Ok(location)
    } else {
        Err(prefix.unknown().at(body))
    }
}

/// An architecture's registers and syntax, for the parser.
#[derive(Clone, Copy)]
struct Machine {
    arch: Arch,
    table: &'static Table,
    syntax: &'static Syntax,
}

impl Machine {
    fn new(arch: Arch) -> Self {
        let table = arch.table();
        Self {
            arch,
            table,
            syntax: table.syntax,
        }
    }

    /// The register or part that a text names with its prefix; `None` if it is not a register name.
    fn register(self, text: &str) -> Option<RegisterPart> {
        let name = match self.syntax.register_prefix {
            RegisterPrefix::None => text,
            RegisterPrefix::Percent => text.strip_prefix('%')?,
            RegisterPrefix::OptionalPercent => text.strip_prefix('%').unwrap_or(text),
        };
        self.table.name(name)
    }

    /// As [`register`](Self::register), but an error if it is not a register name.
    fn expect_register(self, text: &str) -> Parsed<'_, RegisterPart> {
        self.register(text).ok_or_else(|| self.no_register(text))
    }

    /// The error for a text that is not a register name.
    fn no_register(self, text: &str) -> Failure<'_> {
        OperandErrorKind::NoRegister {
            machine: self.arch.name(),
            name: text.to_owned(),
        }
        .at(text)
    }
}
