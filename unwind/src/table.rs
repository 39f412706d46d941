//! The unwind table of a section: `.eh_frame` or `.debug_frame`.
//!
//! Memory is in proportion to the file: at most 256 MiB of a section, 8 million entries.

use gimli::{
    BaseAddresses, CfaRule, CommonInformationEntry, DebugFrame, EhFrame, Encoding, EndianSlice,
    Expression, FrameDescriptionEntry, LittleEndian, PartialFrameDescriptionEntry, RegisterRule,
    UnwindContext, UnwindExpression, UnwindOffset, UnwindSection, Vendor,
};
use usdtrec_format::Arch;

use crate::entry_work::Work;
use crate::machine::COLUMNS;
use crate::stack_copy::StackEnd;

/// Bytes of a table.
pub(crate) type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// The longest entry that is evaluated, bytes. The longest of LLVM, PostgreSQL and OpenSSL have 2,400.
const MAX_ENTRY: usize = 8 << 10;
/// The longest common part of entries (CIE), bytes. Those of gcc and clang have 28.
const MAX_COMMON: usize = 512;
/// Most entries of a table that are kept. Chromium has 1.3 million.
const MAX_ENTRIES: usize = 8 << 20;

/// Which section a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SectionKind {
    EhFrame,
    DebugFrame,
}

/// An unwind table.
///
/// Its entries are found by walking over the section once. The sorted table in `.eh_frame_hdr` is not used: it may contradict the section.
pub(crate) struct Table {
    kind: SectionKind,
    arch: Arch,
    bases: BaseAddresses,
    bytes: Vec<u8>,
    /// In ascending order.
    entries: Vec<Entry>,
}

/// The code that an entry (FDE) is about: from `start` to before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    start: u64,
    end: u64,
    /// Where it is in the section.
    offset: u32,
}

/// The rules for one address: how the registers of the caller are found.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) cfa: CfaRule<usize>,
    pub(crate) rules: Vec<ColumnRule>,
    /// The column of the return address.
    pub(crate) return_column: u16,
    /// Whether the code is what a signal handler returns to.
    pub(crate) is_signal: bool,
    pub(crate) encoding: Encoding,
    /// How much work finding them was.
    pub(crate) work: u32,
}

/// The rule of a column.
#[derive(Clone, Debug)]
pub(crate) struct ColumnRule {
    pub(crate) column: u16,
    pub(crate) rule: RegisterRule<usize>,
}

impl Table {
    pub(crate) fn new(kind: SectionKind, arch: Arch, bases: BaseAddresses, bytes: Vec<u8>) -> Self {
        let mut table = Self {
            kind,
            arch,
            bases,
            bytes,
            entries: Vec::new(),
        };
        table.entries = match kind {
            SectionKind::EhFrame => table.find_entries(&table.eh_frame()),
            SectionKind::DebugFrame => table.find_entries(&table.debug_frame()),
        };
        table
    }

    /// Size in memory, bytes.
    pub(crate) const fn size(&self) -> usize {
        self.bytes.len() + self.entries.len() * size_of::<Entry>()
    }

    /// The rules for a link-time address.
    pub(crate) fn row(
        &self,
        address: u64,
        context: &mut UnwindContext<usize>,
    ) -> Result<Row, StackEnd> {
        let after = self.entries.partition_point(|entry| entry.start <= address);
        let entry = after.checked_sub(1).and_then(|at| self.entries.get(at));
        let entry = entry.filter(|entry| address < entry.end);
        let offset = entry.ok_or(StackEnd::NoEntry)?.offset as usize;
        match self.kind {
            SectionKind::EhFrame => self.evaluate(&self.eh_frame(), offset, address, context),
            SectionKind::DebugFrame => self.evaluate(&self.debug_frame(), offset, address, context),
        }
    }

