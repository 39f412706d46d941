//! `perf_event_attr` and the event that it belongs to.

use super::cursor::Cursor;

/// `perf_event_attr` as stored in a file. Fields that a shorter structure does not have are 0.
///
/// Layout: `include/uapi/linux/perf_event.h`; sizes 64 (`PERF_ATTR_SIZE_VER0`) and up are read, 112 is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attr {
    /// `type`: [`SOFTWARE`](Self::SOFTWARE), [`TRACEPOINT`](Self::TRACEPOINT), above 5 a dynamic PMU.
    pub kind: u32,
    /// `size` as read; 112 when written.
    pub size: u32,
    /// `config`.
    pub config: u64,
    /// `sample_period` (or frequency).
    pub sample_period: u64,
    /// `sample_type`.
    pub sample_type: SampleType,
    /// `read_format`.
    pub read_format: u64,
    /// The 64 flag bits from offset 40 (`disabled`, `inherit`, …, `build_id` is bit 34).
    pub flags: u64,
    /// `wakeup_events` or `wakeup_watermark`.
    pub wakeup: u32,
    /// `bp_type`.
    pub bp_type: u32,
    /// `config1`.
    pub config1: u64,
    /// `config2`.
    pub config2: u64,
    /// `branch_sample_type`.
    pub branch_sample_type: u64,
    /// `sample_regs_user`.
    pub sample_regs_user: u64,
    /// `sample_stack_user`.
    pub sample_stack_user: u32,
    /// `clockid`.
    pub clockid: i32,
    /// `sample_regs_intr`; 0 if samples do not have these registers.
    pub sample_regs_intr: u64,
    /// `sample_max_stack`: frames of a call chain by frame pointers, at most; 0 if nothing is said.
    pub sample_max_stack: u16,
}

impl Attr {
    /// [`kind`](Self::kind): `PERF_TYPE_SOFTWARE`.
    pub const SOFTWARE: u32 = 1;
    /// [`kind`](Self::kind): `PERF_TYPE_TRACEPOINT`.
    pub const TRACEPOINT: u32 = 2;
    /// [`config`](Self::config) of software events: `PERF_COUNT_SW_DUMMY`, an event that never fires and only brings metadata.
    pub const DUMMY: u64 = 9;
    /// Size of what [`encode`](Self::encode) writes: perf 6.1 refuses more than 128.
    pub const WRITTEN: usize = 112;
    /// Offset of `sample_regs_intr`, bytes.
    pub(crate) const REGS_INTR_AT: usize = 96;
    /// Minimum size that is read, bytes (`PERF_ATTR_SIZE_VER0`).
    pub const MIN: usize = 64;
    /// Bit of [`flags`](Self::flags): threads and children that start later have the event, too.
    pub const INHERIT: u64 = 1 << 1;
    /// Bit of [`flags`](Self::flags): every record has a sample id.
    pub const SAMPLE_ID_ALL: u64 = 1 << 18;
    /// Bit of [`flags`](Self::flags): call chains have no user part.
    pub const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
    /// Bit of [`flags`](Self::flags): times are of [`clockid`](Self::clockid).
    pub const USE_CLOCKID: u64 = 1 << 25;

    /// The bits of the sample type that determine the layout of a [`SampleId`](super::SampleId); 0 without `sample_id_all`.
    #[must_use]
    pub const fn id_type(&self) -> SampleType {
        if self.flags & Self::SAMPLE_ID_ALL == 0 {
            return SampleType(0);
        }
        SampleType(self.sample_type.0 & SampleType::SAMPLE_ID.0)
    }

    /// Whether a sample has the counts of a group of events (`PERF_FORMAT_GROUP`).
    pub(crate) const fn reads_group(&self) -> bool {
        const GROUP: u64 = 1 << 3;
        self.sample_type.has(SampleType::READ) && self.read_format & GROUP != 0
    }

