//! Operands of a site: a place is drawn, the registers that lead there are loaded, and what is there is known.

use usdtrec_testing::SplitMix64;

use super::program::{AREA, BELOW, FRAME, Shape, Site, TLS};

/// What must be decoded.
#[derive(Debug)]
pub(super) struct Truth {
    /// As the note has it.
    pub(super) operand: String,
    pub(super) width: Width,
    /// Whether registers and stack need not be enough.
    pub(super) in_memory: bool,
}

/// A value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Width {
    Integer(i128),
    Single(f32),
    Double(f64),
    /// Of more than 8 bytes, the lowest 8.
    Wide(u64),
}

/// Size, sign and kind of an operand: the part before its `@`.
#[derive(Clone, Copy, Debug)]
struct Prefix {
    bytes: usize,
    signed: bool,
    float: bool,
}

impl Prefix {
    fn random(random: &mut SplitMix64, memory: bool) -> Self {
        match random.below(if memory { 12 } else { 8 }) {
            8 | 9 => Self {
                bytes: random.choose(&[4, 8]),
                signed: false,
                float: true,
            },
            10 => Self {
                bytes: random.choose(&[16, 24, 40]),
                signed: false,
                float: false,
            },
            _ => Self {
                bytes: random.choose(&[1, 2, 4, 8]),
                signed: random.below(2) == 0,
                float: false,
            },
        }
    }

    fn text(self) -> String {
        let sign = if self.signed { "-" } else { "" };
        let float = if self.float { "f" } else { "" };
        format!("{sign}{}{float}", self.bytes)
    }

    /// The value whose lowest bytes are these.
    fn truncate(self, bits: u64) -> Width {
        let unused = 64 - 8 * self.bytes.min(8) as u32;
        let cut = bits << unused >> unused;
        match (self.float, self.bytes, self.signed) {
            (true, 4, _) => Width::Single(f32::from_bits(cut as u32)),
            (true, ..) => Width::Double(f64::from_bits(cut)),
            (_, 9.., _) => Width::Wide(bits),
            (_, _, true) => Width::Integer(((bits << unused).cast_signed() >> unused).into()),
            (_, _, false) => Width::Integer(cut.into()),
        }
    }

    fn of_bytes(self, bytes: &[u8]) -> Width {
        let mut word = [0; 8];
        let len = self.bytes.min(8);
        word[..len].copy_from_slice(&bytes[..len]);
        self.truncate(u64::from_le_bytes(word))
    }
}

