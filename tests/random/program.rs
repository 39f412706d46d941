//! A program in assembly: sites with known registers, stack, memory and thread-local storage.

use std::fmt::Write as _;

use usdtrec_testing::SplitMix64;

use super::operand::Truth;

/// Bytes of known memory.
pub(super) const AREA: usize = 2048;
/// Bytes of known thread-local storage.
pub(super) const TLS: usize = 512;
/// Bytes of known stack, and how many of them are below its pointer.
pub(super) const FRAME: usize = 640;
pub(super) const BELOW: usize = 128;
/// Sites of a program.
const SITES: usize = 40;
/// Arguments of a site at most.
const ARGUMENTS: u64 = 8;

/// How a program is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Pie,
    Fixed,
    Static,
    StaticPie,
    Narrow,
    NarrowFixed,
}

/// A register's names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    pub(super) full: &'static str,
    pub(super) word: &'static str,
    pub(super) half: &'static str,
    pub(super) byte: Option<&'static str>,
    pub(super) high: Option<&'static str>,
}

const fn names(
    full: &'static str,
    word: &'static str,
    half: &'static str,
    byte: &'static str,
    high: Option<&'static str>,
) -> Names {
    Names {
        full,
        word,
        half,
        byte: Some(byte),
        high,
    }
}

const WIDE: [Names; 15] = [
    names("rax", "eax", "ax", "al", Some("ah")),
    names("rbx", "ebx", "bx", "bl", Some("bh")),
    names("rcx", "ecx", "cx", "cl", Some("ch")),
    names("rdx", "edx", "dx", "dl", Some("dh")),
    names("rsi", "esi", "si", "sil", None),
    names("rdi", "edi", "di", "dil", None),
    names("r8", "r8d", "r8w", "r8b", None),
    names("r9", "r9d", "r9w", "r9b", None),
    names("r10", "r10d", "r10w", "r10b", None),
    names("r11", "r11d", "r11w", "r11b", None),
    names("r12", "r12d", "r12w", "r12b", None),
    names("r13", "r13d", "r13w", "r13b", None),
    names("r14", "r14d", "r14w", "r14b", None),
    names("r15", "r15d", "r15w", "r15b", None),
    names("rbp", "ebp", "bp", "bpl", None),
];

const fn narrow(
    full: &'static str,
    half: &'static str,
    byte: Option<&'static str>,
    high: Option<&'static str>,
) -> Names {
    Names {
        full,
        word: full,
        half,
        byte,
        high,
    }
}

const NARROW: [Names; 7] = [
    narrow("eax", "ax", Some("al"), Some("ah")),
    narrow("ebx", "bx", Some("bl"), Some("bh")),
    narrow("ecx", "cx", Some("cl"), Some("ch")),
    narrow("edx", "dx", Some("dl"), Some("dh")),
    narrow("esi", "si", None, None),
    narrow("edi", "di", None, None),
    narrow("ebp", "bp", None, None),
];

impl Shape {
    pub(super) fn options(self) -> &'static [&'static str] {
        match self {
            Self::Pie => &["-pie"],
            Self::Fixed => &["-no-pie"],
            Self::Static => &["-static"],
            Self::StaticPie => &["-static-pie"],
            Self::Narrow => &["-m32", "-pie"],
            Self::NarrowFixed => &["-m32", "-no-pie"],
        }
    }

    /// Bytes of a register.
    pub(super) fn word(self) -> usize {
        match self {
            Self::Narrow | Self::NarrowFixed => 4,
            _ => 8,
        }
    }

    pub(super) fn is_fixed(self) -> bool {
        matches!(self, Self::Fixed | Self::Static | Self::NarrowFixed)
    }

    fn all_names(self) -> &'static [Names] {
        if self.word() == 8 { &WIDE } else { &NARROW }
    }

    pub(super) fn names(self, register: usize) -> Names {
        self.all_names()[register]
    }
}

