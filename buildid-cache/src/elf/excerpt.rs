//! Parts of a file in memory, for parsers that expect the whole file.

use std::ops::Range;

use object::read::ReadRef;

use super::error::ElfError;
use super::object_file::ObjectFile;
use super::section::SYMBOL_KINDS;

/// Size of an ELF header of class 64, the larger one, bytes.
const HEADER: usize = 64;

/// Parts of a file, readable through [`ReadRef`]. Reads outside of the parts fail.
#[derive(Clone, Debug)]
pub struct Excerpt {
    len: u64,
    /// Length of the longest string that is read, bytes. Of longer ones the end is not searched for: all symbols of a hostile file may have one name.
    longest: usize,
    /// File offset and content of each part.
    parts: Vec<(u64, Vec<u8>)>,
}

impl Excerpt {
    /// The ELF header, program headers and section headers.
    pub(super) fn of_headers(object: &ObjectFile) -> Result<Self, ElfError> {
        let mut excerpt = Self {
            len: object.len(),
            longest: 0,
            parts: Vec::new(),
        };
        let header = object.bytes_at(0, HEADER)?;
        // Their sizes were checked when the file was opened.
        for (offset, len) in object.headers().tables {
            excerpt.add(offset, object.bytes_at(offset, len)?);
        }
        excerpt.add(0, header);
        Ok(excerpt)
    }

    /// Adds a part.
    pub(super) fn add(&mut self, offset: u64, content: Vec<u8>) {
        self.parts.push((offset, content));
    }

    fn find(&self, range: &Range<u64>) -> Option<&[u8]> {
        self.parts.iter().find_map(|(offset, content)| {
            let begin = usize::try_from(range.start.checked_sub(*offset)?).ok()?;
            let end = usize::try_from(range.end.checked_sub(*offset)?).ok()?;
            content.get(begin..end)
        })
    }
}

impl ObjectFile {
    /// Reads the parts of the file that the `object` crate needs for headers.
    ///
    /// # Errors
    /// [`ElfError`].
    pub fn header_tables(&self) -> Result<Excerpt, ElfError> {
        Excerpt::of_headers(self)
    }

    /// Reads the parts of the file that the `object` crate needs for headers and symbols: tables of at most `limit` bytes together. Names with more
    /// than `longest` bytes cannot be read.
    ///
    /// # Errors
    /// [`ElfError`].
    pub fn symbol_tables(&self, limit: u64, longest: usize) -> Result<Excerpt, ElfError> {
        let mut excerpt = Excerpt {
            longest,
            ..Excerpt::of_headers(self)?
        };
        let mut room = limit;
        let kinds = SYMBOL_KINDS.map(|kind| kind.0);
        for section in &self.headers().sections {
            if kinds.contains(&section.kind) {
                let content = self.content(section, room)?;
                room -= content.len() as u64;
                excerpt.add(section.offset, content);
            }
        }
        Ok(excerpt)
    }
}

impl<'a> ReadRef<'a> for &'a Excerpt {
    fn len(self) -> Result<u64, ()> {
        Ok(self.len)
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        if size == 0 {
            return Ok(&[]);
        }
        let end = offset.checked_add(size).ok_or(())?;
        self.find(&(offset..end)).ok_or(())
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        // The claimed end of a string table may be beyond the part that was read.
        let part = self.parts.iter().find_map(|(offset, content)| {
            let begin = usize::try_from(range.start.checked_sub(*offset)?).ok()?;
            let rest = content.get(begin..)?;
            let len = range.end.saturating_sub(range.start);
            let len = usize::try_from(len).unwrap_or(usize::MAX).min(rest.len());
            rest.get(..len.min(self.longest.saturating_add(1)))
        });
        let part = part.ok_or(())?;
        let end = memchr::memchr(delimiter, part).ok_or(())?;
        part.get(..end).ok_or(())
    }
}
