//! SDT notes: the records of an ELF file's `.note.stapsdt` section, or of another section or segment of notes.
//!
//! One note, every word in the file's byte order (`sys/sdt.h` version 3):
//!
//! ```text
//! 0   u32  namesz   8
//! 4   u32  descsz   length of three words and three strings, without padding
//! 8   u32  type     3
//! 12       owner    "stapsdt\0"
//! 20       words    pc, base, semaphore: 8 bytes each (ELF class 64) or 4
//!          strings  provider, name, arguments: each ends in NUL
//! ```
//!
//! Owner and descriptor are each padded to 4 bytes. The section is not loaded (no `SHF_ALLOC`), so
//! its addresses are link-time addresses, without relocations applied.

/// How to read the words of a note section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoteLayout {
    /// Whether addresses are 8 bytes (ELF class 64) or 4.
    pub class64: bool,
    /// Whether words are big-endian.
    pub big_endian: bool,
}

/// An SDT note (owner `stapsdt`, type 3), as stored in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Provider, as written. Bytes that are not UTF-8 become U+FFFD.
    pub provider: String,
    /// Probe name, as written (`gc__start`, `mixed_name-here`).
    pub name: String,
    /// Address of the nop, as linked (before the prelink adjustment).
    pub pc: u64,
    /// Link-time address of `.stapsdt.base`; 0 if unknown.
    pub base: u64,
    /// Link-time address of the semaphore; 0 if there is none.
    pub semaphore: u64,
    /// Argument string (`-4@%ebx 8@%rbp`).
    pub args: String,
}

/// Error of reading a note, or of finding the next note of a section.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("SDT note at offset {offset:#x} of the section: expected {expected}, found {found}")]
pub struct NoteError {
    /// Offset of the note in the section.
    pub offset: usize,
    /// What was expected.
    pub expected: &'static str,
    /// What is.
    pub found: String,
}

/// Size of a note's header (namesz, descsz, type), bytes.
const HEADER: usize = 12;
/// Alignment of owner and descriptor, bytes.
const ALIGN: usize = 4;
/// The owner of SDT notes.
const OWNER: &[u8] = b"stapsdt\0";
/// The type of SDT notes. Other owners use the same number (`NT_GNU_BUILD_ID`).
const TYPE: u32 = 3;

/// Decodes the SDT notes of a section of notes. Notes of other owners or types are skipped. A
/// note that cannot be read is an `Err` and does not affect other notes, unless the next note cannot be
/// found; then that `Err` is the last item.
///
/// ```
/// use usdtrec_format::{NoteLayout, notes};
///
/// let section = b"\x08\0\0\0\x1b\0\0\0\x03\0\0\0stapsdt\0\
///     \x10\x11\0\0\x24\x20\0\0\x30\x40\0\0app\0hit\04@%eax\0";
/// let layout = NoteLayout { class64: false, big_endian: false };
/// let note = notes(section, layout).next().unwrap()?;
/// assert_eq!((note.provider.as_str(), note.name.as_str()), ("app", "hit"));
/// assert_eq!((note.pc, note.args.as_str()), (0x1110, "4@%eax"));
/// # Ok::<(), usdtrec_format::NoteError>(())
/// ```
pub fn notes(section: &[u8], layout: NoteLayout) -> impl Iterator<Item = Result<Note, NoteError>> {
    Notes {
        section,
        offset: 0,
        layout,
    }
}

/// Iterator over the notes of a section.
struct Notes<'a> {
    section: &'a [u8],
    offset: usize,
    layout: NoteLayout,
}

/// A note of any owner, with its descriptor not decoded.
struct RawNote<'a> {
    owner: &'a [u8],
    kind: u32,
    descriptor: &'a [u8],
}

impl Iterator for Notes<'_> {
    type Item = Result<Note, NoteError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let offset = self.offset;
            match self.next_raw()? {
                Ok(raw) if raw.owner == OWNER && raw.kind == TYPE => {
                    return Some(decode(raw.descriptor, offset, self.layout));
                }
                Ok(_) => {}
                Err(error) => {
                    self.offset = self.section.len();
                    return Some(Err(error));
                }
            }
        }
    }
}

