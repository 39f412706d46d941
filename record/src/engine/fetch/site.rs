//! The fetch arguments of a site's tracefs event, and the rewriting of its samples to those that programs write.
//!
//! The kernel does not mark values that it could not read. A word at an unreadable address is 0. If the address itself was in unreadable
//! memory, a word has the bytes of an earlier hit, and a text has the offset and length of the next one (seen on Linux 6.18;
//! kernel/trace/trace_probe_tmpl.h). But texts are stored one after the other in the order of their fields, and an unreadable text has no
//! bytes. So a text was read if the text of the next field has a larger offset. After all of them comes the thread's name, which is always
//! readable; if it is missing, the kernel's page was full.
//!
//! For words, two texts show whether they were read. One begins with the last byte of the word's address, if the address is in memory; it
//! is short, because that byte is 0. The other one begins with the last byte of the word, and matters only if that byte is 0, so that the
//! text is empty. The requested texts follow, and the words come last, because older kernels lose their position at a word that cannot be
//! read.

use usdtrec_format::{Arch, RawArgument, RawField, RawLayout, StringStatus};

use super::kernel;
use super::value::Fetch;
use crate::engine::bpf::{RAW, StoredText, TextLimits, finish, put_text};
use crate::fetch_limit::FetchLimit;
use crate::plan::capture::Capture;

/// The text after all others.
const END: &str = "end=$comm:string";

/// Offset of the thread id in a record: after record header, sample id, address and process id.
const TID: usize = 28;

/// The fetch arguments of a site.
#[derive(Debug)]
pub(super) struct SitePlan {
    layout: RawLayout,
    fields: Vec<FieldPlan>,
    /// Fetch arguments of texts: those that show whether addresses could be read, those that show it for words, and the requested texts.
    texts: Vec<String>,
    /// Offsets of the texts' locations in a sample, followed by that of [`END`].
    text_offsets: Vec<usize>,
    /// Fetch arguments of the words, and the size of each, bytes.
    words: Vec<(String, u8)>,
    word_offsets: Vec<usize>,
}

/// How a field is filled. The numbers are indexes into the lists above.
#[derive(Debug)]
struct FieldPlan {
    field: RawField,
    value: Fetch,
    word: Option<usize>,
    address_guard: Option<usize>,
    guard: Option<usize>,
    text: Option<usize>,
}

impl FieldPlan {
    /// Whether a word of this many bytes could be read. If not, its last byte is 0, because the kernel fills unreadable memory with zeros.
    fn is_readable(&self, word: u64, bytes: u8, texts: &Texts<'_>) -> bool {
        let last = word >> (8 * u32::from(bytes.clamp(1, 8) - 1));
        let guard = self.guard.map(|guard| texts.get(guard));
        self.address_guard
            .is_none_or(|guard| texts.get(guard).is_some())
            && guard.is_none_or(|text| last != 0 || text.is_some_and(<[u8]>::is_empty))
    }
}

impl SitePlan {
    /// Plans the fetch arguments of a site.
    ///
    /// # Errors
    /// What fetch arguments cannot express.
    pub(super) fn new(
        captures: &[Capture],
        layout: &RawLayout,
        arch: Arch,
    ) -> Result<Self, FetchLimit> {
        let mut plan = Self {
            layout: layout.clone(),
            fields: Vec::new(),
            texts: Vec::new(),
            text_offsets: Vec::new(),
            words: Vec::new(),
            word_offsets: Vec::new(),
        };
        for (capture, argument) in captures.iter().zip(&layout.arguments) {
            if let (Capture::Value(read), RawArgument::Field(field)) = (capture, argument) {
                let value = Fetch::of(read, arch)?;
                let field = FieldPlan {
                    field: *field,
                    word: value.word()?.map(|word| place(&mut plan.words, word)),
                    address_guard: value
                        .guard_of_address()?
                        .map(|guard| place(&mut plan.texts, guard)),
                    guard: None,
                    text: None,
                    value,
                };
                plan.fields.push(field);
            }
        }
        for field in &mut plan.fields {
            let guard = field.value.guard()?;
            field.guard = guard.map(|guard| place(&mut plan.texts, guard));
        }
        // Last, because they may use all the space.
        for field in &mut plan.fields {
            if let Some(string) = field.field.string {
                if string.length.is_some() {
                    return Err(FetchLimit::TextLength);
                }
                let text = field.value.text()?;
                field.text = Some(place(&mut plan.texts, text));
            }
        }
        Ok(plan)
    }

