//! Reading the header and the attrs.

use super::damage::Damage;
use super::read_error::ReadError;
use super::source::Source;
use crate::perf::Attr;
use crate::perf::cursor::Cursor;
use crate::perf::feature::take_ids;
use crate::perf::header::{FileHeader, Section};

/// Most attrs that are read.
pub(crate) const MAX_ATTRS: u64 = 65536;
/// Most bytes of ids that are read: 16 million ids.
const MAX_ID_BYTES: u64 = 8 << 24;

/// Which of perf's two forms a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A file, with its header.
    File(FileHeader),
    /// A pipe's stream, stored: records from offset 16 on.
    Pipe,
}

/// The attrs of a file and their ids.
#[derive(Debug, Default)]
pub(crate) struct Attrs {
    /// Attr and ids.
    pub(crate) attrs: Vec<(Attr, Vec<u64>)>,
    /// What was wrong.
    pub(crate) damage: Vec<Damage>,
}

impl Form {
    /// Reads the first bytes.
    ///
    /// # Errors
    /// [`ReadError`] if it is no perf.data file of this byte order.
    pub(crate) fn read(source: &Source) -> Result<Self, ReadError> {
        let bytes = source.bytes(0, FileHeader::LEN)?;
        let mut cursor = Cursor::new(&bytes);
        let magic = cursor.take(8).unwrap_or(&bytes);
        if magic == FileHeader::MAGIC_SWAPPED {
            return Err(ReadError::format(
                0,
                "a little-endian perf.data file (\"PERFILE2\")",
                "a big-endian one (\"2ELIFREP\"): those are not supported, read it on the machine that wrote it",
            ));
        }
        if magic != FileHeader::MAGIC {
            let found = match magic {
                [] => "an empty file".to_owned(),
                magic if magic.iter().all(|&byte| byte == 0) => {
                    "zeros: the recorder was killed before it wrote the header".to_owned()
                }
                magic => format!("\"{}\"", magic.escape_ascii()),
            };
            return Err(ReadError::format(
                0,
                "\"PERFILE2\" (a perf.data file)",
                found,
            ));
        }
        match cursor.u64() {
            Some(len) if len == FileHeader::LEN as u64 => FileHeader::parse(cursor)
                .map(Self::File)
                .ok_or_else(|| cut(source)),
            Some(len) if len == FileHeader::PIPE_LEN as u64 => Ok(Self::Pipe),
            Some(len) => Err(ReadError::format(
                8,
                "header size 104, or 16 for a pipe's stream",
                len,
            )),
            None => Err(cut(source)),
        }
    }
}

fn cut(source: &Source) -> ReadError {
    ReadError::format(
        source.len(),
        format!("a header of {} bytes", FileHeader::LEN),
        "the end of the file",
    )
}

impl Attrs {
    /// Reads the attrs of a header.
    ///
    /// # Errors
    /// [`ReadError`] if there can be none where the header says.
    pub(crate) fn read(source: &Source, header: &FileHeader) -> Result<Self, ReadError> {
        let least = (Attr::MIN + Section::LEN) as u64;
        if !(least..=u64::from(u16::MAX)).contains(&header.attr_size) {
            return Err(ReadError::format(
                16,
                format!("an attr size of {least} to {}", u16::MAX),
                header.attr_size,
            ));
        }
        let mut found = Self::default();
        let claimed = header.attrs.size / header.attr_size;
        let room = source.len().saturating_sub(header.attrs.offset) / header.attr_size;
        let count = claimed.min(room).min(MAX_ATTRS);
        if count < claimed {
            let what = format!("the header claims {claimed} attrs, {count} are there");
            found.damage.push(Damage::lost(header.attrs.offset, what));
        }
        let size = header.attr_size as usize - Section::LEN;
        // Behind what is known of an attr may stand much; the ids are at the entry's end.
        let known = size.min(Attr::WRITTEN);
        // Ids that overlap could be claimed again and again; as many bytes as the file has are enough for all.
        let mut id_bytes_left = source.len().min(MAX_ID_BYTES);
        let (mut attr, mut ids) = (Vec::new(), Vec::new());
        for number in 0..count {
            let entry = header.attrs.offset + number * header.attr_size;
            source.read(entry, known, &mut attr)?;
            source.read(entry + size as u64, Section::LEN, &mut ids)?;
            if ids.len() < Section::LEN {
                break;
            }
            let ids = Section::parse(&mut Cursor::new(&ids)).unwrap_or_default();
            let Some(attr) = Attr::parse(&attr) else {
                continue;
            };
            let ids = found.ids(source, ids, &mut id_bytes_left)?;
            found.attrs.push((attr, ids));
        }
        Ok(found)
    }

    fn ids(
        &mut self,
        source: &Source,
        section: Section,
        left: &mut u64,
    ) -> Result<Vec<u64>, ReadError> {
        let over = section.end() > source.len();
        if over || section.size > *left {
            let why = if over {
                "reach over the end of the file"
            } else {
                "are more than can be"
            };
            let what = format!(
                "{} bytes of ids at offset {} {why}: left out",
                section.size, section.offset
            );
            self.damage.push(Damage::lost(section.offset, what));
            return Ok(Vec::new());
        }
        *left -= section.size;
        let bytes = source.bytes(section.offset, section.size as usize)?;
        Ok(take_ids(&bytes))
    }
}
