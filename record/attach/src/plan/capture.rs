//! What to capture for each operand if a program in the kernel can read registers and memory.

use usdtrec_format::{Arch, Constant, IndexedAddress, Location, Operand, Register, Relocation};

use super::read::{Address, Read, Source};
use super::symbols::{NotCaptured, Symbols};

/// How one argument is had at a hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Capture {
    /// The value is in the note.
    Constant,
    /// Not available, with the reason.
    Nothing(NotCaptured),
    /// It is read.
    Value(Read),
}

impl Capture {
    /// The same, of which no string is read unless the argument is declared as one.
    pub(crate) fn without_string(self) -> Self {
        match self {
            Self::Value(read) => Self::Value(Read {
                pointer: false,
                ..read
            }),
            other => other,
        }
    }
}

/// Least address that can be of a string: below it nothing is mapped (`vm.mmap_min_addr`).
pub(crate) const MIN_POINTER: u64 = 1 << 16;

/// The site that the operands belong to.
pub(crate) struct CaptureSite<'a> {
    pub arch: Arch,
    /// Link-time address of the site.
    pub pc: u64,
    pub symbols: &'a Symbols,
    /// Whether a register is available at a hit.
    pub has_register: &'a dyn Fn(Register) -> bool,
    /// Whether the base of thread-local storage is available.
    pub has_thread: bool,
}