    /// The fetch arguments as `uprobe_events` takes them, with a space before each.
    pub(super) fn arguments(&self) -> String {
        let texts = self.texts.iter().enumerate();
        let mut line: String = texts.map(|(at, text)| format!(" t{at}={text}")).collect();
        if !self.texts.is_empty() {
            line.push(' ');
            line.push_str(END);
        }
        let words = self.words.iter().enumerate();
        line.extend(words.map(|(at, (word, _))| format!(" w{at}={word}")));
        line
    }

    /// Reads the offsets of the fields from the event's format. `None` if a field is missing.
    pub(super) fn find_fields(&mut self, format: &str) -> Option<()> {
        let mut texts: Vec<String> = (0..self.texts.len()).map(|at| format!("t{at}")).collect();
        if !texts.is_empty() {
            texts.push("end".to_owned());
        }
        let texts = texts.iter().map(|name| offset(format, name));
        self.text_offsets = texts.collect::<Option<_>>()?;
        let words = (0..self.words.len()).map(|at| offset(format, &format!("w{at}")));
        self.word_offsets = words.collect::<Option<_>>()?;
        Some(())
    }

    /// Appends a sample of the kernel, rewritten to the layout. Returns `false`, and appends nothing, if it is shorter than its fields.
    pub(super) fn rewrite(&self, record: &[u8], out: &mut Vec<u8>) -> bool {
        let start = out.len();
        let done = self.try_rewrite(record, start, out).is_some();
        if !done {
            out.truncate(start);
        }
        done
    }

    fn try_rewrite(&self, record: &[u8], start: usize, out: &mut Vec<u8>) -> Option<()> {
        let kernel = record.get(RAW..)?;
        let texts = Texts::of(kernel, &self.text_offsets)?;
        out.extend_from_slice(record.get(..RAW)?);
        out.resize(start + RAW + usize::from(self.layout.size), 0);
        let raw = out.get_mut(start + RAW..)?;
        put(raw, 0, &self.layout.id.to_ne_bytes())?;
        put(raw, 4, record.get(TID..TID + 4)?)?;
        let mut missing = 0_u32;
        for field in &self.fields {
            let (word, bytes) = match field.word {
                None => (0, 8),
                Some(word) => self.word(kernel, word)?,
            };
            if !field.is_readable(word, bytes, &texts) {
                missing |= 1 << field.field.fault.unwrap_or(0);
                continue;
            }
            let value = field.value.finish(word).to_le_bytes();
            let size = usize::from(field.field.size);
            put(raw, field.field.offset.into(), value.get(..size)?)?;
        }
        if let Some(offset) = self.layout.missing {
            put(raw, offset.into(), &missing.to_ne_bytes())?;
        }
        for field in &self.fields {
            if let (Some(string), Some(text)) = (field.field.string, field.text) {
                let text = texts.judge(text, self.layout.string_limit);
                let limits = TextLimits::of(self.layout.string_limit);
                put_text(string, text, limits, start, out);
            }
        }
        finish(start, out);
        Some(())
    }

    /// A word and its size in bytes.
    fn word(&self, kernel: &[u8], word: usize) -> Option<(u64, u8)> {
        let (offset, size) = (*self.word_offsets.get(word)?, self.words.get(word)?.1);
        let bytes = kernel.get(offset..offset + usize::from(size))?;
        let value = bytes.iter().rev();
        let value = value.fold(0, |value, byte| value << 8 | u64::from(*byte));
        Some((value, size))
    }

