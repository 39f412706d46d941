//! The unwind tables of an ELF file.

use std::sync::atomic::{AtomicU64, Ordering};

use gimli::{BaseAddresses, UnwindContext};
use object::read::{Object, ObjectSection};
use object::{Architecture, CompressionFormat};
use usdtrec_format::Arch;

use crate::machine::Machine;
use crate::stack_copy::StackEnd;
use crate::table::{Row, SectionKind, Table};

/// The largest section that is read, bytes. The largest `.eh_frame` of Debian 12 has 60 MB.
const MAX_SECTION_BYTES: u64 = 256 << 20;
/// The most code that is searched for where signal handlers return to, bytes.
const MAX_CODE: u64 = 32 << 20;

/// The unwind tables of an ELF file: `.eh_frame` and `.debug_frame`.
pub struct UnwindTables {
    machine: &'static Machine,
    /// Those of the sections that the file has, in the order in which they are searched.
    tables: Vec<Table>,
    /// Where signal handlers return to, in ascending order.
    signal_returns: Vec<u64>,
    /// No other tables of this process have it.
    number: u64,
}

impl std::fmt::Debug for UnwindTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UnwindTables")
            .field("size", &self.size())
            .finish_non_exhaustive()
    }
}

/// The rules for an address.
pub(crate) struct FoundRow {
    /// The number of their table among those of the file.
    pub(crate) at: usize,
    pub(crate) row: Row,
}

impl UnwindTables {
    /// Reads the tables of a file. Sections that the file has not, that are compressed, partly outside of the file, or larger than 256 MiB are left
    /// out. `None` if stacks of its architecture are not unwound.
    #[must_use]
    pub fn read<'data>(file: &impl Object<'data>) -> Option<Self> {
        let machine = Machine::for_arch(match file.architecture() {
            Architecture::X86_64 if file.is_64() => Arch::X86_64,
            Architecture::Aarch64 if file.is_little_endian() => Arch::Aarch64,
            _ => return None,
        })?;
        let address = |name| Some(file.section_by_name(name)?.address());
        let bases = BaseAddresses::default();
        let bases = bases.set_eh_frame(address(".eh_frame").unwrap_or(0));
        let bases = bases.set_text(address(".text").unwrap_or(0));
        let bases = bases.set_got(address(".got").unwrap_or(0));
        let sections = [
            (SectionKind::EhFrame, ".eh_frame"),
            (SectionKind::DebugFrame, ".debug_frame"),
        ];
        let tables = sections.into_iter().filter_map(|(kind, name)| {
            let bytes = section(file, name)?;
            Some(Table::new(kind, machine.arch, bases.clone(), bytes))
        });
        Some(Self {
            signal_returns: signal_returns(file, machine),
            ..Self::from_tables(machine, tables.collect())
        })
    }

    /// Tables that are in no file.
    pub(crate) fn from_tables(machine: &'static Machine, tables: Vec<Table>) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        Self {
            machine,
            tables,
            signal_returns: Vec::new(),
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// These, with signal handlers that return to an address.
    #[cfg(test)]
    pub(crate) fn with_signal_return(mut self, address: u64) -> Self {
        self.signal_returns = vec![address];
        self
    }

    /// Size in memory, bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.tables.iter().map(Table::size).sum()
    }

    /// Whether the file has no table.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    pub(crate) const fn machine(&self) -> &'static Machine {
        self.machine
    }

    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn table(&self, at: usize) -> Option<&Table> {
        self.tables.get(at)
    }

    /// The rules for a link-time address, of the first table that has it.
    pub(crate) fn row(
        &self,
        address: u64,
        context: &mut UnwindContext<usize>,
    ) -> Result<FoundRow, StackEnd> {
        for (at, table) in self.tables.iter().enumerate() {
            match table.row(address, context) {
                Err(StackEnd::NoEntry) => {}
                Ok(row) => return Ok(FoundRow { at, row }),
                Err(end) => return Err(end),
            }
        }
        Err(StackEnd::NoEntry)
    }

    /// Whether handlers of signals return to this address.
    pub(crate) fn is_signal_return(&self, address: u64) -> bool {
        self.signal_returns.binary_search(&address).is_ok()
    }
}

/// The addresses of the code that calls `rt_sigreturn`. glibc has unwind information for it, musl has none.
fn signal_returns<'data>(file: &impl Object<'data>, machine: &Machine) -> Vec<u64> {
    // Only the C library has it; programs with more code are not searched.
    let text = file.section_by_name(".text");
    let text = text.filter(|text| text.size() <= MAX_CODE);
    let Some((start, data)) = text.and_then(|text| Some((text.address(), text.data().ok()?)))
    else {
        return Vec::new();
    };
    let found = memchr::memmem::find_iter(data, machine.signal_return);
    found.map(|at| start.saturating_add(at as u64)).collect()
}

/// The content of a section; `None` if it is empty, too large, compressed, or partly outside of the file.
fn section<'data>(file: &impl Object<'data>, name: &str) -> Option<Vec<u8>> {
    let section = file.section_by_name(name)?;
    let stored = section.file_range().map_or(0, |(_, size)| size);
    if !(1..=MAX_SECTION_BYTES).contains(&stored) {
        return None;
    }
    let data = section.compressed_data().ok()?;
    (data.format == CompressionFormat::None).then(|| data.data.to_vec())
}
