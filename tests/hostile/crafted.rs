//! A program whose sections are replaced by ones that were made to do harm, and a trace with stacks in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::elf::CompressionType;
use object::read::elf::{ElfFile64, FileHeader as _};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, elf};
use tempfile::{NamedTempFile, TempDir};
use usdtrec_format::perf::{Attr, Mmap, SampleType, put_callchain};
use usdtrec_format::trace::{Compression, TraceWriter};

use crate::fuzz::records;

/// `outer`, into which `inner` is inlined, and a section that Fedora's programs have.
const SOURCE: &str = r#"
static volatile int sum;
static inline __attribute__((always_inline)) void inner(int number) {
  __asm__ volatile(".fill 64, 1, 0x90");
  sum += number;
}
__attribute__((noinline)) void outer(int number) { inner(number); sum++; }
int main(void) { outer(3); return 0; }
__asm__(".section .gnu_debugdata,\"\",@progbits\n.byte 0\n.text");
"#;

/// Address at which the sound program is mapped besides, minus that at which it is linked.
const SOUND: u64 = 0x1000_0000;
/// Address at which programs are linked.
const LINKED: u64 = 0x40_0000;
/// Addresses of `outer` that are in stacks.
pub const PLACES: u64 = 32;

/// A program, as bytes.
#[derive(Clone)]
pub struct Program {
    pub bytes: Vec<u8>,
    /// An address within `inner`, where it is inlined.
    pub inside: u64,
}

/// How a section's content is stored.
#[derive(Clone, Copy)]
pub enum Stored {
    Plain,
    /// With a compression header of this type that claims so many bytes.
    Compressed(CompressionType, u64),
}

impl Program {
    /// Compiles it.
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (source, program) = (directory.path().join("c.c"), directory.path().join("c"));
        fs::write(&source, SOURCE).unwrap();
        let mut compiler = Command::new("gcc");
        compiler.args(["-O2", "-g", "-no-pie", "-fno-pie", "-o"]);
        let compiled = compiler.arg(&program).arg(&source).status().unwrap();
        assert!(compiled.success());
        let bytes = fs::read(&program).unwrap();
        let file: ElfFile64<'_> = ElfFile64::parse(&*bytes).unwrap();
        let outer = file.symbol_by_name("outer").unwrap().address();
        let inside = outer + 8;
        Self { bytes, inside }
    }

    /// Offset of the header of a section.
    fn header(&self, section: &str) -> usize {
        let file: ElfFile64<'_> = ElfFile64::parse(&*self.bytes).unwrap();
        let (table, endian) = (file.elf_section_table(), file.endian());
        let found = table.section_by_name(endian, section.as_bytes());
        let (index, _) = found.unwrap_or_else(|| panic!("{section}"));
        let size = size_of::<elf::SectionHeader64<object::Endianness>>();
        file.elf_header().e_shoff(endian) as usize + index.0 * size
    }

    /// Changes a word of the header of a section.
    fn set(&mut self, section: &str, field: usize, value: u64) {
        let at = self.header(section) + field;
        self.bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    /// With another content of a section.
    pub fn with(mut self, section: &str, content: &[u8], stored: Stored) -> Self {
        let at = self.bytes.len().next_multiple_of(16);
        self.bytes.resize(at, 0);
        if let Stored::Compressed(kind, claimed) = stored {
            self.set(section, 8, elf::SHF_COMPRESSED.0);
            self.bytes.extend(u64::from(kind.0).to_le_bytes());
            self.bytes.extend(claimed.to_le_bytes());
            self.bytes.extend(1_u64.to_le_bytes());
        }
        self.bytes.extend(content);
        let size = self.bytes.len() - at;
        self.set(section, 24, at as u64);
        self.set(section, 32, size as u64);
        self
    }

    /// With a section in the place of another one, which has no meaning.
    pub fn named(mut self, other: &str, section: &str, content: &[u8]) -> Self {
        let file: ElfFile64<'_> = ElfFile64::parse(&*self.bytes).unwrap();
        let names = file.section_by_name(".shstrtab").unwrap();
        let mut names = names.data().unwrap().to_vec();
        let name = names.len() as u32;
        names.extend(section.as_bytes());
        names.push(0);
        let at = self.header(other);
        self.bytes[at..at + 4].copy_from_slice(&name.to_le_bytes());
        self = self.with(".shstrtab", &names, Stored::Plain);
        self.with(section, content, Stored::Plain)
    }

    /// With a section that is said to be this long.
    pub fn claiming(mut self, section: &str, size: u64) -> Self {
        self.set(section, 32, size);
        self
    }
}