impl Site<'_> {
    /// Draws an operand; `None` if registers are left too few.
    pub(super) fn operand(&mut self, random: &mut SplitMix64) -> Option<Truth> {
        match random.below(12) {
            0 => Some(self.constant(random)),
            1..=3 => self.register(random),
            4 | 5 => Some(self.stack(random)),
            6 => Some(self.symbol(random)),
            7 | 8 => self.thread_local(random),
            9 if self.shape.is_fixed() => self.table(random),
            _ => self.memory(random),
        }
    }

    fn constant(&mut self, random: &mut SplitMix64) -> Truth {
        let prefix = Prefix::random(random, false);
        let (any, bits) = (random.number() as i64, random.below(64));
        let number = random.choose(&[0, 1, -1, any, any >> bits]);
        Truth {
            operand: format!("{}@${number}", prefix.text()),
            width: prefix.truncate(number.cast_unsigned()),
            in_memory: false,
        }
    }

    fn register(&mut self, random: &mut SplitMix64) -> Option<Truth> {
        let mut prefix = Prefix::random(random, false);
        if prefix.bytes > self.shape.word() {
            prefix.bytes = self.shape.word();
        }
        let (register, value) = self.value_register(random)?;
        let mut name = self.shape.names(register).full.to_owned();
        let mut bits = value;
        // By the part's name, or by the whole register's.
        if random.below(3) > 0 {
            let names = self.shape.names(register);
            name = match prefix.bytes {
                1 if names.high.is_some() && random.below(3) == 0 => {
                    bits >>= 8;
                    names.high.unwrap_or(names.full).to_owned()
                }
                1 => names.byte.unwrap_or(names.full).to_owned(),
                2 => names.half.to_owned(),
                4 => names.word.to_owned(),
                _ => names.full.to_owned(),
            };
        }
        Some(Truth {
            operand: format!("{}@%{name}", prefix.text()),
            width: prefix.truncate(bits),
            in_memory: false,
        })
    }

    /// On the stack, above and below its pointer.
    fn stack(&mut self, random: &mut SplitMix64) -> Truth {
        let prefix = Prefix::random(random, true);
        let at = random.between(-(BELOW as i64), (FRAME - BELOW - 48) as i64);
        let start = (BELOW as i64 + at) as usize;
        let image = &self.area[start..];
        let (register, at) = match self.frame_pointer {
            Some(distance) if random.below(2) == 0 => (self.shape.frame(), at - distance),
            _ => (self.shape.stack(), at),
        };
        Truth {
            operand: format!(
                "{}@{}(%{register})",
                prefix.text(),
                displacement(at, random)
            ),
            width: prefix.of_bytes(image),
            in_memory: true,
        }
    }

    /// At a symbol, relative to the instruction where the machine can.
    fn symbol(&mut self, random: &mut SplitMix64) -> Truth {
        let prefix = Prefix::random(random, true);
        let (start, image) = self.target(random, AREA);
        let width = prefix.of_bytes(image);
        let place = sum("area", start, random);
        let ip = if self.shape.word() == 8 { "(%rip)" } else { "" };
        Truth {
            operand: format!("{}@{place}{ip}", prefix.text()),
            width,
            in_memory: true,
        }
    }

    /// In the thread's storage, perhaps with a base and an index.
    fn thread_local(&mut self, random: &mut SplitMix64) -> Option<Truth> {
        let prefix = Prefix::random(random, true);
        let start = random.below((TLS - 48) as u64) as i64;
        let width = prefix.of_bytes(&self.tls[start as usize..]);
        let (registers, offset) = self.registers(random, None, start)?;
        let place = sum(
            &format!("slots@{}", self.shape.thread_relocation()),
            offset,
            random,
        );
        let segment = self.shape.segment();
        Some(Truth {
            operand: format!("{}@%{segment}:{place}{registers}", prefix.text()),
            width,
            in_memory: true,
        })
    }

    /// `area+8(%rax,%rbx,2)`.
    fn table(&mut self, random: &mut SplitMix64) -> Option<Truth> {
        let prefix = Prefix::random(random, true);
        let (start, image) = self.target(random, AREA);
        let width = prefix.of_bytes(image);
        let (registers, offset) = self.registers(random, None, start)?;
        if registers.is_empty() {
            return None;
        }
        let place = sum("area", offset, random);
        Some(Truth {
            operand: format!("{}@{place}{registers}", prefix.text()),
            width,
            in_memory: true,
        })
    }

    /// `-8(%rax,%rbx,4)`.
    fn memory(&mut self, random: &mut SplitMix64) -> Option<Truth> {
        let prefix = Prefix::random(random, true);
        let (start, image) = self.target(random, AREA);
        let width = prefix.of_bytes(image);
        let (registers, offset) = self.registers(random, Some("area"), start)?;
        Some(Truth {
            operand: format!(
                "{}@{}{registers}",
                prefix.text(),
                displacement(offset, random)
            ),
            width,
            in_memory: true,
        })
    }

    fn target(&self, random: &mut SplitMix64, len: usize) -> (i64, &[u8]) {
        let start = random.below((len - 48) as u64);
        (start as i64, &self.area[start as usize..])
    }

    /// Loads a base and an index so that they and the returned offset lead to `start`. The base counts from a symbol, if one is
    /// given; it is there then.
    fn registers(
        &mut self,
        random: &mut SplitMix64,
        symbol: Option<&'static str>,
        start: i64,
    ) -> Option<(String, i64)> {
        let (near, far) = (random.between(-300, 300), random.between(-100_000, 100_000));
        let offset = random.choose(&[0, near, far]);
        let mut left = start - offset;
        let form = if symbol.is_some() {
            random.choose(&[1, 3])
        } else {
            random.below(4)
        };
        let mut index_text = String::new();
        if form & 2 != 0 {
            let scale = random.choose(&[1, 2, 4, 8]);
            let index = if form == 2 && left % scale == 0 {
                left / scale
            } else {
                random.between(-40, 40)
            };
            left -= index * scale;
            let register = self.load_number(random, index)?;
            // A scale of 1 may be left out.
            let scale = match scale {
                1 if random.below(2) == 0 => String::new(),
                scale => format!(",{scale}"),
            };
            index_text = format!(",%{register}{scale}");
        }
        if form & 1 == 0 {
            // Without a base, the offset has the rest.
            let text = if form == 0 {
                String::new()
            } else {
                format!("({index_text})")
            };
            return Some((text, offset + left));
        }
        let register = match symbol {
            Some(symbol) => self.load_address(random, symbol, left)?,
            None => self.load_number(random, left)?,
        };
        Some((format!("(%{register}{index_text})"), offset))
    }
}

/// A displacement; that of 0 may be left out.
fn displacement(offset: i64, random: &mut SplitMix64) -> String {
    match offset {
        0 if random.below(2) == 0 => String::new(),
        offset => offset.to_string(),
    }
}

/// A symbol and an offset, as compilers write them.
fn sum(symbol: &str, offset: i64, random: &mut SplitMix64) -> String {
    match offset {
        0 => symbol.to_owned(),
        offset if random.below(2) == 0 => format!("{offset}+{symbol}"),
        offset => format!("{symbol}{offset:+}"),
    }
}

impl Shape {
    fn stack(self) -> &'static str {
        if self.word() == 8 { "rsp" } else { "esp" }
    }

    /// The register that compilers use as frame pointer.
    pub(super) fn frame(self) -> &'static str {
        if self.word() == 8 { "rbp" } else { "ebp" }
    }

    fn segment(self) -> &'static str {
        if self.word() == 8 { "fs" } else { "gs" }
    }

    fn thread_relocation(self) -> &'static str {
        if self.word() == 8 { "tpoff" } else { "ntpoff" }
    }
}
