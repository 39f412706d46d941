//! The type of a tracepoint field, from its C declaration.

use super::{TracepointField, TracepointFormat};

/// Type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldShape {
    /// An integer of 1, 2, 4 or 8 bytes.
    Integer {
        /// Bytes.
        bytes: u8,
        /// Whether it is signed.
        signed: bool,
    },
    /// An array of integers (`u8 args[6]`).
    Integers {
        /// Number of elements.
        count: u16,
        /// Size of an element in bytes: 1, 2, 4 or 8.
        bytes: u8,
        /// Whether they are signed.
        signed: bool,
    },
    /// String up to a NUL or the field's end (`char comm[16]`).
    String,
    /// A `u32` that locates a string: the lower half is the offset of the bytes, the upper half their
    /// number including the NUL. If `relative`, the offset is from the end of the field (`__rel_loc`), else from the start of the
    /// raw data (`__data_loc`).
    LocatedString {
        /// Whether the offset is from the end of the field.
        relative: bool,
    },
    /// An array of located strings (`__data_loc char[] names[2]`).
    LocatedStrings {
        /// Number of elements.
        count: u16,
        /// Whether the offsets are from the end of the element.
        relative: bool,
    },
    /// Any other type.
    Other,
}

impl TracepointFormat {
    /// Whether the event is a kprobe or uprobe, whose first field is the address of the hit.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.fields.iter().any(TracepointField::is_address_of_hit)
    }
}

impl TracepointField {
    /// Name of the field.
    #[must_use]
    pub fn name(&self) -> &str {
        let (_, name) = self.parts();
        name.split('[').next().unwrap_or_default()
    }

    /// Whether the field is one of those in which the kernel stores the address of a kprobe or uprobe hit.
    #[must_use]
    pub fn is_address_of_hit(&self) -> bool {
        matches!(
            self.name(),
            "__probe_ip" | "__probe_func" | "__probe_ret_ip"
        )
    }

    /// Type of the field.
    #[must_use]
    pub fn shape(&self) -> FieldShape {
        let (kind, name) = self.parts();
        for (word, relative) in [("__data_loc", false), ("__rel_loc", true)] {
            if let Some(element) = kind.strip_prefix(word) {
                if !is_char(element.trim_end_matches("[]")) {
                    return FieldShape::Other;
                }
                return match (name.split_once('['), self.size) {
                    (None, 4) => FieldShape::LocatedString { relative },
                    (Some((_, count)), _) => match self.elements(count, Some(4)) {
                        Some((count, 4)) => FieldShape::LocatedStrings { count, relative },
                        _ => FieldShape::Other,
                    },
                    _ => FieldShape::Other,
                };
            }
        }
        match name.split_once('[') {
            Some(_) if is_char(kind) => FieldShape::String,
            Some((_, count)) => self.integers(count, kind),
            None => self.integer(),
        }
    }

    /// Type and name. The brackets of an array belong to the name, except for `__data_loc`.
    fn parts(&self) -> (&str, &str) {
        let (kind, name) = self
            .declaration
            .rsplit_once([' ', '*'])
            .unwrap_or(("", &self.declaration));
        (kind.trim(), name)
    }

    fn integer(&self) -> FieldShape {
        match self.size {
            1 | 2 | 4 | 8 => FieldShape::Integer {
                bytes: self.size as u8,
                signed: self.signed,
            },
            _ => FieldShape::Other,
        }
    }

    fn integers(&self, count: &str, kind: &str) -> FieldShape {
        match self.elements(count, integer_size(kind)) {
            Some((count, bytes @ (1 | 2 | 4 | 8))) => FieldShape::Integers {
                count,
                bytes: bytes as u8,
                signed: self.signed,
            },
            _ => FieldShape::Other,
        }
    }

    /// Number and size of an array's elements. The kernel writes no number for arrays of its uprobe events (`u8 a[]`): there the type has
    /// the size.
    fn elements(&self, count: &str, bytes: Option<u16>) -> Option<(u16, u16)> {
        let count = match (count.trim_end_matches(']'), bytes) {
            ("", Some(bytes)) => self.size / bytes,
            (count, _) => count.parse().ok()?,
        };
        (count > 0 && self.size.is_multiple_of(count)).then(|| (count, self.size / count))
    }
}

