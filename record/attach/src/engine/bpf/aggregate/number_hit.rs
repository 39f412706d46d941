//! Programs that add the numbers of a hit to those of its group.
//!
//! The program of another hit can run meanwhile, on this CPU or another one. Sums and counts are added to atomically. The extremes are raised
//! by compare-and-exchange: a try fails only if another hit has raised the word since it was read. Where the programs of each CPU have groups of their
//! own ([`Grouping::is_of_cpu`]), no other hit can, and words are read and written.

use usdtrec_decode::IntegerShape;
use usdtrec_format::{NumberBucket, RawField};
use usdtrec_kernel::bpf::insn::{Assembler, Helper, If, Map, Op, Reg, Width};

use super::super::control;
use super::super::program::builder::Program;
use super::super::slots;
use super::durations::count_in_bucket;
use super::group_map::ELEMENT_NUMBER;
use super::grouping::Grouping;
use super::number_layout::Buckets;
use super::number_layout::{DURATION, Measured, MeasuredField};
use super::number_layout::{NumberLayout, RANK_OF_ZERO, Word};

/// Maximum number of tries to raise an extreme. If all fail, it is counted that an extreme may be wrong.
const MAX_TRIES: i64 = 64;
/// The bit of [`RawLayout::missing`](usdtrec_format::RawLayout) that all further arguments share.
const SHARED_BIT: u8 = 31;

impl Program<'_> {
    /// Copies the numbers of the key in the slot to the words after it.
    pub(super) fn take_numbers(&mut self, grouping: &Grouping) {
        let fields = measured_fields(self.spec.measured);
        let fields: Vec<(usize, MeasuredField)> = fields.collect();
        for (place, MeasuredField { field, shape, .. }) in fields {
            // slot->numbers[place] = shape.signed ? (sN)key->field : (uN)key->field;
            self.get(Width::from_bytes(shape.bytes), Reg::R1, field.offset);
            let unused = 64 - 8 * i32::from(shape.bytes);
            if shape.signed && unused > 0 {
                self.asm.extend(Reg::R1, unused, true);
            }
            let to = grouping.number_at(place);
            self.asm.store(Width::Double, Reg::R7, to, Reg::R1);
        }
    }

    /// Writes zeros to what is in the key in the slot and is no key: measured numbers, and what spans are matched by.
    pub(super) fn clear_others(&mut self) {
        let measured = measured_fields(self.spec.measured).map(|(_, measured)| measured);
        let measured = measured.filter(|measured| !measured.is_key);
        let of_spans = self.spec.role.map_or(&[][..], |role| &role.others);
        let others = measured.map(|measured| measured.field);
        let others: Vec<RawField> = others.chain(of_spans.iter().copied()).collect();
        let mut faults = 0;
        for field in &others {
            // key->field = 0;
            self.put_value(Width::from_bytes(field.size), field.offset, 0);
            let own = field.fault.filter(|bit| *bit < SHARED_BIT);
            faults |= own.map_or(0, |bit| 1_i32 << bit);
        }
        for string in others.iter().filter_map(|field| field.string) {
            // string->status = 0; memset(string, 0, the part that is compared);
            self.put_value(Width::Half, string.status, 0);
            self.clear_string(string);
        }
        if let (Some(missing), true) = (self.spec.layout.missing, faults != 0) {
            // key->missing = unread & ~faults;
            self.asm.copy(Reg::R1, Reg::R8);
            self.asm.op_value(Op::And, Reg::R1, !faults);
            self.put(Width::Word, missing, Reg::R1);
        }
    }

    /// Adds the numbers of the hit to those of the group, whose element is at `R0` before and after it. The hit is counted afterwards: a reader that
    /// reads the count first finds the numbers of all hits that it has.
    pub(in crate::engine::bpf) fn add_numbers(&mut self, grouping: &Grouping) {
        if grouping.numbers.is_empty() {
            return;
        }
        let (asm, spec) = (&mut self.asm, self.spec);
        let no_room = asm.label();
        // NEW_GROUP = group; KEY = group->number;
        asm.store(Width::Double, Reg::R10, slots::NEW_GROUP, Reg::R0);
        asm.load(Width::Double, Reg::R1, Reg::R0, ELEMENT_NUMBER);
        asm.store(Width::Word, Reg::R10, slots::KEY, Reg::R1);
        // numbers = bpf_map_lookup_elem(&GroupNumbers, &KEY); if (!numbers) goto no_room;
        asm.call_map(Helper::MapLookup, Map::GroupNumbers, slots::KEY);
        asm.jump_if(If::Equal, Reg::R0, 0, no_room);
        asm.copy(Reg::R9, Reg::R0);
        for (place, measured) in spec.measured.iter().enumerate() {
            if *measured == Measured::Duration {
                AddNumber {
                    asm: &mut self.asm,
                    place,
                    shape: DURATION,
                    grouping,
                }
                .add_duration();
            }
            if *measured == Measured::Part {
                self.add_part(grouping, place);
            }
            if let Measured::Read(field) = measured {
                let (missing, added) = (self.asm.label(), self.asm.label());
                // if (unread >> bit & 1) goto missing;
                if let Some(bit) = field.field.fault {
                    self.if_unreadable(bit, missing);
                }
                AddNumber {
                    asm: &mut self.asm,
                    place,
                    shape: field.shape,
                    grouping,
                }
                .add();
                if field.field.fault.is_some() {
                    // goto added; missing: __sync_fetch_and_add(&numbers[place].Missing, 1);
                    self.asm.jump(added);
                    self.asm.place(missing);
                    count_missing(&mut self.asm, place);
                }
                self.asm.place(added);
            }
        }
        let asm = &mut self.asm;
        // no_room: r0 = NEW_GROUP;
        asm.place(no_room);
        asm.load(Width::Double, Reg::R0, Reg::R10, slots::NEW_GROUP);
    }
}

