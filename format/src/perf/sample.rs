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
#[derive(Clone, Debug)]
pub struct SampleLayout {
    id: Field,
    ip: Field,
    tid: Field,
    time: Field,
    cpu: Field,
    period: Field,
    /// Total size of the parts of fixed length, bytes.
    fixed: usize,
    read_format: Option<u64>,
    callchain: bool,
    raw: bool,
    /// `branch_sample_type`.
    branch_stack: Option<u64>,
    /// Size of the registers if the sample has them, bytes.
    regs: Option<usize>,
    stack: bool,
}

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
    /// Period; of samples without one, the count that they read first (`PERF_SAMPLE_READ`).
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
    /// Whether it is the first in the kernel, or in user space: where execution goes on. All others are return addresses, or addresses in calls.
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
        Self {
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

    /// Parses a sample's body, without the record header; `None` if it is shorter than the attr requires.
    // Inlined, a sample is never copied: it is as large as two cache lines.
    #[must_use]
    #[inline(always)]
    pub fn parse<'a>(&self, body: &'a [u8]) -> Option<Sample<'a>> {
        let (fixed, varying) = body.split_at_checked(self.fixed)?;
        let cpu = part(fixed, self.cpu);
        let mut sample = Sample {
            id: part(fixed, self.id),
            ip: part(fixed, self.ip),
            pid: -1,
            tid: -1,
            time: part(fixed, self.time),
            cpu: cpu as u32,
            user: (cpu >> 32) as u32,
            period: part(fixed, self.period),
            ..Sample::default()
        };
        if self.tid.is_some() {
            let ids = part(fixed, self.tid);
            sample.pid = ids as i32;
            sample.tid = (ids >> 32) as i32;
        }
        self.parse_varying(Cursor::new(varying), &mut sample)?;
        Some(sample)
    }

    #[inline(always)]
    fn parse_varying<'a>(&self, mut cursor: Cursor<'a>, sample: &mut Sample<'a>) -> Option<()> {
        if let Some(format) = self.read_format {
            let value = read_value(&mut cursor, format)?;
            if self.period.is_none() {
                sample.period = value;
            }
        }
        if self.callchain {
            let count = cursor.u64()?;
            sample.callchain = cursor.take(entries(count, 8)?)?;
        }
        if self.raw {
            let len = cursor.u32()?;
            sample.raw = cursor.take(len as usize)?;
        }
        if let Some(branch_type) = self.branch_stack {
            skip_branch_stack(&mut cursor, branch_type)?;
        }
        if let Some(len) = self.regs {
            sample.regs_abi = cursor.u64()?;
            if sample.regs_abi != 0 {
                sample.regs = cursor.take(len)?;
            }
        }
        if self.stack {
            let size = cursor.u64()?;
            if size != 0 {
                let whole = cursor.take(usize::try_from(size).ok()?)?;
                let copied = usize::try_from(cursor.u64()?).ok()?;
                sample.stack = whole.get(..copied)?;
            }
        }
        Some(())
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

/// `struct read_format`; its first value, 0 if there is none.
fn read_value(cursor: &mut Cursor<'_>, format: u64) -> Option<u64> {
    const TOTAL_TIMES: u64 = 0b11;
    const ID: u64 = 1 << 2;
    const GROUP: u64 = 1 << 3;
    const LOST: u64 = 1 << 4;
    let times = 8 * (format & TOTAL_TIMES).count_ones() as usize;
    let others = 8 * (format & (ID | LOST)).count_ones() as usize;
    if format & GROUP == 0 {
        let value = cursor.u64()?;
        cursor.take(times + others)?;
        return Some(value);
    }
    let values = entries(cursor.u64()?, 8 + others)?;
    cursor.take(times)?;
    let values = cursor.take(values)?;
    let first = values.first_chunk::<8>();
    Some(first.map_or(0, |value| u64::from_le_bytes(*value)))
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
