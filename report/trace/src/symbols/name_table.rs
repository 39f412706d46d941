//! The names of a file's symbols.
//!
//! A table of more than 4 MiB stays in its file: a name is read when it is requested. An entry of the symbol table
//! takes 24 bytes of memory.

use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// String tables up to this length are read once and kept, bytes; of longer ones, each name is read when it is requested.
const KEPT: u64 = 4 << 20;
/// Maximum length of a table that is joined with another one, bytes.
const JOINED: u64 = 64 << 20;
/// Longer names are not read, bytes.
const MAX_NAME_BYTES: usize = 64 << 10;
/// Number of bytes that are read first of a name that is not kept.
const FIRST: usize = 256;

/// A string table (ELF gABI, "String Table").
#[derive(Debug, Default)]
pub(crate) struct NameTable(Strings);

#[derive(Debug)]
enum Strings {
    Kept(Vec<u8>),
    InFile(InFile),
}

/// A string table that stays in its file. The file stays open, because another one can be at its path later.
#[derive(Debug)]
struct InFile {
    file: File,
    /// File offset.
    at: u64,
    /// Bytes.
    len: u64,
}

impl Default for Strings {
    fn default() -> Self {
        Self::Kept(Vec::new())
    }
}

impl NameTable {
    /// The table of `len` bytes at an offset of a file; `None` if it is not within the file, or cannot be read.
    pub(crate) fn read(file: &File, at: u64, len: u64) -> Option<Self> {
        let end = at.checked_add(len)?;
        if end > file.metadata().ok()?.len() {
            return None;
        }
        if len > KEPT {
            let file = file.try_clone().ok()?;
            return Some(Self(Strings::InFile(InFile { file, at, len })));
        }
        let mut kept = vec![0; usize::try_from(len).ok()?];
        file.read_exact_at(&mut kept, at).ok()?;
        Some(Self(Strings::Kept(kept)))
    }

    /// A table that is in memory.
    pub(crate) const fn from_bytes(names: Vec<u8>) -> Self {
        Self(Strings::Kept(names))
    }

    /// Both tables in memory, and the offset at which the other one begins; `None` if they are too long.
    pub(crate) fn joined(&self, other: &Self) -> Option<(Self, u32)> {
        let mut names = self.all()?.into_owned();
        // A name that does not end in its table is not continued in the other.
        names.push(0);
        let from = u32::try_from(names.len()).ok()?;
        names.extend_from_slice(&other.all()?);
        Some((Self::from_bytes(names), from))
    }

    fn all(&self) -> Option<Cow<'_, [u8]>> {
        match &self.0 {
            Strings::Kept(all) => Some(Cow::Borrowed(all)),
            Strings::InFile(InFile { file, at, len }) if *len <= JOINED => {
                let mut all = vec![0; usize::try_from(*len).ok()?];
                file.read_exact_at(&mut all, *at).ok()?;
                Some(Cow::Owned(all))
            }
            Strings::InFile(_) => None,
        }
    }

    /// The name at an offset of the table; `None` if it is empty, too long, or does not end in the table.
    pub(crate) fn get(&self, at: u32) -> Option<Cow<'_, [u8]>> {
        let name = match &self.0 {
            Strings::Kept(all) => {
                // All symbols of a hostile file may have one name, whose end is far away.
                let rest = all.get(at as usize..)?;
                first_string(&rest[..rest.len().min(MAX_NAME_BYTES + 1)]).map(Cow::Borrowed)
            }
            Strings::InFile(table) => table.get(at.into()).map(Cow::Owned),
        };
        name.filter(|name| !name.is_empty() && name.len() <= MAX_NAME_BYTES)
    }
}

impl InFile {
    fn get(&self, at: u64) -> Option<Vec<u8>> {
        let room = usize::try_from(self.len.checked_sub(at)?).ok()?;
        let mut len = FIRST.min(room);
        loop {
            let mut bytes = vec![0; len];
            self.file.read_exact_at(&mut bytes, self.at + at).ok()?;
            if let Some(name) = first_string(&bytes) {
                let end = name.len();
                bytes.truncate(end);
                return Some(bytes);
            }
            if len > MAX_NAME_BYTES || len == room {
                return None;
            }
            len = (len * 4).min(room);
        }
    }
}

/// The bytes before the first zero.
fn first_string(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    bytes.get(..end)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A file with some bytes, and a table of two names, one of them long, in a table of at least `len` bytes.
    fn table(long: usize, len: usize) -> (File, u64) {
        let mut file = tempfile::tempfile().unwrap();
        let mut names = b"before\0first\0".to_vec();
        names.extend(vec![b'n'; long]);
        names.push(0);
        names.resize(names.len().max(len), b'e');
        file.write_all(&names).unwrap();
        (file, names.len() as u64 - 6)
    }

    #[test]
    fn a_table_in_the_file_has_the_names_of_a_kept_one() {
        for len in [0, KEPT as usize + 7] {
            for long in [FIRST - 1, FIRST, 5000, MAX_NAME_BYTES] {
                let (file, table_len) = table(long, len);
                let table = NameTable::read(&file, 6, table_len).unwrap();
                assert_eq!(matches!(&table.0, Strings::InFile(_)), len != 0);
                assert_eq!(table.get(1).as_deref(), Some(b"first".as_slice()));
                assert_eq!(table.get(3).as_deref(), Some(b"rst".as_slice()));
                assert_eq!(table.get(7).map(|name| name.len()), Some(long));
                assert_eq!(table.get(0), None, "empty");
            }
        }
    }

    #[test]
    fn names_that_do_not_end_and_tables_beyond_the_file_are_not_read() {
        for len in [0, KEPT as usize + 7] {
            let (file, table_len) = table(MAX_NAME_BYTES + 1, len);
            let names = NameTable::read(&file, 6, table_len).unwrap();
            assert_eq!(names.get(7), None, "too long");
            assert_eq!(names.get(table_len as u32 - 1), None);
            assert_eq!(names.get(u32::MAX), None);
            assert!(NameTable::read(&file, 7, table_len).is_none());
            assert!(NameTable::read(&file, u64::MAX, 8).is_none());
        }
    }
}
