//! How long a thread has waited: three sums that each hit of `record --off-cpu` carries.
//!
//! Programs at `sched_switch` and `sched_waking` add up, for each thread that has had a hit, how long it was off the CPUs since its first one. What lies
//! between two hits of a thread is the difference of their sums: hits happen on a CPU, so no wait is cut.
//!
//! | part | from | to |
//! |---|---|---|
//! | runnable | it is woken, or is preempted | it is on a CPU |
//! | iowait | it leaves the CPU with `in_iowait` set: block I/O, pages of files | it is woken |
//! | blocked | it leaves the CPU for another reason: a lock, a timer, a socket, a stop signal | it is woken |
//!
//! Of the bpf engine's samples, the raw part has [`ThreadWaits::BYTES`] bytes at the layout's offset
//! ([`RawLayout::thread_waits`](crate::RawLayout)): three `u64`, ns, in the order of [`ThreadWaits::NAMES`];
//! [`ThreadWaits::UNKNOWN`] in each if the thread had no room in the map.
//!
//! Kernels were seen (6.18) that do not call `sched_switch` at one switch in some thousands. The programs find that: a thread arrives that has not left, or is
//! on a CPU and has not arrived. Its sums lack that wait. The highest bytes of the first two words count such waits, so that nobody subtracts sums between
//! which there was one.

/// How long a thread has been off the CPUs since its first hit, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadWaits {
    /// It could have run, and waited for a CPU.
    pub runnable: u64,
    /// It waited for a disk, or for what the kernel counts as such.
    pub iowait: u64,
    /// It waited for something else.
    pub blocked: u64,
    /// Number of waits that are not in the sums, because the kernel did not report a switch: the lowest 16 bits.
    pub missed: u16,
}

/// Bits of a word that are time: 2.3 years.
const TIME_BITS: u32 = 56;

impl ThreadWaits {
    /// Size in the raw part, bytes.
    pub const BYTES: u16 = 24;
    /// Names of the fields, in the order of the raw part.
    pub const NAMES: [&'static str; 3] = ["runnable", "iowait", "blocked"];
    /// Each word of a hit whose thread's waits are not known.
    pub const UNKNOWN: u64 = u64::MAX;
    /// What a missed wait adds to the word of I/O waits; where that overflows, to that of runnable threads.
    pub const MISSED: u64 = 1 << TIME_BITS;

    /// Decodes the sums at an offset of the raw part; `None` if they are not known, or the raw part is too short.
    #[must_use]
    #[inline]
    pub fn decode(raw: &[u8], offset: u16) -> Option<Self> {
        let bytes = raw.get(offset.into()..)?;
        let (words, _) = bytes.get(..Self::BYTES.into())?.as_chunks();
        let [runnable, iowait, blocked] = *words else {
            return None;
        };
        let [runnable, iowait, blocked] =
            [runnable, iowait, blocked].map(|word: [u8; 8]| u64::from_le_bytes(word));
        let is_known = [runnable, iowait, blocked]
            .iter()
            .all(|word| *word != Self::UNKNOWN);
        let time = |word| word & (Self::MISSED - 1);
        let count = |word| (word >> TIME_BITS) as u16;
        is_known.then_some(Self {
            runnable: time(runnable),
            iowait: time(iowait),
            blocked,
            missed: count(runnable) << 8 | count(iowait),
        })
    }

    /// What was added since an earlier hit of the thread; `None` if a sum is smaller, which those of one thread never are. Both must have missed the same waits.
    #[must_use]
    #[inline]
    pub fn since(self, earlier: Self) -> Option<Self> {
        Some(Self {
            runnable: self.runnable.checked_sub(earlier.runnable)?,
            iowait: self.iowait.checked_sub(earlier.iowait)?,
            blocked: self.blocked.checked_sub(earlier.blocked)?,
            missed: 0,
        })
    }

    /// All three together; `None` if that is too much for 64 bits.
    #[must_use]
    #[inline]
    pub fn total(self) -> Option<u64> {
        self.runnable
            .checked_add(self.iowait)?
            .checked_add(self.blocked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(words: [u64; 3]) -> Vec<u8> {
        let words = words.map(u64::to_le_bytes);
        [&[9; 8][..], words.as_flattened()].concat()
    }

    #[test]
    fn sums_are_read_in_their_order() {
        let waits = ThreadWaits {
            runnable: 1,
            iowait: 2,
            blocked: 1 << 40,
            missed: 0,
        };
        assert_eq!(ThreadWaits::decode(&raw([1, 2, 1 << 40]), 8), Some(waits));
        assert_eq!(waits.total(), Some(3 + (1 << 40)));
    }

    #[test]
    fn missed_waits_are_no_time() {
        let missed = |count: u64| {
            let words = [1 | (count >> 8) << 56, 2 | count << 56, 3];
            ThreadWaits::decode(&raw(words), 8).map(|waits| (waits.total(), waits.missed))
        };
        for count in [0, 1, 255, 256, 0xffff] {
            assert_eq!(missed(count), Some((Some(6), count as u16)));
        }
    }

    #[test]
    fn what_is_unknown_or_cut_is_none() {
        for unknown in [[u64::MAX, 0, 0], [0, u64::MAX, 0], [0, 0, u64::MAX]] {
            assert_eq!(ThreadWaits::decode(&raw(unknown), 8), None);
        }
        let whole = raw([1, 2, 3]);
        for len in 0..whole.len() {
            assert_eq!(ThreadWaits::decode(&whole[..len], 8), None, "{len}");
        }
        assert_eq!(ThreadWaits::decode(&whole, u16::MAX), None);
    }

    #[test]
    fn sums_of_a_thread_never_fall() {
        let [early, late] = [[1, 2, 3], [1, 5, 9]].map(|[runnable, iowait, blocked]| ThreadWaits {
            runnable,
            iowait,
            blocked,
            missed: 0,
        });
        let between = ThreadWaits {
            runnable: 0,
            iowait: 3,
            blocked: 6,
            missed: 0,
        };
        assert_eq!(late.since(early), Some(between));
        assert_eq!(early.since(late), None);
    }
}
