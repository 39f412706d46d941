//! Names in string tables, without the memory for the tables.

use std::collections::BTreeSet;
use std::io;

use object::elf::SHT_STRTAB;

use super::object_file::ObjectFile;

/// Maximum total size of the string tables that are searched in one file, bytes.
const SEARCHED_BYTES: u64 = 256 << 20;
/// Number of bytes that are read at once.
const CHUNK: usize = 256 << 10;
/// Maximum length of a name that is found, bytes.
const MAX_NAME: usize = 256;

impl ObjectFile {
    /// The names in the string tables of the file that begin with `prefix` and are shorter than 256 bytes. A name that is the end of a longer one is
    /// not found, nor are names beyond the first 256 MiB, or beyond the end of a file that was cut.
    ///
    /// # Errors
    /// The error of `pread(2)`.
    pub fn names_with_prefix(&self, prefix: &str) -> io::Result<BTreeSet<String>> {
        let mut found = BTreeSet::new();
        let mut room = SEARCHED_BYTES;
        let tables = self.headers().sections.iter();
        for table in tables.filter(|table| table.kind == SHT_STRTAB.0 && self.has(table)) {
            let end = table.offset + table.size.min(room);
            room -= end - table.offset;
            let mut at = table.offset;
            while at < end {
                let len = usize::try_from(end - at).unwrap_or(CHUNK).min(CHUNK);
                let chunk = self.bytes_at(at, len)?;
                if chunk.is_empty() {
                    // The file was cut after it was opened.
                    break;
                }
                find_in(&chunk, at == table.offset, prefix, &mut found);
                // The next chunk has the end of this one again, where a name may be cut.
                let again = if chunk.len() == CHUNK { MAX_NAME } else { 0 };
                at += (chunk.len() - again) as u64;
            }
        }
        Ok(found)
    }
}

/// Finds whole names. `is_first`: a name begins with the chunk.
fn find_in(chunk: &[u8], is_first: bool, prefix: &str, found: &mut BTreeSet<String>) {
    for at in memchr::memmem::find_iter(chunk, prefix.as_bytes()) {
        let starts = match at.checked_sub(1) {
            Some(before) => chunk.get(before) == Some(&0),
            None => is_first,
        };
        let rest = chunk.get(at..).unwrap_or_default();
        let rest = rest.get(..MAX_NAME).unwrap_or(rest);
        let name = memchr::memchr(0, rest).and_then(|end| rest.get(..end));
        if let Some(name) = name.filter(|_| starts) {
            found.extend(str::from_utf8(name).map(str::to_owned));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::Path;
    use std::time::{Duration, Instant};

    use super::*;

    /// Each read beyond the end of the file would be of no byte.
    #[test]
    fn a_file_that_was_cut_has_no_further_names() {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/debug/bare-aarch64");
        let mut bytes = fs::read(program).unwrap();
        let sections = u64::from_le_bytes(*bytes[40..].first_chunk().unwrap()) as usize;
        let mut headers = (sections..bytes.len()).step_by(64);
        let strings = headers
            .find(|at| bytes[at + 4] == SHT_STRTAB.0 as u8)
            .unwrap();
        bytes[strings + 32..][..8].copy_from_slice(&(1_u64 << 30).to_le_bytes());
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), &bytes).unwrap();
        let content = File::options().write(true).open(file.path()).unwrap();
        content.set_len(1 << 31).unwrap();
        let object = ObjectFile::open(file.path()).unwrap();
        content.set_len(bytes.len() as u64).unwrap();
        let begun = Instant::now();
        let found = object.names_with_prefix("framed").unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(begun.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn names_are_whole() {
        let mut found = BTreeSet::new();
        find_in(b"\0ab_one\0xab_two\0ab_\0ab_cut", true, "ab_", &mut found);
        find_in(b"ab_three\0", false, "ab_", &mut found);
        assert_eq!(found, ["ab_".to_owned(), "ab_one".to_owned()].into());
    }
}