/// Size of an integer, by the name of its type in the kernel or in C.
fn integer_size(kind: &str) -> Option<u16> {
    let kind = kind.strip_prefix("unsigned ").unwrap_or(kind).trim();
    let kind = kind.strip_prefix("__").unwrap_or(kind);
    let bits = kind.strip_prefix(['u', 's', 'x']).unwrap_or_default();
    Some(match (bits, kind) {
        ("8", _) | (_, "char" | "signed char" | "bool" | "uint8_t" | "int8_t") => 1,
        ("16", _) | (_, "short" | "uint16_t" | "int16_t") => 2,
        ("32", _) | (_, "int" | "unsigned" | "uint32_t" | "int32_t") => 4,
        ("64", _) | (_, "long" | "long long" | "uint64_t" | "int64_t") => 8,
        _ => return None,
    })
}

/// Whether a type is that of a string's bytes.
fn is_char(kind: &str) -> bool {
    let kind = kind.trim();
    kind.strip_prefix("const ").unwrap_or(kind).trim() == "char"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(declaration: &str, size: u16, signed: bool) -> (String, FieldShape) {
        let field = TracepointField {
            declaration: declaration.to_owned(),
            offset: 8,
            size,
            signed,
        };
        (field.name().to_owned(), field.shape())
    }

    #[test]
    fn declarations_of_the_kernel_are_understood() {
        let integer = |bytes, signed| FieldShape::Integer { bytes, signed };
        let integers = |count, bytes| FieldShape::Integers {
            count,
            bytes,
            signed: false,
        };
        let located = |relative| FieldShape::LocatedString { relative };
        for (declaration, size, signed, name, shape) in [
            ("s16 arg1", 2, true, "arg1", integer(2, true)),
            (
                "unsigned long __probe_ip",
                8,
                false,
                "__probe_ip",
                integer(8, false),
            ),
            (
                "const char * filename",
                8,
                false,
                "filename",
                integer(8, false),
            ),
            ("struct page *page", 8, false, "page", integer(8, false)),
            ("bool ok", 1, false, "ok", integer(1, false)),
            ("char comm[16]", 16, false, "comm", FieldShape::String),
            ("const char comm[16]", 16, true, "comm", FieldShape::String),
            ("unsigned char mac[6]", 6, false, "mac", integers(6, 1)),
            ("unsigned long args[6]", 48, false, "args", integers(6, 8)),
            ("u8 a[]", 4, false, "a", integers(4, 1)),
            ("unsigned long a[]", 24, false, "a", integers(3, 8)),
            ("u32 odd[]", 6, false, "odd", FieldShape::Other),
            ("u64 odd[]", 4, false, "odd", FieldShape::Other),
            ("struct x odd[]", 4, false, "odd", FieldShape::Other),
            ("char ch[]", 4, true, "ch", FieldShape::String),
            ("u32 odd[TASKS]", 8, false, "odd", FieldShape::Other),
            ("u32 odd[0]", 8, false, "odd", FieldShape::Other),
            ("struct x y", 24, false, "y", FieldShape::Other),
            ("__data_loc char[] arg2", 4, true, "arg2", located(false)),
            ("__rel_loc char[] s", 4, true, "s", located(true)),
            (
                "__data_loc char[] s[2]",
                8,
                true,
                "s",
                FieldShape::LocatedStrings {
                    count: 2,
                    relative: false,
                },
            ),
            (
                "__data_loc char[] s[]",
                12,
                true,
                "s",
                FieldShape::LocatedStrings {
                    count: 3,
                    relative: false,
                },
            ),
            ("__data_loc u32[] ids", 4, false, "ids", FieldShape::Other),
            ("", 4, false, "", integer(4, false)),
        ] {
            let expected = (name.to_owned(), shape);
            assert_eq!(field(declaration, size, signed), expected, "{declaration}");
        }
    }
}
