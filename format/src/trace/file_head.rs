//! Reads the file header and the attrs.

use super::damage::{Damage, DamageKind};
use super::limits::Limit;
use super::read_error::ReadError;
use super::trace_files::TraceFiles;
use crate::perf::Attr;
use crate::perf::cursor::Cursor;
use crate::perf::feature::take_ids;
use crate::perf::header::{FileHeader, Section};

/// Maximum number of attrs that are read.
pub(crate) const MAX_ATTRS: u64 = Limit::Events.max();
/// Maximum total length of ids that are read, bytes: 16 million ids.
const MAX_ID_BYTES: u64 = 8 << 24;

/// perf's two forms of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A file, with its header.
    File(FileHeader),
    /// The data of a pipe, stored in a file: records from offset 16 on.
    Pipe,
}

/// An attr, with the sample ids of its events.
#[derive(Clone, Debug)]
pub(crate) struct AttrIds {
    pub(crate) attr: Attr,
    pub(crate) ids: Vec<u64>,
}

/// The attrs of a file and their ids.
#[derive(Debug, Default)]
pub(crate) struct Attrs {
    pub(crate) attrs: Vec<AttrIds>,
    /// Damage found.
    pub(crate) damage: Vec<Damage>,
}

impl Form {
    /// Reads the file header until two reads agree: a recorder that adds events writes more of it than the processor does at once.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) fn read_settled(source: &TraceFiles) -> Result<Self, ReadError> {
        const MAX_READS: usize = 16;
        let mut form = Self::read(source)?;
        for _ in 1..MAX_READS {
            let again = Self::read(source)?;
            if again == form {
                break;
            }
            form = again;
        }
        Ok(form)
    }

    /// Reads the file header.
    ///
    /// # Errors
    /// [`ReadError`] if the file is not a little-endian perf.data file.
    pub(crate) fn read(source: &TraceFiles) -> Result<Self, ReadError> {
        let bytes = source.bytes(0, FileHeader::LEN)?;
        let mut cursor = Cursor::new(&bytes);
        let magic = cursor.take(8).unwrap_or(&bytes);
        if magic == FileHeader::MAGIC_SWAPPED {
            return Err(ReadError::format(
                0,
                "a little-endian perf.data file (\"PERFILE2\")",
                "a big-endian one (\"2ELIFREP\"), which is not supported: read it with perf on the machine that wrote it",
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

fn cut(source: &TraceFiles) -> ReadError {
    ReadError::format(
        source.len(),
        format!("a header of {} bytes", FileHeader::LEN),
        "the end of the file",
    )
}

impl Attrs {
    /// Reads the attrs that a header describes.
    ///
    /// # Errors
    /// [`ReadError`] if the attr size is invalid or reading fails.
    pub(crate) fn read(source: &TraceFiles, header: &FileHeader) -> Result<Self, ReadError> {
        let min = (Attr::MIN + Section::LEN) as u64;
        if !(min..=u64::from(u16::MAX)).contains(&header.attr_size) {
            return Err(ReadError::format(
                16,
                format!("an attr size of {min} to {}", u16::MAX),
                header.attr_size,
            ));
        }
        let mut found = Self::default();
        let claimed = header.attrs.size / header.attr_size;
        let room = source.len().saturating_sub(header.attrs.offset) / header.attr_size;
        let count = claimed.min(room).min(MAX_ATTRS);
        if count < claimed {
            let kind = DamageKind::Attrs {
                claimed,
                found: count,
            };
            found.damage.push(Damage::new(header.attrs.offset, kind));
        }
        let size = header.attr_size as usize - Section::LEN;
        // An attr may have more fields than known here; the ids are at the end of the entry.
        let known = size.min(Attr::WRITTEN);
        // Sections of ids could overlap: all together are limited to the length of the file.
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
            found.attrs.push(AttrIds { attr, ids });
        }
        Ok(found)
    }

    fn ids(
        &mut self,
        source: &TraceFiles,
        section: Section,
        left: &mut u64,
    ) -> Result<Vec<u64>, ReadError> {
        let is_beyond_end = section.end() > source.len();
        if is_beyond_end || section.size > *left {
            let kind = DamageKind::Ids {
                size: section.size,
                offset: section.offset,
                is_beyond_end,
            };
            self.damage.push(Damage::new(section.offset, kind));
            return Ok(Vec::new());
        }
        *left -= section.size;
        let bytes = source.bytes(section.offset, section.size as usize)?;
        let mut ids = take_ids(&bytes);
        // The first one may be there twice: see `head`.
        ids.dedup();
        Ok(ids)
    }
}
