//! The numbers of groups, an array that is mapped into memory.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use usdtrec_decode::IntegerShape;
use usdtrec_format::NumberBucket;
use usdtrec_kernel::bpf::sys;

use super::super::kernel_objects::MappedWords;
use super::number_layout::{DURATION, Measured};
use super::number_layout::{NumberLayout, RANK_OF_ZERO, Word};
use crate::aggregation::{BucketCount, NumberEnds, NumberTotals};

/// The numbers of groups.
#[derive(Debug)]
pub(super) struct GroupNumbers {
    descriptor: OwnedFd,
    words: MappedWords,
    layout: NumberLayout,
    /// Number of groups that have room.
    groups: u32,
    /// The extremes since the start of numbers with a histogram, by group and place: no bucket beyond them is read.
    ends: Mutex<HashMap<(usize, usize), NumberEnds>>,
    /// The groups with constants at the last reading.
    constants: Mutex<CountsBefore>,
}

/// The counts of groups at the last reading, by their places among the numbers: programs write no extremes of constants.
#[derive(Debug, Default)]
struct CountsBefore(HashMap<u64, u64>);

/// A group whose numbers are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountedGroup {
    /// Its place among the numbers.
    pub(super) number: u64,
    /// Number of its hits.
    pub(super) count: u64,
}

impl GroupNumbers {
    /// An array for so many groups.
    ///
    /// # Errors
    /// The error of bpf(2) or `mmap(2)`.
    pub(super) fn new(layout: &NumberLayout, groups: u32) -> io::Result<Self> {
        let descriptor = sys::create_array(layout.bytes(), groups)?;
        let words = groups as usize * layout.bytes() as usize / 8;
        Ok(Self {
            words: MappedWords::new(descriptor.as_fd(), words)?,
            descriptor,
            layout: layout.clone(),
            groups,
            ends: Mutex::default(),
            constants: Mutex::default(),
        })
    }

    /// Size of the array, bytes.
    pub(super) fn bytes(&self) -> usize {
        self.groups as usize * self.layout.bytes() as usize
    }

    /// What the numbers of each measured argument of a group add up to, with the extremes since the last call; `None` if the group has no room.
    pub(super) fn totals(
        &self,
        group: CountedGroup,
        measured: &[Measured],
    ) -> Vec<Option<NumberTotals>> {
        let is_constant = |measured: &Measured| matches!(measured, Measured::Constant(_));
        let was_hit = measured.iter().any(is_constant) && self.was_hit(group);
        let totals = measured.iter().enumerate();
        totals
            .map(|(place, measured)| match measured {
                Measured::Missing => Some(NumberTotals::default()),
                Measured::Unknown => None,
                Measured::Constant(number) => {
                    let all = self.of_constant(place, *number, group.count);
                    Some(NumberTotals {
                        ends: all.ends.filter(|_| was_hit),
                        ..all
                    })
                }
                Measured::Read(field) => self.of_field(place, field.shape, group),
                Measured::Duration => self.of_duration(place, group),
                Measured::Part => self.of_field(place, DURATION, group),
            })
            .collect()
    }

    /// Whether a group with constants was hit since the last call for it.
    fn was_hit(&self, group: CountedGroup) -> bool {
        let before = self.constants.lock();
        let mut before = before.unwrap_or_else(PoisonError::into_inner);
        before.advance(group)
    }

    /// The numbers of a constant, with the extremes since the start.
    fn of_constant(&self, place: usize, number: i128, count: u64) -> NumberTotals {
        let histogram = self.layout.histogram(place);
        let bucket = histogram.map(|_| BucketCount {
            bucket: NumberBucket::from_number(number),
            count,
        });
        NumberTotals {
            count,
            sum: number * i128::from(count),
            ends: Some(NumberEnds {
                min: number,
                max: number,
            }),
            buckets: bucket.into_iter().collect(),
            unbucketed: 0,
        }
    }

    /// The numbers of durations, without buckets.
    fn of_duration(&self, place: usize, group: CountedGroup) -> Option<NumberTotals> {
        let totals = self.of_field(place, DURATION, group)?;
        Some(NumberTotals {
            count: group.count,
            unbucketed: group.count - totals.count,
            ..totals
        })
    }