impl CaptureSite<'_> {
    /// How to get an operand's value.
    pub(crate) fn capture(&self, operand: &Operand) -> Capture {
        match self.try_capture(operand) {
            Ok(capture) => capture,
            Err(reason) => Capture::Nothing(reason),
        }
    }

    fn try_capture(&self, operand: &Operand) -> Result<Capture, NotCaptured> {
        let word = self.arch.pointer_size();
        let size = operand.bytes(self.arch);
        match (&operand.location, operand.float) {
            (Location::Constant(Constant::Integer(number)), false) => {
                return Ok(self.number(operand, *number));
            }
            (Location::Constant(_) | Location::ConstantExpression(_), _) => {
                return Ok(Capture::Constant);
            }
            (Location::Unparsed { text, error }, _) => {
                let (text, error) = (text.clone(), error.clone());
                return Err(NotCaptured::Unparsed { text, error });
            }
            (_, true) if !matches!(size, 4 | 8) => return Err(NotCaptured::FloatSize(size)),
            (_, false) if !matches!(size, 1 | 2 | 4 | 8..) => {
                return Err(NotCaptured::Size(size));
            }
            _ => {}
        }
        let mut read = Read {
            source: Source::Number(0),
            // Of a wider value, its lowest bytes.
            size: size.min(8),
            signed: operand.is_signed() && !operand.float,
            pointer: size == word && !operand.is_signed() && !operand.float,
        };
        read.source = match &operand.location {
            &Location::Register {
                register,
                width,
                shift,
                pair,
            } => {
                self.register(register)?;
                let halves = pair || size > word;
                if operand.float && size > width && !halves {
                    return Err(NotCaptured::FloatInRegister { size, width });
                }
                if halves {
                    // The lower half is all that the note names.
                    read = Read {
                        size: word,
                        signed: false,
                        pointer: false,
                        ..read
                    };
                }
                read.size = read.size.min(width);
                read.pointer &= read.size == word;
                Source::Register {
                    register,
                    from: shift / 8,
                }
            }
            Location::GotDeref { symbol, offset, .. }
            | Location::SymbolAddress { symbol, offset } => {
                Source::Address(self.near(self.symbols.bound(symbol)?, *offset)?)
            }
            location => Source::Memory(self.address(location)?),
        };
        Ok(Capture::Value(read))
    }

    /// A constant, which may be a string's address where a program is linked to a fixed one.
    fn number(&self, operand: &Operand, number: i64) -> Capture {
        let word = self.arch.pointer_size();
        let number = number.cast_unsigned();
        let may_point = operand.size == Some(word)
            && operand.signed == Some(false)
            && self.symbols.is_fixed()
            && self.symbols.maps(number);
        if !may_point {
            return Capture::Constant;
        }
        Capture::Value(Read {
            source: Source::Number(number),
            size: word,
            signed: false,
            pointer: true,
        })
    }

    /// The address of an operand that is in memory, of any size; `None` if it is not in memory, or not available.
    pub(crate) fn address_of(&self, operand: &Operand) -> Option<Address> {
        match operand.location {
            Location::RegisterDeref { .. }
            | Location::Indexed(_)
            | Location::SymbolDeref { .. }
            | Location::SymbolIndexed { .. }
            | Location::Absolute { .. }
            | Location::Segment { .. } => self.address(&operand.location).ok(),
            _ => None,
        }
    }

    fn address(&self, location: &Location) -> Result<Address, NotCaptured> {
        match location {
            Location::RegisterDeref { register, offset } => Ok(Address {
                base: Some(self.register(*register)?),
                offset: *offset,
                ..Address::default()
            }),
            Location::Absolute { address } => Ok(Address {
                offset: *address,
                ..Address::default()
            }),
            Location::Indexed(indexed) => self.indexed(indexed),
            Location::SymbolDeref { reloc, .. } | Location::SymbolIndexed { reloc, .. }
                if is_thread_local(reloc.as_ref()) =>
            {
                let address = self.of_thread(location)?;
                // Without a segment, a register holds the base.
                match (address.base, address.index) {
                    (None, None) => Err(NotCaptured::NoThreadBase),
                    _ => Ok(address),
                }
            }
            Location::SymbolDeref {
                symbol,
                offset,
                register,
                reloc,
            } => {
                let address = self.symbol(symbol, *offset)?;
                match register {
                    Some(register) if reloc.is_none() && *register != Register::PROGRAM_COUNTER => {
                        self.added(address, *register)
                    }
                    _ => Ok(address),
                }
            }
            Location::SymbolIndexed {
                symbol,
                address,
                reloc,
            } => self.symbol_indexed(symbol, address, reloc.as_ref()),
            Location::Segment { segment, inner } => self.thread(segment, inner),
            _ => Err(NotCaptured::Operand),
        }
    }

    fn indexed(&self, indexed: &IndexedAddress) -> Result<Address, NotCaptured> {
        if indexed.extend.is_some() {
            return Err(NotCaptured::WidenedIndex);
        }
        let base = indexed.register.map(|base| self.register(base));
        let index = match indexed.scale {
            0 => None,
            scale => Some((self.register(indexed.index)?, scale)),
        };
        Ok(Address {
            thread: false,
            base: base.transpose()?,
            index,
            offset: indexed.offset,
        })
    }

    /// An address near a symbol: as far from the site as they were linked.
    fn symbol(&self, symbol: &str, offset: i64) -> Result<Address, NotCaptured> {
        self.near(self.symbols.value(symbol)?, offset)
    }

    fn near(&self, value: u64, offset: i64) -> Result<Address, NotCaptured> {
        Ok(Address {
            base: Some(self.register(Register::PROGRAM_COUNTER)?),
            offset: offset.wrapping_add(value.wrapping_sub(self.pc).cast_signed()),
            ..Address::default()
        })
    }

    fn added(&self, address: Address, register: Register) -> Result<Address, NotCaptured> {
        Ok(Address {
            index: Some((self.register(register)?, 1)),
            ..address
        })
    }

    /// `symbol(base,index,scale)`.
    fn symbol_indexed(
        &self,
        symbol: &str,
        address: &IndexedAddress,
        reloc: Option<&Relocation>,
    ) -> Result<Address, NotCaptured> {
        let registers = self.indexed(address)?;
        let value = self.symbols.value(symbol)?;
        let from = |start: u64| Address {
            offset: address
                .offset
                .wrapping_add(value.wrapping_sub(start).cast_signed()),
            ..registers
        };
        let near = || -> Result<Address, NotCaptured> {
            Ok(Address {
                index: registers.index,
                ..self.near(value, address.offset)?
            })
        };
        match (registers.base, reloc, self.symbols.got()) {
            (None, None, _) => near(),
            // It does not matter which of the registers has the address of the GOT.
            (_, Some(_), Some(got)) => Ok(from(got)),
            (_, Some(_), None) if registers.index.is_some_and(|(_, scale)| scale != 1) => near(),
            (Some(_), None, _) if self.symbols.is_fixed() => Ok(from(0)),
            _ => Err(NotCaptured::TwoRegisters(symbol.to_owned())),
        }
    }

    fn thread(&self, segment: &'static str, inner: &Location) -> Result<Address, NotCaptured> {
        let is_base = self.arch.thread_segment() == Some(segment);
        if !(self.has_thread && is_base) {
            return Err(NotCaptured::Segment(segment));
        }
        let within = match inner {
            Location::SymbolDeref { reloc, .. } | Location::SymbolIndexed { reloc, .. }
                if is_thread_local(reloc.as_ref()) =>
            {
                self.of_thread(inner)?
            }
            other => self.address(other)?,
        };
        Ok(Address {
            thread: true,
            ..within
        })
    }

    /// A thread-local symbol's offset from the thread's base, and the registers that are added.
    fn of_thread(&self, location: &Location) -> Result<Address, NotCaptured> {
        let (symbol, reloc, within) = match location {
            Location::SymbolDeref {
                symbol,
                offset,
                register,
                reloc: Some(reloc),
            } => {
                let base = register.map(|base| self.register(base)).transpose()?;
                let offset = *offset;
                let within = Address {
                    base,
                    offset,
                    ..Address::default()
                };
                (symbol, reloc, within)
            }
            Location::SymbolIndexed {
                symbol,
                address,
                reloc: Some(reloc),
            } => (symbol, reloc, self.indexed(address)?),
            _ => return Err(NotCaptured::Operand),
        };
        // The other relocations count from elsewhere, or upwards.
        let from_base = self.arch.thread_relocation();
        let counts_from_base = from_base.is_some_and(|name| reloc.0.eq_ignore_ascii_case(name));
        if !counts_from_base {
            return Err(NotCaptured::ThreadRelocation {
                symbol: symbol.clone(),
                relocation: reloc.0.clone(),
            });
        }
        Ok(Address {
            offset: within
                .offset
                .wrapping_add(self.symbols.thread_offset(symbol)?),
            ..within
        })
    }

    fn register(&self, register: Register) -> Result<Register, NotCaptured> {
        if (self.has_register)(register) {
            Ok(register)
        } else {
            let name = self.arch.register_name(register);
            Err(NotCaptured::Register(name))
        }
    }
}

fn is_thread_local(reloc: Option<&Relocation>) -> bool {
    reloc.is_some_and(Relocation::is_thread_local)
}
