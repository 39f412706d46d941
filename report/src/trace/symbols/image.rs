//! Reading what symbols need out of an ELF file.

use std::fs::{self, Metadata};
use std::path::Path;

use object::read::{Object, ObjectSection, ObjectSymbol, ReadCache};
use object::{SectionFlags, SymbolFlags, elf};
use usdtrec_format::BuildId;
use usdtrec_unwind::Segments;

use crate::trace::symbols::table::{Candidate, Rank, SymbolTable};

/// An ELF file that is open.
pub(crate) struct Binary {
    /// Read piece by piece and not mapped: a mapped file that another program cuts would kill us.
    data: ReadCache<fs::File>,
    /// Bytes.
    len: u64,
}

impl Binary {
    /// Opens a file.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        // The path comes from a trace. Opening a FIFO would wait for ever, and opening a device may do things.
        let is_file = |found: &Metadata| found.is_file();
        fs::metadata(path).ok().filter(is_file)?;
        let file = fs::File::open(path).ok()?;
        let len = file.metadata().ok().filter(is_file)?.len();
        Some(Self {
            data: ReadCache::new(file),
            len,
        })
    }

    /// Its headers; `None` if it is no ELF file or does not have this build-id (any, if `None`).
    pub(crate) fn parse(&self, build_id: Option<BuildId>) -> Option<ParsedBinary<'_>> {
        let file = object::File::parse(&self.data).ok()?;
        let is_it = build_id.is_none() || build_id_of(&file) == build_id;
        is_it.then_some(file)
    }
}

/// An ELF file whose headers were read.
pub(crate) type ParsedBinary<'f> = object::File<'f, &'f ReadCache<fs::File>>;

fn build_id_of(file: &ParsedBinary<'_>) -> Option<BuildId> {
    file.build_id().ok()?.and_then(|id| BuildId::new(id).ok())
}

/// What an ELF file says of its code.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) symbols: SymbolTable,
    /// Whether the symbols are of `.symtab`, not only those of `.dynsym` that other files can use.
    pub(crate) complete: bool,
    pub(crate) segments: Segments,
    pub(crate) build_id: Option<BuildId>,
}

impl Image {
    /// Reads an ELF file that has this build-id (any, if `None`). `None` if the file is another or cannot be read.
    pub(crate) fn read(path: &Path, build_id: Option<BuildId>) -> Option<Self> {
        Self::of(&Binary::open(path)?, build_id)
    }

    /// Reads what an open file says, as [`read`](Self::read) does.
    pub(crate) fn of(binary: &Binary, build_id: Option<BuildId>) -> Option<Self> {
        let file = binary.parse(build_id)?;
        let found = build_id_of(&file);
        let len = binary.len;
        // Names may share their bytes, but not so that they are much more than the file.
        let most = len.saturating_mul(2).min(1 << 31) as usize;
        let mut symbols = candidates(&file, file.symbols(), most);
        let complete = !symbols.is_empty();
        if !complete {
            symbols = candidates(&file, file.dynamic_symbols(), most);
        }
        Some(Self {
            symbols: SymbolTable::new(symbols),
            complete,
            segments: Segments::of(&file),
            build_id: found,
        })
    }
}

/// The symbols of a file that name code, up to so many bytes of names.
fn candidates<'data, S: ObjectSymbol<'data>>(
    file: &impl Object<'data>,
    symbols: impl Iterator<Item = S>,
    most: usize,
) -> Vec<Candidate<'data>> {
    let sections = file.sections().map(|section| match section.flags() {
        SectionFlags::Elf { sh_flags, .. } => sh_flags.contains(elf::SHF_EXECINSTR),
        _ => false,
    });
    // Section 0 is the null section, which `sections` leaves out.
    let executable: Vec<bool> = std::iter::once(false).chain(sections).collect();
    symbols
        .filter(|symbol| {
            let section = symbol.section_index().map_or(0, |index| index.0);
            executable.get(section) == Some(&true)
        })
        .filter_map(|symbol| candidate(&symbol))
        .scan(most, |room, candidate| {
            *room = room.checked_sub(candidate.name.len())?;
            Some(candidate)
        })
        .collect()
}

/// `None` if the symbol does not name code.
fn candidate<'data>(symbol: &impl ObjectSymbol<'data>) -> Option<Candidate<'data>> {
    let SymbolFlags::Elf { st_info, st_other } = symbol.flags() else {
        return None;
    };
    let kind = st_info.st_type();
    let name = symbol.name_bytes().ok().filter(|name| !name.is_empty())?;
    if ![elf::STT_FUNC, elf::STT_GNU_IFUNC, elf::STT_NOTYPE].contains(&kind) {
        return None;
    }
    // Of labels perf takes those that assembler programmers let others see.
    let hidden = [elf::STV_HIDDEN, elf::STV_INTERNAL].contains(&st_other.visibility());
    if kind == elf::STT_NOTYPE && hidden {
        return None;
    }
    Some(Candidate {
        start: symbol.address(),
        size: symbol.size(),
        rank: Rank {
            no_size: symbol.size() == 0,
            weak: symbol.is_weak(),
            local: symbol.is_local(),
            underscores: name.iter().take_while(|&&byte| byte == b'_').count(),
        },
        name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_very_program_has_symbols() {
        let own = std::env::current_exe().unwrap();
        let image = Image::read(&own, None).unwrap();
        assert!(image.complete);
        assert_eq!(image.segments.address(0x40), Some(0x40));
        assert_eq!(image.segments.address(u64::MAX), None);
        let other: BuildId = "00ff".parse().unwrap();
        assert!(Image::read(&own, Some(other)).is_none());
        assert!(Image::read(Path::new("/dev/null"), None).is_none());
    }
}