/// What a register is loaded with.
#[derive(Clone, Debug)]
enum Content {
    Value(u64),
    /// So many bytes from a symbol.
    Address(&'static str, i64),
    /// So many bytes from the stack pointer.
    Frame(i64),
}

/// A site as it is drawn.
pub(super) struct Site<'a> {
    pub(super) shape: Shape,
    pub(super) area: &'a [u8],
    pub(super) tls: &'a [u8],
    /// How far the frame pointer is above the stack pointer, where there is one.
    pub(super) frame_pointer: Option<i64>,
    registers: Vec<Option<Content>>,
}

impl<'a> Site<'a> {
    fn new(shape: Shape, area: &'a [u8], tls: &'a [u8], random: &mut SplitMix64) -> Self {
        let mut site = Self {
            shape,
            area,
            tls,
            frame_pointer: None,
            registers: vec![None; shape.all_names().len()],
        };
        if random.below(2) == 0 {
            let distance = 8 * random.between(0, 60);
            site.frame_pointer = Some(distance);
            // The last one is the frame pointer.
            if let Some(last) = site.registers.last_mut() {
                *last = Some(Content::Frame(distance));
            }
        }
        site
    }

    fn free(&self, random: &mut SplitMix64) -> Option<usize> {
        let free: Vec<usize> = (0..self.registers.len())
            .filter(|&at| self.registers[at].is_none())
            .collect();
        (!free.is_empty()).then(|| random.choose(&free))
    }

    fn load(&mut self, random: &mut SplitMix64, content: Content) -> Option<usize> {
        let register = self.free(random)?;
        self.registers[register] = Some(content);
        Some(register)
    }

    /// Loads a register with a number; its name.
    pub(super) fn load_number(
        &mut self,
        random: &mut SplitMix64,
        number: i64,
    ) -> Option<&'static str> {
        let register = self.load(random, Content::Value(number.cast_unsigned()))?;
        Some(self.shape.names(register).full)
    }

    /// Loads a register with an address; its name.
    pub(super) fn load_address(
        &mut self,
        random: &mut SplitMix64,
        symbol: &'static str,
        offset: i64,
    ) -> Option<&'static str> {
        let register = self.load(random, Content::Address(symbol, offset))?;
        Some(self.shape.names(register).full)
    }

    /// A register with a random value, loaded for this or for another operand.
    pub(super) fn value_register(&mut self, random: &mut SplitMix64) -> Option<(usize, u64)> {
        let value = random.number();
        let register = self.load(random, Content::Value(value))?;
        Some((register, value))
    }

    /// The instructions that load the registers.
    fn loads(&self) -> String {
        let mut text = String::new();
        for (register, content) in self.registers.iter().enumerate() {
            let name = self.shape.names(register).full;
            let line = match (content, self.shape.word()) {
                (None, _) => continue,
                (Some(Content::Value(value)), 8) => format!("movabs ${value:#x}, %{name}"),
                (Some(Content::Value(value)), _) => format!("mov ${:#x}, %{name}", *value as u32),
                (Some(Content::Address(symbol, offset)), 8) => {
                    format!("lea {symbol}{offset:+}(%rip), %{name}")
                }
                (Some(Content::Address(symbol, offset)), _) => {
                    format!("call 1f\n1: pop %{name}\nadd ${symbol}{offset:+}-1b, %{name}")
                }
                (Some(Content::Frame(distance)), 8) => format!("lea {distance}(%rsp), %{name}"),
                (Some(Content::Frame(distance)), _) => format!("lea {distance}(%esp), %{name}"),
            };
            let _ = writeln!(text, "{line}");
        }
        text
    }
}

/// A program.
pub(super) struct Program {
    shape: Shape,
    sites: Vec<Vec<Truth>>,
    text: String,
}

