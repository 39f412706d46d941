//! Samples (`PERF_RECORD_SAMPLE`): records of hits.
//!
//! A sample's body has these parts, each only if its bit is set in `sample_type`, in this order (sizes in bytes): `IDENTIFIER` 8, `IP` 8,
//! `TID` 4 + 4, `TIME` 8, `ADDR` 8, `ID` 8, `STREAM_ID` 8, `CPU` 4 + 4, `PERIOD` 8, then the parts of variable length:
//! `READ`, `CALLCHAIN`, `RAW`, `BRANCH_STACK`, `REGS_USER`, `STACK_USER`. Later parts are not read.
//!
//! The second word of `CPU` is reserved: the kernel writes 0, and perf does not read it. usdtrec's bpf engine writes the user there: his id in
//! the initial user namespace, as `bpf_get_current_uid_gid` has it, plus 1.

use super::callchain::{CONTEXT_MAX, CONTEXT_USER_DEFERRED, ChainCut};
use super::cursor::Cursor;
use super::{Attr, SampleType};

/// Offsets of the parts of a sample, computed once for an attr.
#[derive(Clone, Debug, Default)]
pub struct SampleLayout {
    id: Field,
    ip: Field,
    tid: Field,
    time: Field,
    cpu: Field,
    period: Field,
    /// Total size of the parts of fixed length, bytes.
    fixed: usize,
    /// Whether the parts of fixed length are those of most samples, in this order: `IDENTIFIER`, `IP`, `TID`, `TIME`, `CPU`.
    is_usual: bool,
    /// Whether the raw data are the only part of varying length.
    only_raw: bool,
    read_format: Option<u64>,
    callchain: bool,
    raw: bool,
    /// `branch_sample_type`.
    branch_stack: Option<u64>,
    /// Size of the registers if the sample has them, bytes.
    regs: Option<usize>,
    stack: bool,
}

/// Size of the parts of fixed length of most samples, bytes.
const USUAL: usize = 40;

/// Parts of fixed length, 0 where the attr does not sample them.
struct FixedParts {
    id: u64,
    ip: u64,
    /// Process and thread.
    ids: u64,
    time: u64,
    /// The CPU, and the user.
    cpu: u64,
    period: u64,
}

/// Parts of varying length, empty where the attr does not sample them.
#[derive(Default)]
struct VaryingParts<'a> {
    callchain: &'a [u8],
    raw: &'a [u8],
    regs_abi: u64,
    regs: &'a [u8],
    stack: &'a [u8],
}

impl FixedParts {
    /// The parts of most samples.
    #[inline(always)]
    fn usual(bytes: &[u8; USUAL]) -> Self {
        let (words, _) = bytes.as_chunks();
        let word = |at: usize| words.get(at).map_or(0, |word| u64::from_le_bytes(*word));
        Self {
            id: word(0),
            ip: word(1),
            ids: word(2),
            time: word(3),
            cpu: word(4),
            period: 0,
        }
    }
}

impl<'a> Cursor<'a> {
    /// Raw data, which their length comes before.
    #[inline(always)]
    fn raw(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()?;
        self.take(len as usize)
    }
}

/// Size of the length before raw data, bytes.
const RAW_LENGTH: usize = 4;

/// Offset of an 8-byte part in the sample's body.
type Field = Option<u16>;

/// A sample, borrowed from its record. Parts that the attr does not sample are 0 or empty.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample<'a> {
    /// Event id (`IDENTIFIER`, else `ID`).
    pub id: u64,
    /// Instruction pointer.
    pub ip: u64,
    /// Process id; -1 if unknown.
    pub pid: i32,
    /// Thread id; -1 if unknown.
    pub tid: i32,
    /// Time, ns of the trace's clock.
    pub time: u64,
    /// CPU.
    pub cpu: u32,
    /// [`uid`](Self::uid) plus 1; 0 if it was not recorded.
    pub user: u32,
    /// Period; 0 if it was not recorded.
    pub period: u64,
    /// Call chain: addresses and context markers, 8 bytes each.
    pub callchain: &'a [u8],
    /// Raw data of a tracepoint.
    pub raw: &'a [u8],
    /// `perf_sample_regs_abi`: 0 none, 1 32-bit, 2 64-bit.
    pub regs_abi: u64,
    /// The registers of the attr's mask in ascending bit order, 8 bytes each.
    pub regs: &'a [u8],
    /// Stack bytes from the stack pointer upwards, as many as were copied (`dyn_size`).
    pub stack: &'a [u8],
}

/// An address of a call chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainEntry {
    /// The address.
    pub address: u64,
    /// Whether it is the first in the kernel, or in user space: where execution continues. All others are return addresses, or addresses in calls.
    pub is_first: bool,
}