    /// The bytes of an expression.
    pub(crate) fn expression(
        &self,
        expression: UnwindExpression<usize>,
    ) -> Result<Expression<Slice<'_>>, StackEnd> {
        let UnwindExpression { offset, length } = expression;
        let bytes = self.bytes.get(offset..);
        let bytes = bytes.and_then(|bytes| bytes.get(..length));
        let bytes = bytes.ok_or(StackEnd::BadExpression)?;
        Ok(Expression(EndianSlice::new(bytes, LittleEndian)))
    }

    fn eh_frame(&self) -> EhFrame<Slice<'_>> {
        let mut section = EhFrame::new(&self.bytes, LittleEndian);
        section.set_address_size(self.arch.pointer_size());
        section.set_vendor(self.vendor());
        section
    }

    fn debug_frame(&self) -> DebugFrame<Slice<'_>> {
        let mut section = DebugFrame::new(&self.bytes, LittleEndian);
        section.set_address_size(self.arch.pointer_size());
        section.set_vendor(self.vendor());
        section
    }

    /// Instructions with the same number differ between machines.
    fn vendor(&self) -> Vendor {
        match self.arch {
            Arch::Aarch64 => Vendor::AArch64,
            _ => Vendor::Default,
        }
    }

    /// All entries, in ascending order. One that cannot be parsed is left out.
    fn find_entries<'s, S: UnwindSection<Slice<'s>>>(&self, section: &S) -> Vec<Entry> {
        let mut found = Vec::new();
        let mut common = CommonPart::default();
        let mut offset = 0;
        while let Some(end) = self.end_of_entry(offset)
            && found.len() < MAX_ENTRIES
        {
            let fde = section
                .partial_fde_from_offset(&self.bases, S::Offset::from(offset))
                .and_then(|partial| self.parse(&partial, &mut common));
            if let Ok(fde) = fde
                && fde.initial_address() < fde.end_address()
                && let Ok(offset) = u32::try_from(offset)
            {
                found.push(Entry {
                    start: fde.initial_address(),
                    end: fde.end_address(),
                    offset,
                });
            }
            offset = end;
        }
        found.sort_unstable();
        found.shrink_to_fit();
        found
    }

    /// Where the entry that begins at an offset ends: it begins with its length (DWARF 5, 7.4). `None` at the end of the section.
    fn end_of_entry(&self, offset: usize) -> Option<usize> {
        const LONG: u32 = 0xffff_ffff;
        let bytes = self.bytes.get(offset..)?;
        let (len, rest) = bytes.split_first_chunk()?;
        let (len, field) = match u32::from_le_bytes(*len) {
            LONG => (u64::from_le_bytes(*rest.first_chunk()?), 12),
            len => (u64::from(len), 4),
        };
        let end = usize::try_from(len)
            .ok()?
            .checked_add(field)?
            .checked_add(offset)?;
        (end <= self.bytes.len()).then_some(end)
    }

    fn parse<'s, S: UnwindSection<Slice<'s>>>(
        &self,
        partial: &PartialFrameDescriptionEntry<'_, S, Slice<'s>>,
        common: &mut CommonPart<'s>,
    ) -> gimli::Result<FrameDescriptionEntry<Slice<'s>>> {
        partial.parse(|section, bases, offset| {
            let at = UnwindOffset::into(offset);
            // Entries of the same common part are together.
            if let Some(known) = common.0.as_ref().filter(|known| known.offset() == at) {
                return Ok(known.clone());
            }
            let is_short = |end: usize| end - at <= MAX_COMMON;
            if !self.end_of_entry(at).is_some_and(is_short) {
                return Err(gimli::Error::OffsetOutOfBounds(at as u64));
            }
            let parsed = section.cie_from_offset(bases, offset)?;
            common.0 = Some(parsed.clone());
            Ok(parsed)
        })
    }

    fn evaluate<'s, S: UnwindSection<Slice<'s>>>(
        &self,
        section: &S,
        offset: usize,
        address: u64,
        context: &mut UnwindContext<usize>,
    ) -> Result<Row, StackEnd> {
        let partial = section
            .partial_fde_from_offset(&self.bases, S::Offset::from(offset))
            .map_err(|_| StackEnd::BadEntry)?;
        if partial.entry_len() > MAX_ENTRY {
            return Err(StackEnd::LongEntry);
        }
        let fde = self.parse(&partial, &mut CommonPart::default());
        let fde = fde.map_err(|_| StackEnd::BadEntry)?;
        let mut work = Work::default();
        work.add(fde.cie().instructions(section, &self.bases))?;
        work.add(fde.instructions(section, &self.bases))?;
        let row = fde
            .unwind_info_for_address(section, &self.bases, context, address)
            .map_err(|_| StackEnd::BadEntry)?;
        let rules = row.registers().map(|(register, rule)| ColumnRule {
            column: register.0,
            rule: rule.clone(),
        });
        let return_column = fde.cie().return_address_register().0;
        Ok(Row {
            cfa: row.cfa().clone(),
            rules: rules
                .filter(|rule| usize::from(rule.column) < COLUMNS)
                .collect(),
            return_column,
            is_signal: fde.is_signal_trampoline(),
            encoding: fde.cie().encoding(),
            work: work.get(),
        })
    }
}

/// The common part (CIE) that was parsed last.
#[derive(Default)]
struct CommonPart<'s>(Option<CommonInformationEntry<Slice<'s>>>);