    fn of_field(
        &self,
        place: usize,
        shape: IntegerShape,
        CountedGroup { number, count }: CountedGroup,
    ) -> Option<NumberTotals> {
        let number = u32::try_from(number).ok();
        let number = number.filter(|number| *number < self.groups)? as usize;
        let first = number * self.layout.bytes() as usize;
        let word = |word: Word| first + NumberLayout::word_at(place, word) as usize;
        let sum = |at: usize| i128::from(self.load(at)) + (i128::from(self.load(at + 8)) << 64);
        let ends = Ranks {
            least: self.take(word(Word::Least)),
            greatest: self.take(word(Word::Greatest)),
        };
        let ends = ends.numbers(shape.signed);
        let buckets = self.layout.histogram(place).map(|buckets| {
            let first = first + self.layout.buckets_at(place) as usize;
            let all = self.ends_since_start((number, place), ends)?;
            Some(buckets.filled(all, |bucket| self.load(first + 8 * bucket as usize)))
        });
        Some(NumberTotals {
            count: count.saturating_sub(self.load(word(Word::Missing))),
            sum: sum(word(Word::Positive)) - sum(word(Word::Negative)),
            ends,
            buckets: buckets.flatten().unwrap_or_default(),
            unbucketed: 0,
        })
    }

    /// The extremes since the start of the numbers at a place of a group, given those since the last reading; `None` if there was no number. A hit
    /// changes them before it is counted.
    fn ends_since_start(&self, of: (usize, usize), ends: Option<NumberEnds>) -> Option<NumberEnds> {
        let mut known = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let all = NumberEnds::of_both(known.get(&of).copied(), ends)?;
        known.insert(of, all);
        Some(all)
    }

    /// The word at an offset.
    fn load(&self, offset: usize) -> u64 {
        let word = self.words.get(offset / 8);
        word.map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// The word at an offset, which is 0 from now on. A program that raises it has either done so before, or does it afterwards.
    fn take(&self, offset: usize) -> u64 {
        let word = self.words.get(offset / 8);
        word.map_or(0, |word| word.swap(0, Ordering::AcqRel))
    }
}

impl AsFd for GroupNumbers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl CountsBefore {
    /// Whether the count of a group is greater than at the last call for it.
    fn advance(&mut self, CountedGroup { number, count }: CountedGroup) -> bool {
        count > self.0.insert(number, count).unwrap_or(0)
    }
}

/// The words of the extremes.
#[derive(Clone, Copy, Debug)]
struct Ranks {
    least: u64,
    greatest: u64,
}

impl Ranks {
    /// The extremes; `None` if there was no number. If they are read between the changes of both by a hit, what the one is is the other. Hits raise the
    /// greatest first, and the recorder takes the least first: of two hits that are being counted meanwhile, the greater one can be the least that is taken, and
    /// the other one the greatest.
    fn numbers(self, signed: bool) -> Option<NumberEnds> {
        let number = |rank: u64| match signed {
            true => i128::from((rank ^ RANK_OF_ZERO).cast_signed()),
            false => i128::from(rank),
        };
        let (least, greatest) = (!self.least, self.greatest);
        let (least, greatest) = match (self.least, self.greatest) {
            (0, 0) => return None,
            (0, _) if least > greatest => (greatest, greatest),
            (_, 0) if least > greatest => (least, least),
            _ => (least.min(greatest), least.max(greatest)),
        };
        Some(NumberEnds {
            min: number(least),
            max: number(greatest),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_are_known_as_soon_as_one_is() {
        let ends = |least: u64, greatest: u64, signed: bool| {
            let ends = Ranks { least, greatest }.numbers(signed);
            ends.map(|ends| (ends.min, ends.max))
        };
        let all = i128::from(u64::MAX);
        assert_eq!(ends(0, 0, false), None);
        assert_eq!(ends(!0, 0, false), Some((0, 0)));
        assert_eq!(ends(0, u64::MAX, false), Some((all, all)));
        assert_eq!(ends(!3, 9, false), Some((3, 9)));
        assert_eq!(ends(!3, 0, false), Some((3, 3)));
        assert_eq!(ends(0, 9, false), Some((9, 9)));
        assert_eq!(ends(!10, 5, false), Some((5, 10)));
        let rank = |number: i64| number.cast_unsigned() ^ RANK_OF_ZERO;
        let (low, high) = (rank(i64::MIN), rank(i64::MAX));
        let both = (i64::MIN.into(), i64::MAX.into());
        assert_eq!(ends(!low, high, true), Some(both));
        assert_eq!(ends(!rank(-1), rank(-1), true), Some((-1, -1)));
        assert_eq!(ends(!rank(3), rank(-4), true), Some((-4, 3)));
    }

    #[test]
    fn constants_are_extremes_only_after_a_hit() {
        let mut before = CountsBefore::default();
        let mut advance = |number, count| before.advance(CountedGroup { number, count });
        assert!(!advance(7, 0), "a group that is added, and not counted yet");
        assert!(advance(7, 3));
        assert!(advance(8, 3), "another group");
        assert!(!advance(7, 3));
        assert!(advance(7, 4));
    }
}