impl<'a> Sample<'a> {
    /// The real user id of the process in the initial user namespace; `None` if it was not recorded.
    #[must_use]
    pub const fn uid(&self) -> Option<u32> {
        self.user.checked_sub(1)
    }

    /// The addresses of the call chain, the address of the hit first, without context markers.
    pub fn callers(&self) -> impl Iterator<Item = u64> + use<'a> {
        self.chain().map(|entry| entry.address)
    }

    /// The addresses of the call chain, the address of the hit first.
    pub fn chain(&self) -> impl Iterator<Item = ChainEntry> + use<'a> {
        let chain = match self.deferred_cookie() {
            Some(_) => self
                .callchain
                .split_last_chunk::<8>()
                .map(|(chain, _)| chain),
            None => Some(self.callchain),
        };
        chain_entries(chain.unwrap_or_default())
    }

    /// The cookie of the [`DeferredChain`](super::DeferredChain) with the part of the chain in user space; `None` if the chain is whole.
    #[must_use]
    pub fn deferred_cookie(&self) -> Option<u64> {
        let (words, _) = self.callchain.as_chunks::<8>();
        let [.., context, cookie] = words else {
            return None;
        };
        let is_deferred = u64::from_le_bytes(*context) == CONTEXT_USER_DEFERRED;
        is_deferred.then(|| u64::from_le_bytes(*cookie))
    }

    /// Why the recorder of usdtrec cut the call chain; `None` if it did not, or another program recorded it.
    #[must_use]
    pub fn chain_cut(&self) -> Option<ChainCut> {
        ChainCut::from_chain(self.callchain)
    }
}

/// The addresses among the words of a chain, the innermost first.
pub fn chain_entries(chain: &[u8]) -> impl Iterator<Item = ChainEntry> + use<'_> {
    let (words, _) = chain.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    words
        .scan(true, |is_first, word| {
            let is_marker = word >= CONTEXT_MAX;
            let entry = ChainEntry {
                address: word,
                is_first: std::mem::replace(is_first, is_marker),
            };
            Some((!is_marker).then_some(entry))
        })
        .flatten()
}

impl SampleLayout {
    /// The layout of an attr's samples.
    #[must_use]
    pub fn new(attr: &Attr) -> Self {
        let kind = attr.sample_type;
        let mut offset = 0;
        let mut place = |bit: SampleType| -> Field {
            kind.has(bit).then(|| {
                offset += 8;
                offset - 8
            })
        };
        let identifier = place(SampleType::IDENTIFIER);
        let ip = place(SampleType::IP);
        let tid = place(SampleType::TID);
        let time = place(SampleType::TIME);
        place(SampleType::ADDR);
        let id = place(SampleType::ID);
        place(SampleType::STREAM_ID);
        let cpu = place(SampleType::CPU);
        let period = place(SampleType::PERIOD);
        let usual = [Some(0), Some(8), Some(16), Some(24), Some(32), None];
        let varying = SampleType::READ.0
            | SampleType::CALLCHAIN.0
            | SampleType::RAW.0
            | SampleType::BRANCH_STACK.0
            | SampleType::REGS_USER.0
            | SampleType::STACK_USER.0;
        Self {
            is_usual: [identifier, ip, tid, time, cpu, period] == usual
                && usize::from(offset) == USUAL,
            only_raw: kind.0 & varying == SampleType::RAW.0,
            id: identifier.or(id),
            ip,
            tid,
            time,
            cpu,
            period,
            fixed: usize::from(offset),
            read_format: kind.has(SampleType::READ).then_some(attr.read_format),
            callchain: kind.has(SampleType::CALLCHAIN),
            raw: kind.has(SampleType::RAW),
            branch_stack: kind
                .has(SampleType::BRANCH_STACK)
                .then_some(attr.branch_sample_type),
            regs: kind
                .has(SampleType::REGS_USER)
                .then_some(8 * attr.sample_regs_user.count_ones() as usize),
            stack: kind.has(SampleType::STACK_USER),
        }
    }

    /// Offset of the time in a sample's body, bytes; `None` if the attr does not sample it.
    #[must_use]
    pub fn time_offset(&self) -> Option<usize> {
        self.time.map(usize::from)
    }

    /// Offset of process and thread, 4 bytes each, in a sample's body, bytes; `None` if the attr does not sample them.
    #[must_use]
    pub fn tid_offset(&self) -> Option<usize> {
        self.tid.map(usize::from)
    }