impl Program<'_> {
    /// Adds a part of the time of a span, or counts that it is not known. `R9` is the address of the group's numbers, `R7` that of the slot.
    fn add_part(&mut self, grouping: &Grouping, place: usize) {
        let (unknown, added) = (self.asm.label(), self.asm.label());
        let number = grouping.number_at(place);
        self.asm.load(Width::Double, Reg::R3, Reg::R7, number);
        // `ThreadWaits::UNKNOWN`, sign-extended.
        self.asm.jump_if(If::Equal, Reg::R3, -1, unknown);
        AddNumber {
            asm: &mut self.asm,
            place,
            shape: DURATION,
            grouping,
        }
        .add_without_bucket();
        // goto added; unknown: __sync_fetch_and_add(&numbers[place].Missing, 1);
        self.asm.jump(added);
        self.asm.place(unknown);
        count_missing(&mut self.asm, place);
        self.asm.place(added);
    }
}

/// Counts that a number of a hit is not known. `R9` is the address of the group's numbers.
fn count_missing(asm: &mut Assembler, place: usize) {
    let word = NumberLayout::word_at(place, Word::Missing);
    asm.address(Reg::R1, Reg::R9, word.cast_signed());
    asm.increment(Reg::R1);
}

/// The fields of measured arguments, with their places among these.
fn measured_fields(measured: &[Measured]) -> impl Iterator<Item = (usize, MeasuredField)> + '_ {
    let measured = measured.iter().enumerate();
    measured.filter_map(|(place, measured)| match measured {
        Measured::Read(field) => Some((place, *field)),
        Measured::Constant(_)
        | Measured::Missing
        | Measured::Duration
        | Measured::Part
        | Measured::Unknown => None,
    })
}

/// Adds a number to those of a group. `R9` is the address of the group's numbers, `R7` that of the slot, `R3` the number.
struct AddNumber<'a> {
    asm: &'a mut Assembler,
    /// Place of the measured argument.
    place: usize,
    shape: IntegerShape,
    grouping: &'a Grouping,
}