impl<'a> Notes<'a> {
    /// The next note of any owner; `None` at the end of the section or in its zero padding.
    fn next_raw(&mut self) -> Option<Result<RawNote<'a>, NoteError>> {
        let offset = self.offset;
        let rest = self.section.get(offset..)?;
        if rest.len() < HEADER && rest.iter().all(|byte| *byte == 0) {
            return None;
        }
        let fail = |expected, found| {
            Some(Err(NoteError {
                offset,
                expected,
                found,
            }))
        };
        let Some((header, body)) = rest.split_at_checked(HEADER) else {
            return fail("a 12-byte note header", format!("{} bytes", rest.len()));
        };
        let word = |at: usize| word32(&header[at..], self.layout.big_endian);
        let (Ok(owner_len), Ok(len)) = (usize::try_from(word(0)), usize::try_from(word(4))) else {
            return fail(
                "sizes of this machine",
                format!("{} and {}", word(0), word(4)),
            );
        };
        let descriptor_at = padded(owner_len);
        let Some(owner) = body.get(..owner_len) else {
            let found = format!("{} bytes before the section's end", body.len());
            return fail("an owner of the size its header says", found);
        };
        let Some(descriptor) = body.get(descriptor_at..).and_then(|from| from.get(..len)) else {
            let left = body.len().saturating_sub(descriptor_at);
            let found = format!("a length of {len} bytes, with {left} left in the section");
            return fail("a descriptor inside the section", found);
        };
        self.offset = offset + HEADER + descriptor_at.saturating_add(padded(len));
        Some(Ok(RawNote {
            owner,
            kind: word(8),
            descriptor,
        }))
    }
}

/// `len` rounded up to [`ALIGN`].
const fn padded(len: usize) -> usize {
    len.saturating_add(ALIGN - 1) & !(ALIGN - 1)
}

/// The first 4 bytes as a word; missing ones are 0.
fn word32(bytes: &[u8], big_endian: bool) -> u32 {
    let word = bytes.first_chunk().copied().unwrap_or_default();
    if big_endian {
        u32::from_be_bytes(word)
    } else {
        u32::from_le_bytes(word)
    }
}

/// The first 8 bytes as a word; missing ones are 0.
fn word64(bytes: &[u8], big_endian: bool) -> u64 {
    let word = bytes.first_chunk().copied().unwrap_or_default();
    if big_endian {
        u64::from_be_bytes(word)
    } else {
        u64::from_le_bytes(word)
    }
}

/// Decodes the descriptor of the SDT note at `offset`.
fn decode(descriptor: &[u8], offset: usize, layout: NoteLayout) -> Result<Note, NoteError> {
    let fail = |expected, found| NoteError {
        offset,
        expected,
        found,
    };
    let size = if layout.class64 { 8 } else { 4 };
    let (words, strings) = descriptor.split_at_checked(3 * size).ok_or_else(|| {
        let found = format!("a descriptor of {} bytes", descriptor.len());
        fail("three addresses and three strings", found)
    })?;
    let address = |at: usize| {
        let bytes = &words[at * size..];
        if layout.class64 {
            word64(bytes, layout.big_endian)
        } else {
            u64::from(word32(bytes, layout.big_endian))
        }
    };
    let mut strings = strings.split_inclusive(|byte| *byte == 0);
    let mut string = |expected| match strings.next() {
        Some([text @ .., 0]) => Ok(String::from_utf8_lossy(text).into_owned()),
        Some(_) => Err(fail(expected, "a string without its NUL".to_owned())),
        None => Err(fail(expected, "the descriptor's end".to_owned())),
    };
    let note = Note {
        provider: string("a provider ended by NUL")?,
        name: string("a probe name ended by NUL")?,
        args: string("an argument string ended by NUL")?,
        pc: address(0),
        base: address(1),
        semaphore: address(2),
    };
    if note.provider.is_empty() || note.name.is_empty() {
        return Err(fail("a provider and a name", "an empty one".to_owned()));
    }
    Ok(note)
}