    /// Offset of the raw data in a sample's body, bytes, after their length of 4 bytes; `None` without raw data, or if parts of varying length
    /// come before them.
    #[must_use]
    pub fn raw_offset(&self) -> Option<usize> {
        let is_first = self.raw && self.read_format.is_none() && !self.callchain;
        is_first.then_some(self.fixed + RAW_LENGTH)
    }

    /// Whether a sample's body is as long as the attr requires, so that [`parse`](Self::parse) gives a sample.
    #[must_use]
    #[inline]
    pub fn fits(&self, body: &[u8]) -> bool {
        self.parse(body).is_some()
    }

    /// Parses a sample's body, without the record header; `None` if it is shorter than the attr requires.
    // Inlined, a sample is never copied: it is as large as two cache lines. What most samples do not have is not.
    #[must_use]
    #[inline(always)]
    pub fn parse<'a>(&self, body: &'a [u8]) -> Option<Sample<'a>> {
        let (fixed, varying) = match self.is_usual {
            true => {
                let (fixed, varying) = body.split_first_chunk()?;
                (FixedParts::usual(fixed), varying)
            }
            false => {
                let (fixed, varying) = body.split_at_checked(self.fixed)?;
                (self.fixed_parts(fixed), varying)
            }
        };
        let varying = match self.only_raw {
            true => VaryingParts {
                raw: Cursor::new(varying).raw()?,
                ..VaryingParts::default()
            },
            false => self.varying_parts(Cursor::new(varying))?,
        };
        Some(Sample {
            id: fixed.id,
            ip: fixed.ip,
            pid: fixed.ids as i32,
            tid: (fixed.ids >> 32) as i32,
            time: fixed.time,
            cpu: fixed.cpu as u32,
            user: (fixed.cpu >> 32) as u32,
            period: fixed.period,
            callchain: varying.callchain,
            raw: varying.raw,
            regs_abi: varying.regs_abi,
            regs: varying.regs,
            stack: varying.stack,
        })
    }

    #[inline(never)]
    fn fixed_parts(&self, fixed: &[u8]) -> FixedParts {
        FixedParts {
            id: part(fixed, self.id),
            ip: part(fixed, self.ip),
            ids: match self.tid {
                Some(_) => part(fixed, self.tid),
                // Both are -1.
                None => u64::MAX,
            },
            time: part(fixed, self.time),
            cpu: part(fixed, self.cpu),
            period: part(fixed, self.period),
        }
    }

    #[inline(never)]
    fn varying_parts<'a>(&self, mut cursor: Cursor<'a>) -> Option<VaryingParts<'a>> {
        let mut parts = VaryingParts::default();
        if let Some(format) = self.read_format {
            skip_read(&mut cursor, format)?;
        }
        if self.callchain {
            let count = cursor.u64()?;
            parts.callchain = cursor.take(entries(count, 8)?)?;
        }
        if self.raw {
            parts.raw = cursor.raw()?;
        }
        if let Some(branch_type) = self.branch_stack {
            skip_branch_stack(&mut cursor, branch_type)?;
        }
        if let Some(len) = self.regs {
            parts.regs_abi = cursor.u64()?;
            if parts.regs_abi != 0 {
                parts.regs = cursor.take(len)?;
            }
        }
        if self.stack {
            let size = cursor.u64()?;
            if size != 0 {
                let whole = cursor.take(usize::try_from(size).ok()?)?;
                let copied = usize::try_from(cursor.u64()?).ok()?;
                parts.stack = whole.get(..copied)?;
            }
        }
        Some(parts)
    }
}

