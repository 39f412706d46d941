//! `PERF_RECORD_MMAP2` and its older form `PERF_RECORD_MMAP`: a mapping.

use super::cursor::{Cursor, until_nul};
use super::record::{RecordBuilder, padded};
use super::{RawRecord, RecordType, SampleId, SampleType, SplitBody};
use crate::build_id::BuildId;

/// An executable (or, with `mmap_data`, any) mapping of a process.
///
/// MMAP2 body: pid 4, tid 4, address 8, length 8, file offset 8, identity 24, protection 4, flags 4,
/// path with NUL padded to 8, sample id. MMAP's body lacks identity, protection and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mmap<'a> {
    /// Process; -1 for the kernel.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// First address.
    pub start: u64,
    /// Length, bytes.
    pub len: u64,
    /// File offset of the first address, bytes.
    pub offset: u64,
    /// Identity of the file.
    pub file: MmapFile,
    /// `PROT_*`; 0 in MMAP.
    pub protection: u32,
    /// `MAP_*`; 0 in MMAP.
    pub flags: u32,
    /// CPU mode (`misc & PERF_RECORD_MISC_CPUMODE_MASK`): 1 kernel mapping, 2 user mapping.
    pub cpu_mode: u16,
    /// Path without NUL, or a name such as `[vdso]` or `//anon`.
    pub path: &'a [u8],
    /// Sample id, the trailer of the record.
    pub id: SampleId,
}

/// Identity of a mapped file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MmapFile {
    /// Unknown (MMAP records).
    Unknown,
    /// Device and inode: major 4, minor 4, inode 8, generation 8.
    Inode {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
        /// Inode.
        inode: u64,
        /// Generation of the inode.
        generation: u64,
    },
    /// `PERF_RECORD_MISC_MMAP_BUILD_ID`: length 1, padding 3, 20 bytes.
    BuildId(BuildId),
}

impl<'a> Mmap<'a> {
    /// `cpu_mode` of a user mapping.
    pub const USER: u16 = 2;
    /// `cpu_mode` of the kernel's own mappings.
    pub const KERNEL: u16 = 1;
    const CPU_MODE: u16 = 7;
    /// Bit of `misc`: the record has a build-id instead of device and inode
    /// (`PERF_RECORD_MISC_MMAP_BUILD_ID`).
    pub const BUILD_ID: u16 = 1 << 14;

    /// Parses an MMAP2 or MMAP record; `None` if it is neither or is too short.
    ///
    /// `sample_type` is [`Attr::id_type`](super::Attr::id_type).
    #[must_use]
    pub fn parse(record: &RawRecord<'a>, sample_type: SampleType) -> Option<Self> {
        let second = match record.kind {
            RecordType::MMAP2 => true,
            RecordType::MMAP => false,
            _ => return None,
        };
        let SplitBody { fields, id } = SampleId::split(record.body, sample_type)?;
        let mut cursor = Cursor::new(fields);
        let mut map = Self {
            pid: cursor.i32()?,
            tid: cursor.i32()?,
            start: cursor.u64()?,
            len: cursor.u64()?,
            offset: cursor.u64()?,
            file: MmapFile::Unknown,
            protection: 0,
            flags: 0,
            cpu_mode: record.misc & Self::CPU_MODE,
            path: &[],
            id,
        };
        if second {
            let identity = cursor.take(24)?;
            map.file = MmapFile::parse(identity, record.misc & Self::BUILD_ID != 0)?;
            map.protection = cursor.u32()?;
            map.flags = cursor.u32()?;
        }
        map.path = until_nul(cursor.rest());
        Some(map)
    }

    /// The build-id of the file, if the record has it.
    #[must_use]
    pub const fn build_id(&self) -> Option<BuildId> {
        match self.file {
            MmapFile::BuildId(id) => Some(id),
            _ => None,
        }
    }

    /// Whether the record is that of executable memory of no file, where programs make code.
    #[must_use]
    pub fn is_for_code(&self) -> bool {
        Self::is_memory(self.path) && self.is_executable()
    }

    /// Whether the memory is executable. Of MMAP records that is not known, and assumed.
    #[must_use]
    pub const fn is_executable(&self) -> bool {
        /// Of `PROT_*`.
        const EXEC: u32 = 4;
        self.protection & EXEC != 0 || matches!(self.file, MmapFile::Unknown)
    }

    /// Whether memory that is mapped by this name is that of no file.
    #[must_use]
    pub fn is_memory(name: &[u8]) -> bool {
        let kinds: [&[u8]; 6] = [
            b"//anon",
            b"/anon_hugepage",
            b"/memfd:",
            b"/dev/zero",
            b"[heap]",
            b"[anon",
        ];
        kinds.iter().any(|kind| name.starts_with(kind))
    }

    /// Appends an MMAP2 record.
    pub fn encode(&self, sample_type: SampleType, out: &mut Vec<u8>) {
        let (identity, has_build_id) = self.file.identity();
        let mut misc = self.cpu_mode & Self::CPU_MODE;
        if has_build_id {
            misc |= Self::BUILD_ID;
        }
        let mut record = RecordBuilder::new(out, RecordType::MMAP2, misc);
        record.bytes(&self.pid.to_le_bytes());
        record.bytes(&self.tid.to_le_bytes());
        for field in [self.start, self.len, self.offset] {
            record.bytes(&field.to_le_bytes());
        }
        record.bytes(&identity);
        record.bytes(&self.protection.to_le_bytes());
        record.bytes(&self.flags.to_le_bytes());
        record.bytes(&padded(self.path));
        record.finish(&self.id, sample_type);
    }
}

impl MmapFile {
    /// Parses the 24 bytes `identity`. A build-id of invalid length gives an unknown identity.
    fn parse(identity: &[u8], has_build_id: bool) -> Option<Self> {
        let mut cursor = Cursor::new(identity);
        if has_build_id {
            let len = usize::from(cursor.u8()?);
            cursor.take(3)?;
            let id = cursor.take(len).and_then(|id| BuildId::new(id).ok());
            return Some(id.map_or(Self::Unknown, Self::BuildId));
        }
        Some(Self::Inode {
            major: cursor.u32()?,
            minor: cursor.u32()?,
            inode: cursor.u64()?,
            generation: cursor.u64()?,
        })
    }

    /// Encodes the 24 bytes, and returns whether they are a build-id.
    fn identity(&self) -> ([u8; 24], bool) {
        let mut bytes = [0; 24];
        match self {
            Self::Unknown => (bytes, false),
            Self::Inode {
                major,
                minor,
                inode,
                generation,
            } => {
                bytes[..4].copy_from_slice(&major.to_le_bytes());
                bytes[4..8].copy_from_slice(&minor.to_le_bytes());
                bytes[8..16].copy_from_slice(&inode.to_le_bytes());
                bytes[16..].copy_from_slice(&generation.to_le_bytes());
                (bytes, false)
            }
            Self::BuildId(id) => {
                let id = id.in_perf();
                let id = id.as_bytes();
                bytes[0] = id.len() as u8;
                bytes[4..4 + id.len()].copy_from_slice(id);
                (bytes, true)
            }
        }
    }
}
