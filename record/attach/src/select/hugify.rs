//! Programs that copy their code to huge pages when they start, with the breakpoints in it, and execute these: BOLT's `hugify`
//! (`bolt/runtime/hugify.cpp`).
//!
//! The first runtime has the symbol `__bolt_hugify_init_ptr` and copies on every kernel that Linux has released. The later one, with
//! `__bolt_hugify_start_program`, only advises the kernel (madvise(2)) on Linux 5.10 and later with transparent huge pages; else it copies.

use std::fs;

use object::elf::FileHeader64;
use object::read::elf::ElfFile;
use object::{Endianness, Object, ObjectSymbol};
use usdtrec_buildid_cache::elf::{Excerpt, ObjectFile};

/// Beginning of the names of the runtime's symbols.
const BEGINNING: &str = "__bolt_hugify_";

/// The symbol by which a program is known to copy its code on this host; `None` if nothing says that it does.
pub(super) fn copying_symbol(file: &ObjectFile) -> Option<String> {
    let tables = file.symbol_tables().ok()?;
    let parsed = ElfFile::<FileHeader64<Endianness>, &Excerpt>::parse(&tables).ok()?;
    let names = parsed.symbols().chain(parsed.dynamic_symbols());
    let names = names.filter_map(|symbol| symbol.name().ok());
    let names: Vec<&str> = names.filter(|name| name.starts_with(BEGINNING)).collect();
    let has = |name: &str| names.contains(&name);
    let only_advises = has("__bolt_hugify_start_program") && has_huge_pages_of_files();
    if only_advises && !has("__bolt_hugify_init_ptr") {
        return None;
    }
    let first = names.iter().find(|name| **name == "__bolt_hugify_self");
    first.or(names.first()).map(|name| (*name).to_owned())
}

/// Whether the runtime finds that it need not copy.
fn has_huge_pages_of_files() -> bool {
    let enabled = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let is_enabled =
        enabled.is_ok_and(|text| text.contains("[always]") || text.contains("[madvise]"));
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    let mut number = || numbers.next()?.parse::<u32>().ok();
    is_enabled && (number(), number()) >= (Some(5), Some(10))
}