/// A trace with stacks in a crafted program, and in a sound one.
pub struct Crafted {
    pub directory: TempDir,
    pub trace: NamedTempFile,
}

impl Crafted {
    pub fn new(sound: &Program, crafted: &Program) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let save = |name: &str, program: &Program| {
            let path = directory.path().join(name);
            fs::write(&path, &program.bytes).unwrap();
            path
        };
        let paths = [save("crafted", crafted), save("sound", sound)];
        let trace = trace(&paths, sound.inside);
        Self { directory, trace }
    }

    /// A path in its directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

fn trace([crafted, sound]: &[PathBuf; 2], inside: u64) -> NamedTempFile {
    let mut info = records::info();
    let attr = &mut info.events[0].attr;
    attr.sample_type = attr.sample_type | SampleType::CALLCHAIN;
    let id_type = attr.id_type();
    // The unwind tables are read for an event with copies of stacks.
    let copied = SampleType::CALLCHAIN | SampleType::REGS_USER | SampleType::STACK_USER;
    let attr = &mut info.events[1].attr;
    attr.sample_type = attr.sample_type | copied;
    attr.flags |= Attr::EXCLUDE_CALLCHAIN_USER;
    attr.sample_regs_user = 0xff_01ff;
    let mut out = Vec::new();
    for (path, start) in [(crafted, LINKED), (sound, LINKED + SOUND)] {
        put_mapping(path, start, id_type, &mut out);
    }
    for number in 0..PLACES {
        for bias in [0, SOUND] {
            put_chain(inside + number + bias, 10 + number, &mut out);
            put_copy(inside + number + bias, 10 + number, &mut out);
        }
    }
    let file = NamedTempFile::new().unwrap();
    let written = TraceWriter::create(file.reopen().unwrap(), &info, Compression::Zstd(1));
    let mut writer = written.unwrap();
    writer.push(&out);
    writer.finish(&[]).unwrap();
    file
}

fn put_mapping(path: &Path, start: u64, id_type: SampleType, out: &mut Vec<u8>) {
    let map = Mmap {
        start,
        len: 0x10_0000,
        ..records::mapping(path.as_os_str().as_encoded_bytes())
    };
    map.encode(id_type, out);
}

fn put_sample(id: u64, address: u64, time: u64, parts: &[u8], out: &mut Vec<u8>) {
    let size = 48 + parts.len() as u64;
    for word in [9 | size << 48, id, address, 7 | 7 << 32, time, 0] {
        out.extend(word.to_le_bytes());
    }
    out.extend(parts);
}

fn put_chain(address: u64, time: u64, out: &mut Vec<u8>) {
    let mut chain = Vec::new();
    put_callchain(&[address, address + 1], None, &mut chain);
    put_sample(1, address, time, &chain, out);
}

/// No chain, registers, and a stack of return addresses.
fn put_copy(address: u64, time: u64, out: &mut Vec<u8>) {
    const STACK: u64 = 0x7fff_0000;
    let mut registers = [STACK; 17];
    registers[8] = address;
    let words = [0, 2].into_iter().chain(registers).chain([64]);
    let words = words.chain([address; 8]).chain([64]);
    let parts: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    put_sample(2, address, time, &parts, out);
}
