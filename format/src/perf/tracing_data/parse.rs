//! Parses the `TRACING_DATA` section; [`build`](super::build) describes its layout.

use super::TracepointFormat;
use super::text::tracepoint;
use crate::perf::cursor::Cursor;

/// The contents of a `TRACING_DATA` section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracingData {
    /// The formats in the order of the section. Formats that cannot be parsed are omitted.
    pub formats: Vec<TracepointFormat>,
    /// Where parsing ended because of an error; `None` if the section is whole.
    pub cut: Option<TracingDataCut>,
}

/// Where a section of tracepoint formats cannot be parsed any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracingDataCut {
    /// Offset in the section, bytes.
    pub at: usize,
    /// What was expected there.
    pub expected: &'static str,
}

/// First bytes of a section; the version follows.
const MAGIC: &[u8] = b"\x17\x08\x44tracing";

impl TracingData {
    /// Parses a section up to the first error. Memory and work are bounded by its length.
    #[must_use]
    pub fn parse(section: &[u8]) -> Self {
        let mut reader = Reader {
            cursor: Cursor::new(section),
            expected: "",
        };
        let mut found = Self::default();
        if reader.all(&mut found.formats).is_none() {
            found.cut = Some(TracingDataCut {
                at: section.len() - reader.cursor.rest().len(),
                expected: reader.expected,
            });
        }
        found
    }
}

struct Reader<'a> {
    cursor: Cursor<'a>,
    /// What is expected at the cursor.
    expected: &'static str,
}

impl<'a> Reader<'a> {
    fn all(&mut self, formats: &mut Vec<TracepointFormat>) -> Option<()> {
        self.head()?;
        for name in ["header_page", "header_event"] {
            self.expected = name;
            (self.string()? == name.as_bytes()).then_some(())?;
            self.text()?;
        }
        self.expected = "ftrace's own formats";
        for _ in 0..self.cursor.u32()? {
            self.text()?;
        }
        self.expected = "the number of systems";
        for _ in 0..self.cursor.u32()? {
            self.expected = "a system's name";
            let system = String::from_utf8_lossy(self.string()?).into_owned();
            self.expected = "the number of a system's events";
            for _ in 0..self.cursor.u32()? {
                self.expected = "an event's format";
                formats.extend(tracepoint(&system, self.text()?));
            }
        }
        // Kernel symbols and other data follow, which are not needed.
        Some(())
    }

    fn head(&mut self) -> Option<()> {
        self.expected = "\"tracing\" and a version";
        let mut ahead = self.cursor;
        (ahead.take(MAGIC.len())? == MAGIC).then_some(())?;
        self.cursor = ahead;
        self.string()?;
        self.expected = "little-endian data";
        let mut ahead = self.cursor;
        (ahead.u8()? == 0).then_some(())?;
        self.cursor = ahead;
        self.expected = "the sizes of a long and of a page";
        self.cursor.u8()?;
        self.cursor.u32()?;
        Some(())
    }

    /// Bytes up to a NUL.
    fn string(&mut self) -> Option<&'a [u8]> {
        let rest = self.cursor.rest();
        let len = rest.iter().position(|&byte| byte == 0)?;
        let taken = self.cursor.take(len + 1)?;
        taken.get(..len)
    }

    /// A length and that many bytes; `None`, without advancing, if there are fewer.
    fn text(&mut self) -> Option<&'a [u8]> {
        let mut ahead = self.cursor;
        let len = usize::try_from(ahead.u64()?).ok()?;
        let text = ahead.take(len)?;
        self.cursor = ahead;
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{TracepointField, put_tracing_data};
    use super::*;

    fn section() -> (Vec<TracepointFormat>, Vec<u8>) {
        let format = |system: &str, name: &str, id| TracepointFormat {
            system: system.to_owned(),
            name: name.to_owned(),
            id,
            fields: vec![TracepointField {
                declaration: "s16 arg1".to_owned(),
                offset: 16,
                size: 2,
                signed: true,
            }],
            print: "arg1=%d".to_owned(),
            print_arguments: vec!["REC->arg1".to_owned()],
        };
        let formats = vec![
            format("a", "x", 7),
            format("a", "y", 8),
            format("b", "z", 9),
        ];
        let mut body = Vec::new();
        put_tracing_data(&formats, &mut body);
        (formats, body)
    }

    #[test]
    fn what_was_built_comes_back() {
        let (formats, body) = section();
        let found = TracingData::parse(&body);
        assert_eq!(found.cut, None);
        assert_eq!(found.formats, formats);
    }

    #[test]
    fn every_prefix_gives_what_is_whole_in_it() {
        let (formats, body) = section();
        let mut most = 0;
        for len in 0..body.len() - 16 {
            let found = TracingData::parse(&body[..len]);
            assert!(found.cut.is_some_and(|cut| cut.at <= len), "{len} bytes");
            assert!(formats.starts_with(&found.formats), "{len} bytes");
            most = most.max(found.formats.len());
        }
        assert_eq!(most, formats.len() - 1);
    }

    #[test]
    fn every_flip_is_survived_and_claims_are_not_believed() {
        let (_, body) = section();
        for at in 0..body.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut odd = body.clone();
                odd[at] = value;
                assert!(TracingData::parse(&odd).formats.len() <= 3);
            }
        }
        let other_order = [MAGIC, b"0.6\0\x01"].concat();
        let found = TracingData::parse(&other_order);
        let cut = TracingDataCut {
            at: 14,
            expected: "little-endian data",
        };
        assert_eq!(found.cut, Some(cut));
    }
}