    /// Parses an attr that extends to the end of `bytes`. Missing fields are 0.
    /// `None` if there are fewer than [`MIN`](Self::MIN) bytes.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < Self::MIN {
            return None;
        }
        let mut whole = [0; Self::WRITTEN];
        let len = bytes.len().min(Self::WRITTEN);
        whole[..len].copy_from_slice(&bytes[..len]);
        let mut cursor = Cursor::new(&whole);
        let mut attr = Self {
            kind: cursor.u32()?,
            size: cursor.u32()?,
            config: cursor.u64()?,
            sample_period: cursor.u64()?,
            sample_type: SampleType(cursor.u64()?),
            read_format: cursor.u64()?,
            flags: cursor.u64()?,
            wakeup: cursor.u32()?,
            bp_type: cursor.u32()?,
            config1: cursor.u64()?,
            config2: cursor.u64()?,
            branch_sample_type: cursor.u64()?,
            sample_regs_user: cursor.u64()?,
            sample_stack_user: cursor.u32()?,
            clockid: cursor.i32()?,
            sample_regs_intr: cursor.u64()?,
            sample_max_stack: {
                let _aux_watermark = cursor.u32()?;
                cursor.u16()?
            },
        };
        if !attr.sample_type.has(SampleType::REGS_INTR) {
            attr.sample_regs_intr = 0;
        }
        Some(attr)
    }

    /// Appends the attr as [`WRITTEN`](Self::WRITTEN) bytes, ignoring [`size`](Self::size).
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend(self.kind.to_le_bytes());
        out.extend((Self::WRITTEN as u32).to_le_bytes());
        for field in [
            self.config,
            self.sample_period,
            self.sample_type.0,
            self.read_format,
            self.flags,
        ] {
            out.extend(field.to_le_bytes());
        }
        out.extend(self.wakeup.to_le_bytes());
        out.extend(self.bp_type.to_le_bytes());
        for field in [
            self.config1,
            self.config2,
            self.branch_sample_type,
            self.sample_regs_user,
        ] {
            out.extend(field.to_le_bytes());
        }
        out.extend(self.sample_stack_user.to_le_bytes());
        out.extend(self.clockid.to_le_bytes());
        out.extend(self.sample_regs_intr.to_le_bytes());
        out.extend(0_u32.to_le_bytes());
        out.extend(self.sample_max_stack.to_le_bytes());
        out.resize(start + Self::WRITTEN, 0);
    }
}

/// The bits of `sample_type` (`enum perf_event_sample_format`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleType(pub u64);

impl SampleType {
    /// Instruction pointer.
    pub const IP: Self = Self(1 << 0);
    /// Process and thread id.
    pub const TID: Self = Self(1 << 1);
    /// Time.
    pub const TIME: Self = Self(1 << 2);
    /// Address.
    pub const ADDR: Self = Self(1 << 3);
    /// Group read.
    pub const READ: Self = Self(1 << 4);
    /// Call chain.
    pub const CALLCHAIN: Self = Self(1 << 5);
    /// Event id.
    pub const ID: Self = Self(1 << 6);
    /// CPU.
    pub const CPU: Self = Self(1 << 7);
    /// Period.
    pub const PERIOD: Self = Self(1 << 8);
    /// Stream id.
    pub const STREAM_ID: Self = Self(1 << 9);
    /// Raw bytes of the event.
    pub const RAW: Self = Self(1 << 10);
    /// Branch stack.
    pub const BRANCH_STACK: Self = Self(1 << 11);
    /// User registers.
    pub const REGS_USER: Self = Self(1 << 12);
    /// User stack.
    pub const STACK_USER: Self = Self(1 << 13);
    /// Event id at a fixed position.
    pub const IDENTIFIER: Self = Self(1 << 16);
    /// Registers at the time of the interrupt.
    pub const REGS_INTR: Self = Self(1 << 18);
    /// The bits that select the parts of a [`SampleId`](super::SampleId).
    pub const SAMPLE_ID: Self = Self(
        Self::TID.0
            | Self::TIME.0
            | Self::ID.0
            | Self::STREAM_ID.0
            | Self::CPU.0
            | Self::IDENTIFIER.0,
    );

    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for SampleType {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// An event of a trace: its attr, its name and its sample ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventAttr {
    /// The attr.
    pub attr: Attr,
    /// Name from the `EVENT_DESC` feature (`sdt_tick:loop1`).
    pub name: String,
    /// Sample ids.
    pub ids: Vec<u64>,
}