impl AddNumber<'_> {
    fn add(mut self) {
        self.add_without_bucket();
        if let Some(buckets) = self.grouping.numbers.histogram(self.place) {
            self.count(buckets);
        }
    }

    /// Adds a duration, whose histogram is in another map.
    fn add_duration(mut self) {
        self.add_without_bucket();
        self.bucket(None);
        count_in_bucket(self.asm, self.place);
    }

    fn add_without_bucket(&mut self) {
        let number = self.grouping.number_at(self.place);
        // r3 = slot->numbers[place];
        self.asm.load(Width::Double, Reg::R3, Reg::R7, number);
        self.sum();
        let asm = &mut *self.asm;
        // r2 = signed ? r3 ^ RANK_OF_ZERO : r3; raise(Greatest, r2); raise(Least, ~r2);
        asm.copy(Reg::R2, Reg::R3);
        if self.shape.signed {
            asm.set(Reg::R1, RANK_OF_ZERO.cast_signed());
            asm.op(Op::Xor, Reg::R2, Reg::R1);
        }
        self.raise(Word::Greatest);
        self.asm.op_value(Op::Xor, Reg::R2, -1);
        self.raise(Word::Least);
    }

    /// Adds the number to the sum of those with its sign.
    fn sum(&mut self) {
        let asm = &mut *self.asm;
        let (positive, summed) = (asm.label(), asm.label());
        if self.shape.signed {
            // if ((s64)r3 < 0) { add_to(Negative, -r3); goto summed; }
            asm.jump_if(If::AtLeastSigned, Reg::R3, 0, positive);
            asm.set(Reg::R1, 0);
            asm.op(Op::Sub, Reg::R1, Reg::R3);
            self.add_to(Word::Negative);
            self.asm.jump(summed);
        }
        let asm = &mut *self.asm;
        // positive: add_to(Positive, r3);
        asm.place(positive);
        asm.copy(Reg::R1, Reg::R3);
        self.add_to(Word::Positive);
        self.asm.place(summed);
    }

    /// Adds `R1` to a sum of two words.
    fn add_to(&mut self, word: Word) {
        let at = NumberLayout::word_at(self.place, word) as i16;
        let asm = &mut *self.asm;
        let fits = asm.label();
        // r2 = r1;
        asm.copy(Reg::R2, Reg::R1);
        if self.grouping.is_of_cpu() {
            // r1 = numbers->word; r2 += r1; numbers->word = r2;
            asm.load(Width::Double, Reg::R1, Reg::R9, at);
            asm.op(Op::Add, Reg::R2, Reg::R1);
            asm.store(Width::Double, Reg::R9, at, Reg::R2);
        } else {
            // r1 = __sync_fetch_and_add(&numbers->word, r1); r2 += r1;
            asm.atomic_fetch_add(Reg::R9, at, Reg::R1);
            asm.op(Op::Add, Reg::R2, Reg::R1);
        }
        // The sum is less than what was there only if it has wrapped around.
        // if (r2 < r1) __sync_fetch_and_add(&numbers->word + 1, 1);
        asm.jump_if_reg(If::AtLeast, Reg::R2, Reg::R1, fits);
        asm.set(Reg::R1, 1);
        asm.atomic_add(Reg::R9, at + 8, Reg::R1);
        asm.place(fits);
    }

    /// Raises a word to `R2`, if it is less. `R2` and `R3` stay.
    fn raise(&mut self, word: Word) {
        let at = NumberLayout::word_at(self.place, word) as i16;
        let asm = &mut *self.asm;
        let (again, raised) = (asm.label(), asm.label());
        // r0 = numbers->word;
        asm.load(Width::Double, Reg::R0, Reg::R9, at);
        if self.grouping.is_of_cpu() {
            // if (r0 < r2) numbers->word = r2;
            asm.jump_if_reg(If::AtLeast, Reg::R0, Reg::R2, raised);
            asm.store(Width::Double, Reg::R9, at, Reg::R2);
            return asm.place(raised);
        }
        // r4 = MAX_TRIES; do { if (r0 >= r2) goto raised; r5 = r0; r0 = cmpxchg(&numbers->word, r5, r2);
        // if (r0 == r5) goto raised; } while (--r4);
        asm.set(Reg::R4, MAX_TRIES);
        asm.place(again);
        asm.jump_if_reg(If::AtLeast, Reg::R0, Reg::R2, raised);
        asm.copy(Reg::R5, Reg::R0);
        asm.compare_exchange(Reg::R9, at, Reg::R2);
        asm.jump_if_reg(If::Equal, Reg::R0, Reg::R5, raised);
        asm.op_value(Op::Sub, Reg::R4, 1);
        asm.jump_if(If::NotEqual, Reg::R4, 0, again);
        // __sync_fetch_and_add(&FirstControl[UNRAISED], 1);
        asm.set_map_value(Reg::R1, Map::FirstControl, control::UNRAISED);
        asm.set(Reg::R5, 1);
        asm.atomic_add(Reg::R1, 0, Reg::R5);
        asm.place(raised);
    }

    /// Counts the number in its bucket.
    fn count(&mut self, buckets: Buckets) {
        let counted = self.asm.label();
        self.bucket(Some(buckets));
        let asm = &mut *self.asm;
        // if (r5 >= buckets.all()) goto counted; __sync_fetch_and_add(&numbers->buckets[r5], 1);
        asm.jump_if(If::AtLeast, Reg::R5, buckets.all().cast_signed(), counted);
        asm.op_value(Op::ShiftLeft, Reg::R5, 3);
        let first = self.grouping.numbers.buckets_at(self.place);
        asm.address(Reg::R1, Reg::R9, first.cast_signed());
        asm.op(Op::Add, Reg::R1, Reg::R5);
        asm.increment(Reg::R1);
        asm.place(counted);
    }

    /// `R5` = the place of the number's bucket among these; those of negative numbers come last.
    fn bucket(&mut self, buckets: Option<Buckets>) {
        let bits = 8 * u32::from(self.shape.bytes) - u32::from(self.shape.signed);
        let asm = &mut *self.asm;
        // r2 = r3; r4 = 0; if (signed && (s64)r3 < 0) { r2 = ~r3; r4 = upper; }
        asm.copy(Reg::R2, Reg::R3);
        asm.set(Reg::R4, 0);
        if self.shape.signed {
            let positive = asm.label();
            asm.jump_if(If::AtLeastSigned, Reg::R3, 0, positive);
            asm.op_value(Op::Xor, Reg::R2, -1);
            let upper = buckets.map_or(0, |buckets| buckets.upper);
            asm.set(Reg::R4, upper.into());
            asm.place(positive);
        }
        // r5 = 0; for each shift of 32, 16, …, 1: if (r2 >= 1 << (SUB_BITS + shift)) { r2 >>= shift; r5 += shift; }
        asm.set(Reg::R5, 0);
        for shift in [32, 16, 8, 4, 2, 1] {
            // At least so large, it keeps the bits that make the bucket.
            let least = NumberBucket::SUB_BITS + shift;
            if least < bits {
                let less = asm.label();
                asm.set(Reg::R1, 1 << least);
                asm.jump_if_reg(If::Below, Reg::R2, Reg::R1, less);
                asm.op_value(Op::ShiftRight, Reg::R2, shift.cast_signed());
                asm.op_value(Op::Add, Reg::R5, shift.cast_signed());
                asm.place(less);
            }
        }
        // r5 = (r5 << SUB_BITS) + r2 + r4; slot->bucket = r5; r5 = slot->bucket;
        asm.op_value(Op::ShiftLeft, Reg::R5, NumberBucket::SUB_BITS.cast_signed());
        asm.op(Op::Add, Reg::R5, Reg::R2);
        asm.op(Op::Add, Reg::R5, Reg::R4);
        // From memory it is a number of which the verifier knows nothing: it need not follow each way to it on.
        let bucket = self.grouping.bucket_at();
        asm.store(Width::Double, Reg::R7, bucket, Reg::R5);
        asm.load(Width::Double, Reg::R5, Reg::R7, bucket);
    }
}
