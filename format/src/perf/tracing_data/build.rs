//! Builds the `TRACING_DATA` section, which perf creates from tracefs (`tools/perf/util/trace-event-info.c`):
//!
//! | bytes | |
//! |---|---|
//! | 10 | `17 08 44`, `tracing` |
//! | 4 | `0.6`, NUL |
//! | 1, 1, 4 | big-endian 0, bytes of a long 8, bytes of a page |
//! | 12, 8, n | `header_page`, NUL, length, text: the fields of a page of the kernel's ring |
//! | 13, 8, n | `header_event`, NUL, length, text |
//! | 4 | number of ftrace's own formats: 0 |
//! | 4 | number of systems; for each: name, NUL, number of events 4, for each: length 8, text |
//! | 4, 4, 8 | lengths of kallsyms, printk formats and saved command lines: 0 |

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The format of a tracepoint: an event of type `PERF_TYPE_TRACEPOINT` whose `config` is [`id`](Self::id).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TracepointFormat {
    /// System (`sdt_tick`). Characters other than letters, digits and `_` are written as `_`.
    pub system: String,
    /// Event name, written in the same way.
    pub name: String,
    /// `common_type` of the raw data: 1 to 65535, because perf 6.1 crashes on larger ones.
    pub id: u16,
    /// The fields after the common ones.
    pub fields: Vec<TracepointField>,
    /// The format string of `print fmt`, without its quotes.
    pub print: String,
    /// The arguments of the format string.
    pub print_arguments: Vec<String>,
}

/// A field of a tracepoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TracepointField {
    /// Type and name as C writes them (`s32 arg1`, `__data_loc char[] text`).
    pub declaration: String,
    /// Offset from the start of the raw data, bytes.
    pub offset: u16,
    /// Bytes.
    pub size: u16,
    /// Whether it is signed.
    pub signed: bool,
}

const PAGE: u32 = 4096;

/// The description of ring buffer pages. The file has no such pages, but perf refuses an empty text.
const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

/// The common fields at the start of every tracepoint.
const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n";

/// What a section is appended to.
pub(crate) trait TextSink {
    /// The bytes, to append to.
    fn bytes(&mut self) -> &mut Vec<u8>;

    /// Appends the text of a format with its length. `following` is the most that is appended before the end of the next one, bytes.
    fn put_text(&mut self, text: &str, following: usize);
}

impl TextSink for Vec<u8> {
    fn bytes(&mut self) -> &mut Vec<u8> {
        self
    }

    fn put_text(&mut self, text: &str, _: usize) {
        put_string(text, self);
    }
}

/// Numbers, lengths, and what ends the section, bytes.
const OTHERS: usize = 64;

/// Appends the body of the section.
pub(crate) fn put_tracing_data(formats: &[TracepointFormat], sink: &mut impl TextSink) {
    let following = formats.iter().map(TracepointFormat::len).max();
    let following = following.unwrap_or(OTHERS);
    let out = sink.bytes();
    out.extend(b"\x17\x08\x44tracing0.6\0");
    out.extend([0, 8]);
    out.extend(PAGE.to_le_bytes());
    for (name, text) in [("header_page", HEADER_PAGE), ("header_event", "")] {
        out.extend(name.bytes().chain([0]));
        put_string(text, out);
    }
    out.extend(0_u32.to_le_bytes());
    let mut systems: BTreeMap<String, Vec<&TracepointFormat>> = BTreeMap::new();
    for format in formats {
        systems.entry(format.c_system()).or_default().push(format);
    }
    out.extend((systems.len() as u32).to_le_bytes());
    for (system, of_system) in systems {
        sink.bytes().extend(system.bytes().chain([0]));
        sink.bytes().extend((of_system.len() as u32).to_le_bytes());
        for format in of_system {
            sink.put_text(&format.text(), following);
        }
    }
    sink.bytes().extend([0; 4 + 4 + 8]);
}

/// Appends the body with a length that is a multiple of 8: `header_event` has spaces.
pub(crate) fn put_aligned_tracing_data(formats: &[TracepointFormat], out: &mut Vec<u8>) {
    const TEXT_AT: usize = 10 + 4 + 6 + 12 + 8 + HEADER_PAGE.len() + 13 + 8;
    let start = out.len();
    put_tracing_data(formats, out);
    let len = out.len() - start;
    let missing = len.next_multiple_of(8) - len;
    let text_at = start + TEXT_AT;
    out[text_at - 8..text_at].copy_from_slice(&(missing as u64).to_le_bytes());
    out.splice(text_at..text_at, [b' '; 7].into_iter().take(missing));
}

fn put_string(text: &str, out: &mut Vec<u8>) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.bytes());
}

impl TracepointFormat {
    /// The most that a section has from the end of another format's text to the end of this one, bytes.
    pub(crate) fn len(&self) -> usize {
        self.text().len() + self.system.len() + 1 + OTHERS
    }

    fn c_system(&self) -> String {
        identifier(&self.system)
    }

    /// The text of tracefs' `format` file.
    fn text(&self) -> String {
        let mut text = format!(
            "name: {}\nID: {}\nformat:\n{COMMON}\n",
            identifier(&self.name),
            self.id
        );
        for field in &self.fields {
            let TracepointField {
                declaration,
                offset,
                size,
                signed,
            } = field;
            let signed = u8::from(*signed);
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};"
            );
        }
        let _ = write!(text, "\nprint fmt: \"{}\"", self.print);
        for argument in &self.print_arguments {
            let _ = write!(text, ", {argument}");
        }
        text.push('\n');
        text
    }
}

/// Replaces characters that perf does not accept in the name of a tracepoint.
fn identifier(name: &str) -> String {
    let mut out = name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    if !out.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        out.insert(0, '_');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_what_tracefs_shows() {
        let format = TracepointFormat {
            system: "sdt_my-app".to_owned(),
            name: "3.way".to_owned(),
            id: 10_001,
            fields: vec![TracepointField {
                declaration: "s32 arg1".to_owned(),
                offset: 8,
                size: 4,
                signed: true,
            }],
            print: "arg1=%d".to_owned(),
            print_arguments: vec!["REC->arg1".to_owned()],
        };
        let text = format.text();
        assert!(
            text.starts_with(
                "name: _3_way\nID: 10001\nformat:\n\tfield:unsigned short common_type;"
            )
        );
        assert!(text.contains("\n\n\tfield:s32 arg1;\toffset:8;\tsize:4;\tsigned:1;\n\n"));
        assert!(text.ends_with("print fmt: \"arg1=%d\", REC->arg1\n"));
        let mut body = Vec::new();
        put_tracing_data(&[format.clone(), format], &mut body);
        let system = b"sdt_my_app\0\x02\0\0\0";
        assert!(body.windows(system.len()).any(|window| window == system));
    }
}
