//! A value as a fetch argument: a register, or memory at one. The recorder evaluates what follows the last read of memory.

use usdtrec_format::{Arch, Register};

use crate::fetch_limit::FetchLimit;
use crate::plan::read::{Address, Chain, Read, Source, Start, Step};

/// Number of bytes that the kernel reads for an address in memory (`unsigned long`).
const WORD: u8 = 8;

/// Maximum length of a fetch argument without its name, bytes (`MAX_ARGSTR_LEN`, kernel/trace/trace_probe.h).
const MOST: usize = 63;

/// A value of a hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fetch {
    base: Base,
    /// Reads of memory, each at the address that the one before it read.
    loads: Vec<Load>,
    /// Operations after the last read.
    rest: Vec<Step>,
    /// Whether the program's addresses have 32 bits.
    narrow: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Base {
    /// A register, by its name, and the first bit.
    Register(&'static str, u8),
    Number(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Load {
    offset: i64,
    bytes: u8,
    signed: bool,
}

impl Fetch {
    /// Plans how to fetch a value.
    ///
    /// # Errors
    /// What fetch arguments cannot express.
    pub(super) fn of(read: &Read, arch: Arch) -> Result<Self, FetchLimit> {
        let cut = Step::Cut {
            bytes: read.size,
            signed: read.signed,
        };
        let value = match &read.source {
            &Source::Register { register, from } => {
                let base = Base::Register(name(arch, register)?, 8 * from);
                Self::new(base, arch).then(cut)
            }
            Source::Number(number) => Self::new(Base::Number(*number), arch).then(cut),
            Source::Address(address) => Self::address_of(address, arch)?.then(cut),
            Source::Memory(address) => {
                Self::address_of(address, arch)?.load(read.size, read.signed)?
            }
            Source::Computed(chain) => Self::of_chain(chain, arch)?.then(cut),
        };
        Ok(value)
    }

    fn new(base: Base, arch: Arch) -> Self {
        Self {
            base,
            loads: Vec::new(),
            rest: Vec::new(),
            narrow: arch.pointer_size() == 4,
        }
    }

    fn of_chain(chain: &Chain, arch: Arch) -> Result<Self, FetchLimit> {
        let start = match &chain.start {
            Start::Argument(read) => Self::of(read, arch)?,
            Start::Pid | Start::Tid | Start::Cpu => {
                return Err(FetchLimit::Identity);
            }
        };
        chain
            .steps
            .iter()
            .try_fold(start, |value, step| match *step {
                Step::Load { bytes, signed } => value.load(bytes, signed),
                step => Ok(value.then(step)),
            })
    }

    fn address_of(address: &Address, arch: Arch) -> Result<Self, FetchLimit> {
        let Address {
            thread,
            base,
            index,
            offset,
        } = *address;
        if thread {
            return Err(FetchLimit::ThreadStorage);
        }
        let register = match (base, index) {
            (Some(base), None) => base,
            (None, Some((index, 1))) => index,
            (None, None) => return Err(FetchLimit::ConstantAddress),
            _ => return Err(FetchLimit::TwoRegisters),
        };
        let base = Base::Register(name(arch, register)?, 0);
        Ok(Self::new(base, arch).then(Step::Add(offset)))
    }

    fn then(mut self, step: Step) -> Self {
        let nothing = match step {
            Step::Add(number) => number == 0,
            Step::Cut { bytes, .. } => bytes == WORD,
            _ => false,
        };
        if !nothing {
            self.rest.push(step);
        }
        self
    }

    fn load(mut self, bytes: u8, signed: bool) -> Result<Self, FetchLimit> {
        let offset = self.offset()?;
        self.rest.clear();
        self.loads.push(Load {
            offset,
            bytes,
            signed,
        });
        Ok(self)
    }

    /// The offset that is added to the value to get an address.
    fn offset(&self) -> Result<i64, FetchLimit> {
        if matches!(self.base, Base::Number(_)) && self.loads.is_empty() {
            return Err(FetchLimit::ConstantAddress);
        }
        if let Some(load) = self.loads.last().filter(|load| load.bytes != WORD) {
            return Err(FetchLimit::NarrowAddress {
                bytes: load.bytes,
                word: WORD,
            });
        }
        let mut offset = 0_i64;
        for step in &self.rest {
            match step {
                Step::Add(number) => offset = offset.wrapping_add(*number),
                // The upper halves of a 32-bit program's registers are 0, and higher addresses are unmapped.
                Step::Cut {
                    bytes: 4,
                    signed: false,
                } if self.narrow => {}
                _ => {
                    return Err(FetchLimit::ComputedAddress);
                }
            }
        }
        Ok(offset)
    }

    /// The fetch argument of the word, and its size in bytes; `None` for a constant.
    ///
    /// # Errors
    /// The argument is too long for the kernel.
    pub(super) fn word(&self) -> Result<Option<(String, u8)>, FetchLimit> {
        if matches!(self.base, Base::Number(_)) {
            return Ok(None);
        }
        let bytes = self.loads.last().map_or(WORD, |load| load.bytes);
        let word = format!("{}:u{}", self.place(&self.loads), 8 * u32::from(bytes));
        fitting(word).map(|word| Some((word, bytes)))
    }

    /// The fetch argument that shows whether the word could be read: a text that begins at its last byte, which has no bytes if the word is
    /// unreadable. `None` if no read can fail.
    ///
    /// # Errors
    /// As [`word`](Self::word).
    pub(super) fn guard(&self) -> Result<Option<String>, FetchLimit> {
        self.guard_of(self.loads.len())
    }

    /// As [`guard`](Self::guard), for the address of the word, if that is in memory. The text is short, because the highest byte of an
    /// address is 0.
    ///
    /// # Errors
    /// As [`word`](Self::word).
    pub(super) fn guard_of_address(&self) -> Result<Option<String>, FetchLimit> {
        self.guard_of(self.loads.len().saturating_sub(1))
    }

    fn guard_of(&self, loads: usize) -> Result<Option<String>, FetchLimit> {
        let loads = self.loads.get(..loads).unwrap_or_default();
        let Some((last, before)) = loads.split_last() else {
            return Ok(None);
        };
        let end = last.offset.wrapping_add(i64::from(last.bytes) - 1);
        fitting(format!("{end:+}({}):string", self.place(before))).map(Some)
    }

    /// The fetch argument of the text at the address in the value.
    ///
    /// # Errors
    /// What fetch arguments cannot express.
    pub(super) fn text(&self) -> Result<String, FetchLimit> {
        let offset = self.offset()?;
        fitting(format!("{offset:+}({}):string", self.place(&self.loads)))
    }

    fn place(&self, loads: &[Load]) -> String {
        let Base::Register(name, _) = self.base else {
            return String::new();
        };
        let register = format!("%{name}");
        loads.iter().fold(register, |inner, load| {
            format!("{:+}({inner})", load.offset)
        })
    }

    /// Computes the value from the word that was fetched.
    pub(super) fn finish(&self, word: u64) -> u64 {
        let begin = match (&self.base, self.loads.last()) {
            (_, Some(load)) => cut(word, load.bytes, load.signed),
            (Base::Register(_, from), None) => word >> from,
            (Base::Number(number), None) => *number,
        };
        self.rest.iter().fold(begin, |value, step| match *step {
            Step::Add(number) => value.wrapping_add_signed(number),
            Step::And(mask) => value & mask,
            Step::Cut { bytes, signed } => cut(value, bytes, signed),
            // Loads are in `loads`, and ranks in filters only.
            Step::Load { .. } | Step::Rank(_) => value,
        })
    }
}

/// The lowest bytes as a number.
fn cut(value: u64, bytes: u8, signed: bool) -> u64 {
    let unused = 64 - 8 * u32::from(bytes.clamp(1, 8));
    if signed {
        ((value << unused).cast_signed() >> unused).cast_unsigned()
    } else {
        value << unused >> unused
    }
}

fn fitting(argument: String) -> Result<String, FetchLimit> {
    if argument.len() > MOST {
        return Err(FetchLimit::TooLong {
            argument,
            most: MOST,
        });
    }
    Ok(argument)
}

/// The kernel's name of a register.
fn name(arch: Arch, register: Register) -> Result<&'static str, FetchLimit> {
    let name = arch.fetch_name(register);
    name.ok_or_else(|| FetchLimit::Register(arch.register_name(register).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DI: u8 = 5;

    fn register(perf: u8, size: u8, signed: bool) -> Read {
        let register = (0..200_u8)
            .map(Register)
            .find(|register| Arch::X86_64.perf_register(*register) == Some(perf))
            .unwrap();
        Read {
            source: Source::Register { register, from: 0 },
            size,
            signed,
            pointer: false,
        }
    }

    fn chain(start: Read, steps: &[Step]) -> Read {
        Read {
            source: Source::Computed(Box::new(Chain {
                signed: start.signed,
                start: Start::Argument(start),
                steps: steps.to_vec(),
            })),
            size: 8,
            signed: false,
            pointer: false,
        }
    }

    fn load(bytes: u8, signed: bool) -> Step {
        Step::Load { bytes, signed }
    }

    #[test]
    fn pointers_are_followed_as_the_kernel_writes_it() {
        let di = || register(DI, 8, false);
        let steps = [Step::Add(8), load(8, false), Step::Add(-16)];
        let text = Fetch::of(&chain(di(), &steps), Arch::X86_64).unwrap();
        assert_eq!(text.text().unwrap(), "-16(+8(%di)):string");
        assert_eq!(text.word().unwrap().unwrap().0, "+8(%di):u64");
        assert_eq!(text.guard().unwrap().unwrap(), "+15(%di):string");
        assert_eq!(text.guard_of_address().unwrap(), None);
        let steps = [&steps[..], &[load(2, true)]].concat();
        let deep = Fetch::of(&chain(di(), &steps), Arch::X86_64).unwrap();
        let guards = [deep.guard(), deep.guard_of_address()].map(|guard| guard.unwrap().unwrap());
        assert_eq!(guards, ["-15(+8(%di)):string", "+15(%di):string"]);
        assert_eq!(text.finish(100), 84);
        let plain = Fetch::of(&di(), Arch::X86_64).unwrap();
        assert_eq!(plain.text().unwrap(), "+0(%di):string");
        assert_eq!(plain.word().unwrap(), Some(("%di:u64".to_owned(), 8)));
        assert_eq!(plain.guard().unwrap(), None);
    }

    #[test]
    fn signs_and_cuts_are_worked_out_behind_the_last_load() {
        let steps = [load(4, true), Step::Add(-1), Step::And(0xff00)];
        let di = register(DI, 8, false);
        let value = Fetch::of(&chain(di, &steps), Arch::X86_64).unwrap();
        assert_eq!(
            value.word().unwrap().unwrap(),
            ("+0(%di):u32".to_owned(), 4)
        );
        assert_eq!(value.finish(0xffff_ffff), 0xff00, "-1 - 1 = …fffe");
        let byte = Fetch::of(&register(DI, 1, true), Arch::X86_64).unwrap();
        assert_eq!(byte.finish(0x1280), (-128_i64).cast_unsigned());
    }

    #[test]
    fn what_the_kernel_cannot_do_has_words() {
        let of = |read: Read, steps: &[Step]| Fetch::of(&chain(read, steps), Arch::X86_64);
        let di = || register(DI, 8, false);
        let narrow = of(di(), &[load(4, false), load(4, false)]);
        let limit = FetchLimit::NarrowAddress { bytes: 4, word: 8 };
        assert_eq!(narrow, Err(limit));
        let masked = of(di(), &[Step::And(!7), load(4, false)]);
        assert_eq!(masked, Err(FetchLimit::ComputedAddress));
        assert!(of(register(DI, 4, false), &[load(1, false)]).is_err());
        let deep = of(di(), &[load(8, false); 20]).unwrap();
        let long = deep.word().unwrap_err();
        assert!(matches!(long, FetchLimit::TooLong { most: 63, .. }));
        assert!(deep.text().is_err() && deep.guard().is_err());
    }
}
