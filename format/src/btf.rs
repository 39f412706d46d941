//! BTF (Documentation/bpf/btf.rst in Linux): the types of a kernel, which programs in it need.

use std::borrow::Cow;

const MAGIC: u16 = 0xeb9f;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const TYPEDEF: u32 = 8;
const FUNCTION: u32 = 12;
/// Maximum nesting of structures.
const DEPTH: u32 = 8;

/// The types of a kernel.
#[derive(Debug)]
pub struct Btf {
    data: Cow<'static, [u8]>,
    /// Offset of the strings in `data`.
    strings: usize,
    /// Offset of each type in `data`; the first is type 1.
    types: Vec<usize>,
    /// Offsets of the structures and unions that have a name.
    structures: Vec<usize>,
}

/// A function of the kernel.
#[derive(Clone, Copy, Debug)]
pub struct KernelFunction {
    /// Id of its type.
    pub kind: u32,
    /// Number of its arguments.
    pub arguments: usize,
}

/// A structure: offset of its first member in `data`, number of members, and whether the offsets of members include sizes of bit fields.
#[derive(Clone, Copy)]
struct Structure {
    members: usize,
    count: usize,
    has_bit_fields: bool,
}

impl Btf {
    /// Reads the types. `None` if the data are no BTF, or have a kind of type that is not known.
    #[must_use]
    pub fn parse(data: impl Into<Cow<'static, [u8]>>) -> Option<Self> {
        let mut btf = Self {
            data: data.into(),
            strings: 0,
            types: Vec::new(),
            structures: Vec::new(),
        };
        let magic = btf.word(0)? as u16;
        let header = btf.word(4)? as usize;
        if magic != MAGIC {
            return None;
        }
        let start = header + btf.word(8)? as usize;
        let end = start + btf.word(12)? as usize;
        btf.strings = header + btf.word(16)? as usize;
        let mut at = start;
        while at < end {
            btf.types.push(at);
            let info = btf.word(at + 4)?;
            if matches!(kind(info), STRUCT | UNION) && btf.word(at)? != 0 {
                btf.structures.push(at);
            }
            at += 12 + btf.extra(info)?;
        }
        Some(btf)
    }

    /// Number of bytes after the first 12 of a type.
    fn extra(&self, info: u32) -> Option<usize> {
        let count = (info & 0xffff) as usize;
        Some(match kind(info) {
            // int, var, declaration tag
            1 | 14 | 17 => 4,
            // array
            3 => 12,
            // structure, union, data section, 64-bit enumeration
            STRUCT | UNION | 15 | 19 => 12 * count,
            // enumeration, function's prototype
            6 | 13 => 8 * count,
            // pointer, forward, typedef, volatile, const, restrict, function, float, type tag
            2 | 7..=12 | 16 | 18 => 0,
            _ => return None,
        })
    }

    /// Offset of a member of a structure, through structures within it (`thread`, `fsbase`), bytes.
    #[must_use]
    pub fn member(&self, structure: &str, path: &[&str]) -> Option<u32> {
        Some(self.member_bits(structure, path)? / 8)
    }

    /// The same in bits, for a bit field.
    #[must_use]
    pub fn member_bits(&self, structure: &str, path: &[&str]) -> Option<u32> {
        let mut structures = self.structures.iter().copied();
        let mut at = structures.find(|at| self.has_name(*at, structure))?;
        let mut offset = 0_u32;
        for name in path {
            let (within, kind) = self.find(self.structure(at)?, name, DEPTH)?;
            offset = offset.checked_add(within)?;
            at = self.types.get(kind.checked_sub(1)?).copied()?;
        }
        Some(offset)
    }

    /// The function with a name.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<KernelFunction> {
        let (kind, at) = self.named(FUNCTION, name)?;
        let prototype = self.word(at + 8)? as usize;
        let prototype = self.types.get(prototype.checked_sub(1)?)?;
        let arguments = (self.word(prototype + 4)? & 0xffff) as usize;
        Some(KernelFunction { kind, arguments })
    }

    /// Id of the type of a structure.
    #[must_use]
    pub fn structure_type(&self, name: &str) -> Option<u32> {
        Some(self.named(STRUCT, name)?.0)
    }

    /// Id of the type that a program on a tracepoint is loaded with.
    #[must_use]
    pub fn tracepoint(&self, name: &str) -> Option<u32> {
        Some(self.named(TYPEDEF, &format!("btf_trace_{name}"))?.0)
    }

    /// Id and offset of the type with this kind and name.
    fn named(&self, wanted: u32, name: &str) -> Option<(u32, usize)> {
        let is_it = |at: usize| {
            let info = self.word(at + 4);
            info.is_some_and(|info| kind(info) == wanted) && self.has_name(at, name)
        };
        let mut types = (1..).zip(self.types.iter().copied());
        types.find(|(_, at)| is_it(*at))
    }

    /// Whether the type at an offset has this name.
    fn has_name(&self, at: usize, name: &str) -> bool {
        let start = self.word(at).map(|offset| self.strings + offset as usize);
        let rest = start.and_then(|start| self.data.get(start..));
        let after = rest.and_then(|rest| rest.strip_prefix(name.as_bytes()));
        after.is_some_and(|after| after.first() == Some(&0))
    }

    /// Offset in bits and type of a member, also of unnamed structures in it.
    fn find(&self, structure: Structure, name: &str, depth: u32) -> Option<(u32, usize)> {
        (0..structure.count).find_map(|index| {
            let at = structure.members + 12 * index;
            let member = self.text(self.word(at)?);
            let kind = self.word(at + 4)? as usize;
            let bits = self.word(at + 8)?;
            let bits = if structure.has_bit_fields {
                bits & 0xff_ffff
            } else {
                bits
            };
            if member == name.as_bytes() {
                return Some((bits, kind));
            }
            if !member.is_empty() || depth == 0 {
                return None;
            }
            let unnamed = self.structure(*self.types.get(kind.checked_sub(1)?)?)?;
            let (within, kind) = self.find(unnamed, name, depth - 1)?;
            Some((bits.checked_add(within)?, kind))
        })
    }

    fn structure(&self, at: usize) -> Option<Structure> {
        let info = self.word(at + 4)?;
        matches!(kind(info), STRUCT | UNION).then_some(Structure {
            members: at + 12,
            count: (info & 0xffff) as usize,
            has_bit_fields: info >> 31 != 0,
        })
    }

    fn text(&self, offset: u32) -> &[u8] {
        let rest = self
            .data
            .get(self.strings + offset as usize..)
            .unwrap_or_default();
        rest.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    fn word(&self, at: usize) -> Option<u32> {
        let bytes = self.data.get(at..)?.first_chunk()?;
        Some(u32::from_ne_bytes(*bytes))
    }
}

const fn kind(info: u32) -> u32 {
    info >> 24 & 0x1f
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_refused() {
        assert!(Btf::parse(Vec::<u8>::new()).is_none());
        assert!(Btf::parse(vec![0x9f, 0xeb, 1, 0]).is_none());
        assert!(Btf::parse(vec![0xff; 64]).is_none());
    }
}