    /// Whether there are fetch arguments of texts, including those that show whether a word could be read.
    pub(super) fn has_texts(&self) -> bool {
        !self.texts.is_empty()
    }

    /// Maximum number of bytes of a hit in the kernel's buffer, for any contents of the program's memory.
    pub(super) fn most_bytes(&self) -> usize {
        /// Length of a thread's name (`TASK_COMM_LEN`).
        const NAME: usize = 16;
        /// Size of the location of a text.
        const PLACE: usize = 4;
        let words: usize = self
            .words
            .iter()
            .map(|(_, bytes)| usize::from(*bytes))
            .sum();
        match self.texts.len() {
            0 => words,
            texts => words + texts * (PLACE + kernel::TEXT) + PLACE + NAME,
        }
    }
}

/// The texts of a sample that could be read.
struct Texts<'a> {
    texts: Vec<Option<&'a [u8]>>,
    /// Whether all texts fit.
    all: bool,
}

impl<'a> Texts<'a> {
    fn of(kernel: &'a [u8], offsets: &[usize]) -> Option<Self> {
        let place = |at: &usize| {
            let word = u32::from_le_bytes(*kernel.get(*at..)?.first_chunk()?);
            Some(((word & 0xffff) as usize, (word >> 16) as usize))
        };
        let places: Vec<_> = offsets.iter().map(place).collect::<Option<_>>()?;
        let text = |pair: &[(usize, usize)]| match pair {
            // The last byte is a NUL.
            [(start, _), (next, _)] => kernel.get(*start..next.checked_sub(1)?),
            _ => None,
        };
        Some(Self {
            texts: places.windows(2).map(text).collect(),
            all: places.last().is_none_or(|(_, len)| *len > 0),
        })
    }

    fn get(&self, at: usize) -> Option<&'a [u8]> {
        self.texts.get(at).copied().flatten()
    }

    /// A text as stored in the trace, and its status.
    fn judge(&self, at: usize, limit: u16) -> StoredText<'a> {
        let Some(text) = self.get(at) else {
            let why = match self.all {
                true => StringStatus::Fault,
                false => StringStatus::NotRead,
            };
            return StoredText::without(why);
        };
        let is_last = self.texts.iter().skip(at + 1).all(Option::is_none);
        let (status, bytes) = match text.get(..limit.into()) {
            Some(start) if start.len() < text.len() => (StringStatus::Cut, start),
            // A text that was too long used all the space.
            _ if is_last && !self.all => (StringStatus::Cut, text),
            _ => (StringStatus::Whole, text),
        };
        StoredText { status, bytes }
    }
}

/// Index of an item in a list; adds the item if it is missing.
fn place<T: PartialEq>(list: &mut Vec<T>, wanted: T) -> usize {
    let known = list.iter().position(|known| *known == wanted);
    known.unwrap_or_else(|| {
        list.push(wanted);
        list.len() - 1
    })
}

/// `field:TYPE NAME; offset:N; …`
fn offset(format: &str, name: &str) -> Option<usize> {
    let of_field = |line: &str| {
        let (declaration, rest) = line.trim().strip_prefix("field:")?.split_once(';')?;
        let rest = (declaration.split_whitespace().last()? == name).then_some(rest)?;
        let offset = rest.trim().strip_prefix("offset:")?.split(';').next()?;
        offset.parse().ok()
    };
    format.lines().find_map(of_field)
}

