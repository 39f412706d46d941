//! The part of a line before the structures.

use super::super::bad_line::BadLine;
use super::cursor::Cursor;
use super::structures;

/// Time and name of an event. The host and other names of the trace are not read.
#[derive(Debug, PartialEq)]
pub(super) struct Header<'a> {
    pub(super) time: &'a str,
    pub(super) name: &'a str,
}

/// As `--names all` prints it.
const NAMED: &[u8] = b"timestamp = ";

impl<'a> Header<'a> {
    /// Takes the time: `[TIME] `, or `timestamp = TIME, `.
    pub(super) fn time(cursor: &mut Cursor<'a>) -> Option<&'a str> {
        let end: &[u8] = if cursor.skip(NAMED) {
            b", "
        } else if cursor.skip(b"[") {
            b"] "
        } else {
            return None;
        };
        std::str::from_utf8(cursor.until(end)?).ok()
    }

    /// Takes the header; the structures follow.
    pub(super) fn parse(cursor: &mut Cursor<'a>) -> Result<Self, BadLine> {
        let line = cursor.rest();
        let is_named = line.starts_with(NAMED);
        let time = Self::time(cursor).ok_or_else(|| BadLine::bytes("[TIME]", line))?;
        let name = if is_named {
            Self::named(cursor)
        } else {
            Self::unnamed(cursor)
        };
        let name = name.ok_or_else(|| BadLine::bytes("the name of an event and {", line))?;
        let name =
            std::str::from_utf8(name).map_err(|_| BadLine::bytes("a name in UTF-8", name))?;
        Ok(Self { time, name })
    }

    /// `delta = …, trace:hostname = …, name = NAME, `.
    fn named(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
        // `name` is the first part if neither the delta nor the trace is printed.
        if !cursor.skip(b"name = ") {
            cursor.until(b", name = ")?;
        }
        cursor.until(b", ")
    }

    /// `(+DELTA) HOST NAME: `; the name has no spaces.
    fn unnamed(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
        if cursor.skip(b"(+") {
            cursor.until(b") ")?;
        }
        let whole = cursor.rest();
        loop {
            cursor.until(b": ")?;
            let rest = cursor.rest();
            if structures::STARTS
                .iter()
                .any(|start| rest.starts_with(start))
            {
                break;
            }
        }
        let len = whole.len() - cursor.rest().len() - b": ".len();
        let before = whole.get(..len)?;
        before.rsplit(|byte| *byte == b' ').next()
    }
}
