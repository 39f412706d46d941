//! Lists the probes of an ELF file: name, address and operands of each site.
//!
//! `cargo run -p usdtrec-format --example list_probes -- FILE`

use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

use object::{File, Object, ObjectSection};
use usdtrec_format::escape::escape;
use usdtrec_format::{Arch, NoteLayout, notes, parse_operands};

/// Offset of `e_machine` in the ELF header, bytes.
const MACHINE: std::ops::Range<usize> = 18..20;

/// Writes one line per site, and one per operand after it.
pub(crate) fn run(path: &Path, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let bytes = std::fs::read(path)?;
    let file = File::parse(&*bytes)?;
    let layout = NoteLayout {
        class64: file.is_64(),
        big_endian: !file.is_little_endian(),
    };
    let machine = <[u8; 2]>::try_from(bytes.get(MACHINE).ok_or("no ELF header")?)?;
    let machine = if layout.big_endian {
        u16::from_be_bytes(machine)
    } else {
        u16::from_le_bytes(machine)
    };
    let arch = Arch::from_elf(machine, layout.class64, layout.big_endian);
    let section = file.section_by_name(".note.stapsdt");
    let section = section.ok_or("the file has no section .note.stapsdt")?;
    for note in notes(section.data()?, layout) {
        let note = note?;
        // A program can put anything into its names.
        let (provider, name) = (escape(&note.provider), escape(&note.name));
        writeln!(out, "{provider}:{name} at {:#x}", note.pc)?;
        for (index, operand) in parse_operands(&note.args, arch).iter().enumerate() {
            let meaning = arch.map(|arch| operand.explain(arch)).unwrap_or_default();
            writeln!(out, "  arg{}: {}", index + 1, escape(&meaning))?;
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os()
        .nth(1)
        .ok_or("usage: list_probes FILE")?;
    run(Path::new(&path), &mut io::stdout().lock())
}