#[inline]
fn part(fixed: &[u8], field: Field) -> u64 {
    field
        .and_then(|offset| fixed.get(usize::from(offset)..)?.first_chunk::<8>())
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn entries(count: u64, size: usize) -> Option<usize> {
    usize::try_from(count).ok()?.checked_mul(size)
}

/// `struct read_format`.
fn skip_read(cursor: &mut Cursor<'_>, format: u64) -> Option<()> {
    const TOTAL_TIMES: u64 = 0b11;
    const ID: u64 = 1 << 2;
    const GROUP: u64 = 1 << 3;
    const LOST: u64 = 1 << 4;
    let times = 8 * (format & TOTAL_TIMES).count_ones() as usize;
    let others = 8 * (format & (ID | LOST)).count_ones() as usize;
    if format & GROUP == 0 {
        return cursor.take(8 + times + others).map(drop);
    }
    let values = entries(cursor.u64()?, 8 + others)?;
    cursor.take(times)?;
    cursor.take(values).map(drop)
}

/// Count 8, hardware index 8 if asked for, three words an entry, counters 8 an entry if asked for.
fn skip_branch_stack(cursor: &mut Cursor<'_>, branch_type: u64) -> Option<()> {
    const HW_INDEX: u64 = 1 << 17;
    const COUNTERS: u64 = 1 << 19;
    let count = cursor.u64()?;
    if branch_type & HW_INDEX != 0 {
        cursor.u64()?;
    }
    let words = if branch_type & COUNTERS == 0 { 3 } else { 4 };
    cursor.take(entries(count, 8 * words)?)?;
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn every_part_is_found() {
        let attr = Attr {
            sample_type: SampleType(0x1_3fff & !SampleType::READ.0),
            sample_regs_user: 0b1011,
            ..Attr::default()
        };
        let mut body = words(&[7, 0x1000, 3 | 4 << 32, 99, 0, 7, 0, 5 | 34 << 32, 1]);
        body.extend(words(&[2, 0xaaaa, 0xbbbb]));
        body.extend([4, 0, 0, 0, b'r', b'a', b'w', b'!']);
        body.extend(words(&[1, 1, 2, 3]));
        body.extend(words(&[2, 10, 11, 12]));
        body.extend(words(&[16, 100, 200, 8]));
        let sample = SampleLayout::new(&attr).parse(&body).unwrap();
        assert_eq!((sample.id, sample.ip, sample.time), (7, 0x1000, 99));
        assert_eq!((sample.pid, sample.tid, sample.cpu), (3, 4, 5));
        assert_eq!(sample.uid(), Some(33));
        assert_eq!(Sample::default().uid(), None);
        assert_eq!(sample.period, 1);
        assert_eq!(sample.callchain, words(&[0xaaaa, 0xbbbb]));
        assert_eq!(sample.raw, b"raw!");
        assert_eq!(sample.regs_abi, 2);
        assert_eq!(sample.regs, words(&[10, 11, 12]));
        assert_eq!(sample.stack, words(&[100]));
        for len in 0..body.len() {
            let cut = SampleLayout::new(&attr).parse(&body[..len]);
            assert!(cut.is_none(), "a sample of {len} bytes is too short");
        }
    }

    /// The parts that most samples have are found faster than others, at the same places.
    #[test]
    fn what_most_samples_have_is_found() {
        let usual = SampleType::IDENTIFIER
            | SampleType::IP
            | SampleType::TID
            | SampleType::TIME
            | SampleType::CPU;
        let start = [7, 0x1000, 3 | 4 << 32, 99, 5 | 34 << 32];
        let cases = [
            (usual, 0, false),
            (usual | SampleType::RAW, 0, true),
            (usual | SampleType::RAW | SampleType::PERIOD, 21, true),
        ];
        for (kind, period, has_raw) in cases {
            let attr = Attr {
                sample_type: kind,
                ..Attr::default()
            };
            let layout = SampleLayout::new(&attr);
            let mut body = words(&start);
            if period > 0 {
                body.extend(words(&[period]));
            }
            let raw_at = body.len() + 4;
            if has_raw {
                body.extend([4, 0, 0, 0, b'r', b'a', b'w', b'!']);
            }
            assert!(layout.fits(&body));
            let sample = layout.parse(&body).unwrap();
            assert_eq!((sample.id, sample.ip, sample.time), (7, 0x1000, 99));
            assert_eq!((sample.pid, sample.tid, sample.cpu), (3, 4, 5));
            assert_eq!((sample.uid(), sample.period), (Some(33), period));
            let raw: &[u8] = if has_raw { b"raw!" } else { b"" };
            assert_eq!(sample.raw, raw);
            assert_eq!(layout.raw_offset(), has_raw.then_some(raw_at));
            assert_eq!(
                (layout.tid_offset(), layout.time_offset()),
                (Some(16), Some(24))
            );
            for len in 0..body.len() {
                assert!(!layout.fits(&body[..len]), "{len} bytes are too short");
            }
        }
    }

    #[test]
    fn counts_that_do_not_fit_are_refused() {
        let attr = Attr {
            sample_type: SampleType::CALLCHAIN,
            ..Attr::default()
        };
        for count in [3, u64::MAX, u64::MAX / 8 + 1] {
            let body = words(&[count, 1, 2]);
            assert!(SampleLayout::new(&attr).parse(&body).is_none(), "{count}");
        }
    }

    #[test]
    fn the_group_read_is_skipped() {
        let attr = Attr {
            sample_type: SampleType::READ | SampleType::RAW,
            read_format: 0b1_1111,
            ..Attr::default()
        };
        let mut body = words(&[2, 50, 60, 1, 2, 3, 4, 5, 6]);
        body.extend([4, 0, 0, 0, 1, 2, 3, 4]);
        let sample = SampleLayout::new(&attr).parse(&body).unwrap();
        assert_eq!(sample.raw, [1, 2, 3, 4]);
    }
}
