//! Perf maps: what processes say of the code that they made at run time (`/tmp/perf-PID.map`; linux/tools/perf/Documentation/jit-interface.txt).
//!
//! Each line is `START SIZE NAME`, the numbers hexadecimal. Code may be made again at an address: a later line replaces an earlier one.

use std::io::{self, BufRead, Read};
use std::ops::Range;

use foldhash::HashMap;

/// Bytes of a map that are read: what a process writes must not take any time.
const MAX_BYTES: u64 = 1 << 30;
/// Bytes of a line that are read, more than any name that is shown.
const MAX_LINE: u64 = 16 << 10;

/// An address in code that a process made at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MadePlace {
    /// The process.
    pub pid: i32,
    /// When the program that the process ran began, ns; 0 if that is not known.
    pub began: u64,
    /// The address in the process.
    pub address: u64,
}

/// A function in a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedFunction {
    /// Its name.
    pub name: String,
    /// Bytes from its start to the address.
    pub within: u64,
}

/// The functions at addresses, which are sorted, in the first gigabyte of a map, until `stop` is true.
///
/// # Errors
/// If the map cannot be read.
pub fn functions(
    map: impl BufRead,
    addresses: &[u64],
    stop: impl Fn() -> bool,
) -> io::Result<HashMap<u64, MappedFunction>> {
    let mut found = HashMap::default();
    let mut map = map.take(MAX_BYTES);
    let mut line = Vec::new();
    while !stop() {
        line.clear();
        let read = map.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        if line.pop_if(|last| *last == b'\n').is_none() {
            map.skip_until(b'\n')?;
        }
        let Some(Line { start, end, name }) = Line::parse(&line) else {
            continue;
        };
        for &address in addresses_in(addresses, start..end) {
            let function = MappedFunction {
                name: String::from_utf8_lossy(name).into_owned(),
                within: address - start,
            };
            found.insert(address, function);
        }
    }
    Ok(found)
}

/// A line of a map.
struct Line<'l> {
    start: u64,
    end: u64,
    name: &'l [u8],
}

impl<'l> Line<'l> {
    /// `None` if it is malformed.
    fn parse(line: &'l [u8]) -> Option<Self> {
        let mut parts = line.splitn(3, |byte| *byte == b' ');
        let mut number = || {
            let text = std::str::from_utf8(parts.next()?).ok()?;
            let text = text.strip_prefix("0x").unwrap_or(text);
            u64::from_str_radix(text, 16).ok()
        };
        let (start, size) = (number()?, number()?);
        let name = parts.next()?.trim_ascii();
        (!name.is_empty()).then_some(Self {
            start,
            end: start.checked_add(size)?,
            name,
        })
    }
}

/// The addresses that are in the code, out of sorted ones. None are in code whose end is before its start.
pub(crate) fn addresses_in(addresses: &[u64], code: Range<u64>) -> &[u64] {
    let from = addresses.partition_point(|&at| at < code.start);
    let until = addresses.partition_point(|&at| at < code.end);
    addresses.get(from..until).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(map: &[u8], addresses: &[u64]) -> Vec<(u64, String, u64)> {
        let found = functions(map, addresses, || false).unwrap();
        let mut found: Vec<_> = found
            .into_iter()
            .map(|(address, function)| (address, function.name, function.within))
            .collect();
        found.sort();
        found
    }

    #[test]
    fn a_later_line_replaces_an_earlier_one() {
        let map = b"1000 20 old one\n0x1010 10 new::<T>()\n2000 8 other\n";
        let expected = [
            (0x1000, "old one".to_owned(), 0),
            (0x1010, "new::<T>()".to_owned(), 0),
            (0x101f, "new::<T>()".to_owned(), 15),
            (0x2007, "other".to_owned(), 7),
        ];
        let addresses = [0xfff, 0x1000, 0x1010, 0x101f, 0x1020, 0x2007, 0x2008];
        assert_eq!(names(map, &addresses), expected);
    }

    #[test]
    fn what_is_malformed_is_left_out() {
        let long = [&b"1000 10 "[..], &[b'x'; 100_000], b"\n3000 10 after\n"].concat();
        let found = names(&long, &[0x1000, 0x3000]);
        assert_eq!(found[0].1.len() as u64, MAX_LINE - 8);
        assert_eq!(found[1].1, "after");
        for line in [
            "",
            "1000",
            "1000 10",
            "1000 10 ",
            "x 10 f",
            "1000 -1 f",
            "1000  10 f",
            "ffffffffffffffff 10 f",
        ] {
            assert_eq!(names(line.as_bytes(), &[0x1000, u64::MAX]), [], "{line}");
        }
        assert_eq!(names(b"1000 10 \xff\n", &[0x1000])[0].1, "\u{fffd}");
        assert!(
            functions(&b"1000 10 f"[..], &[0x1000], || true)
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn the_end_is_not_in_the_code() {
        let addresses = [3, 5, 5, 8, u64::MAX];
        for (code, expected) in [
            (0..3, &addresses[..0]),
            (3..8, &addresses[..3]),
            (4..9, &addresses[1..4]),
            (9..u64::MAX, &[]),
            (Range { start: 9, end: 3 }, &[]),
        ] {
            assert_eq!(addresses_in(&addresses, code.clone()), expected, "{code:?}");
        }
    }
}
