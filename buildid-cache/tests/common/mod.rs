//! What the tests share: ELF files made byte by byte.

use std::path::PathBuf;

use tempfile::TempDir;

/// Link-time address and file offset of the code segment's content.
pub(crate) const CODE: (u64, u64) = (0x40_1000, 0x400);
/// Link-time address and file offset of the data segment's content.
pub(crate) const DATA: (u64, u64) = (0x60_3000, 0x500);
/// File offset of the SDT notes.
pub(crate) const NOTES: u64 = 0x600;
/// Address of section `.stapsdt.base`.
pub(crate) const BASE: u64 = 0x40_1080;
/// Bytes of either segment in the file; in memory, the data segment is twice as long.
pub(crate) const SEGMENT: u64 = 0x100;

/// `e_machine` of x86-64, i386, arm, aarch64, s390x.
pub(crate) const X86_64: u16 = 62;
pub(crate) const I386: u16 = 3;
pub(crate) const ARM: u16 = 40;
pub(crate) const AARCH64: u16 = 183;
pub(crate) const S390X: u16 = 22;

/// One note of the file to be made.
#[derive(Clone, Debug)]
pub(crate) struct NoteSpec {
    pub(crate) owner: &'static str,
    pub(crate) kind: u32,
    pub(crate) description: Vec<u8>,
}

/// A small ELF file with a code and a data segment, a build-id and SDT notes.
#[derive(Clone, Debug)]
pub(crate) struct ElfSpec {
    pub(crate) class64: bool,
    pub(crate) big_endian: bool,
    pub(crate) machine: u16,
    /// `e_type`: 1 relocatable, 2 executable, 3 shared.
    pub(crate) kind: u16,
    pub(crate) build_id: Option<Vec<u8>>,
    pub(crate) notes: Vec<NoteSpec>,
    /// Whether the code has no content, as in a separate debug file.
    pub(crate) debug_file: bool,
    pub(crate) code: Vec<u8>,
    pub(crate) code_flags: u32,
    pub(crate) data_flags: u32,
}

impl ElfSpec {
    /// An executable without notes, its code all `nop`s of x86.
    pub(crate) fn new(class64: bool, big_endian: bool, machine: u16) -> Self {
        Self {
            class64,
            big_endian,
            machine,
            kind: 2,
            build_id: Some((1..=20).collect()),
            notes: Vec::new(),
            debug_file: false,
            code: vec![0x90; SEGMENT as usize],
            code_flags: 5,
            data_flags: 6,
        }
    }

    pub(crate) fn x86_64() -> Self {
        Self::new(true, false, X86_64)
    }

    /// Adds an SDT note.
    pub(crate) fn probe(mut self, provider: &str, name: &str, words: [u64; 3], args: &str) -> Self {
        let mut description = Vec::new();
        for word in words {
            self.word(&mut description, word);
        }
        for text in [provider, name, args] {
            description.extend_from_slice(text.as_bytes());
            description.push(0);
        }
        self.notes.push(NoteSpec {
            owner: "stapsdt",
            kind: 3,
            description,
        });
        self
    }

    fn number(&self, out: &mut Vec<u8>, value: u64, bytes: usize) {
        if self.big_endian {
            out.extend_from_slice(&value.to_be_bytes()[8 - bytes..]);
        } else {
            out.extend_from_slice(&value.to_le_bytes()[..bytes]);
        }
    }

    fn word(&self, out: &mut Vec<u8>, value: u64) {
        self.number(out, value, if self.class64 { 8 } else { 4 });
    }

    fn note(&self, out: &mut Vec<u8>, note: &NoteSpec) {
        self.number(out, note.owner.len() as u64 + 1, 4);
        self.number(out, note.description.len() as u64, 4);
        self.number(out, note.kind.into(), 4);
        for bytes in [note.owner.as_bytes().to_vec(), note.description.clone()] {
            out.extend_from_slice(&bytes);
            if bytes == note.owner.as_bytes() {
                out.push(0);
            }
            out.resize(out.len().next_multiple_of(4), 0);
        }
    }

    fn probe_notes(&self) -> Vec<u8> {
        let mut notes = Vec::new();
        for note in &self.notes {
            self.note(&mut notes, note);
        }
        notes
    }

    /// Size of the SDT notes, bytes.
    pub(crate) fn notes_len(&self) -> u64 {
        self.probe_notes().len() as u64
    }