impl Program {
    pub(super) fn new(random: &mut SplitMix64, shape: Shape) -> Self {
        let area: Vec<u8> = (0..AREA).map(|_| random.number() as u8).collect();
        let tls: Vec<u8> = (0..TLS).map(|_| random.number() as u8).collect();
        let mut text = String::from(".text\n.globl main\n");
        let mut sites = Vec::new();
        for number in 0..SITES {
            let mut site = Site::new(shape, &area, &tls, random);
            let count = random.below(ARGUMENTS) + 1;
            let truths: Vec<Truth> = (0..count).filter_map(|_| site.operand(random)).collect();
            text.push_str(&function(number, &site, &truths));
            sites.push(truths);
        }
        text.push_str("main:\n");
        for number in 0..SITES {
            let _ = writeln!(text, "call site{number}");
        }
        text.push_str("xor %eax, %eax\nret\n.data\n.globl area\n.balign 16\narea:\n");
        text.push_str(&data(&area));
        text.push_str(".type area, @object\n.size area, .-area\n");
        text.push_str(".section .tdata,\"awT\",@progbits\n.balign 16\nslots:\n");
        text.push_str(&data(&tls));
        text.push_str(".type slots, @object\n.size slots, .-slots\n");
        text.push_str(".section .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n");
        text.push_str(".weak _.stapsdt.base\n_.stapsdt.base: .space 1\n");
        text.push_str(".section .note.GNU-stack,\"\",@progbits\n");
        Self { shape, sites, text }
    }

    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// What must be decoded at each site.
    pub(super) fn sites(&self) -> &[Vec<Truth>] {
        &self.sites
    }
}

fn data(bytes: &[u8]) -> String {
    let mut text = String::new();
    for line in bytes.chunks(16) {
        let numbers: Vec<String> = line.iter().map(u8::to_string).collect();
        let _ = writeln!(text, ".byte {}", numbers.join(","));
    }
    text
}

/// A function with one site: the stack is filled from the known memory, the registers are loaded.
fn function(number: usize, site: &Site<'_>, truths: &[Truth]) -> String {
    let operands: Vec<&str> = truths.iter().map(|truth| truth.operand.as_str()).collect();
    let loads = site.loads();
    let arguments = operands.join(" ");
    let (saved, fill, sp, word): (&[&str], String, &str, &str) = if site.shape.word() == 8 {
        let fill = "lea area(%rip), %rsi\nmov %rsp, %rdi".to_owned();
        (
            &["rbx", "rbp", "r12", "r13", "r14", "r15"],
            fill,
            "rsp",
            ".8byte",
        )
    } else {
        let fill = "call 1f\n1: pop %esi\nadd $area-1b, %esi\nmov %esp, %edi".to_owned();
        (&["ebx", "ebp", "esi", "edi"], fill, "esp", ".4byte")
    };
    let pushes: String = saved.iter().map(|name| format!("push %{name}\n")).collect();
    let pops: String = saved
        .iter()
        .rev()
        .map(|name| format!("pop %{name}\n"))
        .collect();
    let (first, last) = ordered(&loads, sp);
    let rest = FRAME - BELOW;
    format!(
        ".type site{number}, @function\nsite{number}:\n{pushes}sub ${FRAME}, %{sp}\n\
         {fill}\nmov ${FRAME}, %ecx\ncld\nrep movsb\n{first}lea {BELOW}(%{sp}), %{sp}\n{last}\
         990: nop\nlea {rest}(%{sp}), %{sp}\n{pops}ret\n.size site{number}, .-site{number}\n\
         .pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n.4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n\
         992: .balign 4\n993: {word} 990b\n{word} _.stapsdt.base\n{word} 0\n.asciz \"random\"\n.asciz \"p{number}\"\n\
         .asciz \"{arguments}\"\n994: .balign 4\n.popsection\n"
    )
}

/// The instructions that load registers, those last that count from the stack pointer, which has its place by then. Before, it
/// is below all that is known: in 32 bits addresses are found by calls, which write below it.
fn ordered(loads: &str, sp: &str) -> (String, String) {
    let (mut first, mut last) = (String::new(), String::new());
    for line in loads.lines() {
        let from_stack = line.contains(&format!("(%{sp})"));
        let part = if from_stack { &mut last } else { &mut first };
        let _ = writeln!(part, "{line}");
    }
    (first, last)
}