fn put(raw: &mut [u8], at: usize, bytes: &[u8]) -> Option<()> {
    raw.get_mut(at..at + bytes.len())?.copy_from_slice(bytes);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dynamic fields `t0` to `t4`, `end`, and the bytes of samples of Linux 6.18.
    const OFFSETS: [usize; 6] = [16, 20, 24, 28, 32, 36];

    fn sample(places: [(u16, u16); 6], texts: &[u8]) -> Vec<u8> {
        let mut raw = vec![0; 16];
        for (start, len) in places {
            raw.extend(start.to_le_bytes());
            raw.extend(len.to_le_bytes());
        }
        raw.resize(68, 0xee);
        raw.extend(texts);
        raw
    }

    fn judged(raw: &[u8]) -> Vec<(StringStatus, &[u8])> {
        let texts = Texts::of(raw, &OFFSETS).unwrap();
        let judged = (0..5).map(|at| texts.judge(at, 5));
        judged.map(|text| (text.status, text.bytes)).collect()
    }

    #[test]
    fn what_could_not_be_read_is_not_the_next_text() {
        let places = [(68, 15), (68, 7), (75, 1), (76, 0), (76, 5), (81, 2)];
        let raw = sample(places, b"abcdef\0\0four\0t\0");
        let none = (StringStatus::Fault, b"".as_slice());
        let expected = [
            none,
            (StringStatus::Cut, b"abcde"),
            (StringStatus::Whole, b""),
            none,
            (StringStatus::Whole, b"four"),
        ];
        assert_eq!(judged(&raw), expected);
        let places = [(68, 6), (68, 0), (68, 0), (68, 6), (68, 4), (72, 2)];
        let raw = sample(places, b"two\0t\0");
        let last = (StringStatus::Whole, b"two".as_slice());
        assert_eq!(judged(&raw), [none, none, none, none, last]);
    }

    #[test]
    fn a_word_is_believed_if_it_was_read() {
        let field = |address_guard, guard| FieldPlan {
            field: RawField {
                offset: 8,
                size: 4,
                signed: true,
                fault: Some(0),
                string: None,
            },
            value: Fetch::of(
                &crate::plan::read::Read {
                    source: crate::plan::read::Source::Number(0),
                    size: 4,
                    signed: true,
                    pointer: false,
                },
                Arch::X86_64,
            )
            .unwrap(),
            word: None,
            address_guard,
            text: None,
            guard,
        };
        let empty = b"".as_slice();
        let texts = Texts {
            texts: vec![Some(empty), None, Some(b"x")],
            all: true,
        };
        let readable = |address, guard, word| field(address, guard).is_readable(word, 4, &texts);
        assert!(readable(Some(0), Some(0), 5) && readable(None, Some(0), 0));
        assert!(
            readable(None, Some(1), 0xff00_0000),
            "its last byte was read"
        );
        assert!(!readable(None, Some(1), 5), "its last byte may be missing");
        assert!(
            !readable(Some(1), Some(0), 0xff00_0005),
            "of an earlier hit"
        );
        assert!(!readable(None, Some(2), 0), "another byte stands there");
        assert!(readable(None, None, 0));
    }

    #[test]
    fn what_had_no_room_is_no_fault() {
        let places = [(68, 4), (72, 2), (74, 0), (74, 0), (74, 0), (74, 0)];
        let raw = sample(places, b"abc\0x\0");
        let none = (StringStatus::NotRead, b"".as_slice());
        let whole = (StringStatus::Whole, b"abc".as_slice());
        let cut = (StringStatus::Cut, b"x".as_slice());
        assert_eq!(judged(&raw), [whole, cut, none, none, none]);
    }

    #[test]
    fn places_that_cannot_be_are_no_texts() {
        let odd = [
            (0xffff, 0xffff),
            (3, 9),
            (0, 0),
            (68, 1),
            (67, 1),
            (0xffff, 1),
        ];
        let raw = sample(odd, b"x\0");
        assert!(judged(&raw).iter().all(|(_, text)| text.len() <= 5));
        for len in 0..40 {
            assert!(Texts::of(&raw[..len], &OFFSETS).is_none());
        }
    }

    #[test]
    fn fields_stand_where_the_format_says() {
        let format = "\tfield:unsigned long __probe_ip;\toffset:8;\tsize:8;\tsigned:0;\n\
                      \tfield:__data_loc char[] t0;\toffset:16;\tsize:4;\tsigned:1;\n\
                      \tfield:u64 w0;\toffset:20;\tsize:8;\tsigned:0;\n";
        let found = ["t0", "w0", "w", "end"].map(|name| offset(format, name));
        assert_eq!(found, [Some(16), Some(20), None, None]);
    }
}