    /// The file's bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut id_notes = Vec::new();
        if let Some(build_id) = &self.build_id {
            let description = build_id.clone();
            let note = NoteSpec {
                owner: "GNU",
                kind: 3,
                description,
            };
            self.note(&mut id_notes, &note);
        }
        let probe_notes = self.probe_notes();
        let names =
            b"\0.note.gnu.build-id\0.text\0.stapsdt.base\0.probes\0.note.stapsdt\0.shstrtab\0";
        let name_at = |name: &str| {
            let name = format!("{name}\0");
            let found = names
                .windows(name.len())
                .position(|window| window == name.as_bytes());
            found.expect("a name of the table") as u64
        };
        let id_at = 0x200;
        let notes_at = NOTES;
        let names_at = (notes_at + probe_notes.len() as u64).next_multiple_of(8);
        let sections_at = (names_at + names.len() as u64).next_multiple_of(8);
        let code_type = if self.debug_file { 8 } else { 1 };
        // name, type, flags, address, offset, size, alignment
        let sections: [(&str, u64, u64, u64, u64, u64, u64); 6] = [
            (
                ".note.gnu.build-id",
                7,
                2,
                0x40_0200,
                id_at,
                id_notes.len() as u64,
                4,
            ),
            (".text", code_type, 6, CODE.0, CODE.1, SEGMENT, 16),
            (".stapsdt.base", code_type, 2, BASE, CODE.1 + 0x80, 1, 1),
            (".probes", code_type, 3, DATA.0, DATA.1, SEGMENT, 2),
            (
                ".note.stapsdt",
                7,
                0,
                0,
                notes_at,
                probe_notes.len() as u64,
                4,
            ),
            (".shstrtab", 3, 0, 0, names_at, names.len() as u64, 1),
        ];
        let mut out = self.header(sections_at, sections.len() as u64 + 1);
        self.segments(&mut out);
        let mut put = |at: u64, bytes: &[u8]| {
            out.resize(out.len().max(at as usize + bytes.len()), 0);
            out[at as usize..][..bytes.len()].copy_from_slice(bytes);
        };
        put(id_at, &id_notes);
        if !self.debug_file {
            put(CODE.1, &self.code);
            put(DATA.1, &[0; SEGMENT as usize]);
        }
        put(notes_at, &probe_notes);
        put(names_at, names);
        out.resize(sections_at as usize, 0);
        let header_len = if self.class64 { 64 } else { 40 };
        out.resize(out.len() + header_len, 0);
        for (name, kind, flags, address, offset, size, align) in sections {
            self.number(&mut out, name_at(name), 4);
            self.number(&mut out, kind, 4);
            for value in [flags, address, offset, size] {
                self.word(&mut out, value);
            }
            self.number(&mut out, 0, 8);
            self.word(&mut out, align);
            self.word(&mut out, 0);
        }
        out
    }

    fn header(&self, sections_at: u64, sections: u64) -> Vec<u8> {
        let class = if self.class64 { 2 } else { 1 };
        let order = if self.big_endian { 2 } else { 1 };
        let mut out = vec![
            0x7f, b'E', b'L', b'F', class, order, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        let (header, program, section) = if self.class64 {
            (64, 56, 64)
        } else {
            (52, 32, 40)
        };
        self.number(&mut out, self.kind.into(), 2);
        self.number(&mut out, self.machine.into(), 2);
        self.number(&mut out, 1, 4);
        self.word(&mut out, CODE.0);
        self.word(&mut out, header);
        self.word(&mut out, sections_at);
        self.number(&mut out, 0, 4);
        for value in [header, program, 2, section, sections, sections - 1] {
            self.number(&mut out, value, 2);
        }
        out
    }

    fn segments(&self, out: &mut Vec<u8>) {
        let file_size = if self.debug_file { 0 } else { SEGMENT };
        for ((address, offset), flags, memory) in [
            (CODE, self.code_flags, SEGMENT),
            (DATA, self.data_flags, 2 * SEGMENT),
        ] {
            self.number(out, 1, 4);
            if self.class64 {
                self.number(out, flags.into(), 4);
            }
            for value in [offset, address, address, file_size, memory] {
                self.word(out, value);
            }
            if !self.class64 {
                self.number(out, flags.into(), 4);
            }
            self.word(out, 0x1000);
        }
    }
}

/// A directory for files, removed at the end.
pub(crate) struct Files {
    dir: TempDir,
}

impl Files {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("usdtrec-test-").tempdir();
        Self {
            dir: dir.expect("a temporary directory"),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).expect("a file");
        path
    }
}
