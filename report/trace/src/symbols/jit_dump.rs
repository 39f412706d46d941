//! Jitdumps: the code that a process made at run time, with the time of each function (`jit-PID.dump`; linux/tools/perf/Documentation/jitdump-specification.txt).
//!
//! Numbers are those of the host's byte order. A header and each record begin with their sizes; what a record has beyond the parts that are known is skipped.
//!
//! Runtimes replace code, so an address can be that of several functions: a function has its name from its time on. A
//! dump is read once, and a second time if code was moved.

use std::io::{self, BufRead, Read};
use std::sync::Arc;

use foldhash::{HashMap, HashSet};

use crate::symbols::perf_map::addresses_in;

/// Bytes of a dump that are read.
const MAX_BYTES: u64 = 1 << 30;
/// Bytes of a name that are read, more than any that is shown.
const MAX_ONE_NAME_BYTES: u64 = 16 << 10;
/// Bytes of all names.
const MAX_NAME_BYTES: usize = 64 << 20;
/// Functions at all addresses.
const MAX_FUNCTIONS: usize = 1 << 20;

/// `JITD`, in the byte order of the host.
const MAGIC: u32 = 0x4a69_5444;
/// Flag of the header: times are those of a clock of the processor.
const OTHER_CLOCK: u64 = 1;
/// Size of the fields of the header before the flags, with the flags, bytes.
const HEADER: usize = 40;
/// Size of the fields that each record begins with, bytes.
const PREFIX: usize = 16;
const LOAD: u32 = 0;
const MOVE: u32 = 1;

/// The function at an address from a time on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpedFunction {
    /// Where it begins.
    pub address: u64,
    /// From when on it is there, ns of the trace's clock; 0 if the dump does not say.
    pub since: u64,
    /// Its name.
    pub name: Arc<str>,
    /// Bytes from its start to the address.
    pub within: u64,
}

/// The functions at addresses, which are sorted, until `stop` is true: by address, then time. `open` opens the dump, a second time if code was moved.
///
/// # Errors
/// If the dump cannot be read, or is none.
pub fn functions<R: BufRead>(
    open: impl Fn() -> Option<R>,
    addresses: &[u64],
    stop: impl Fn() -> bool,
) -> io::Result<Vec<DumpedFunction>> {
    let mut found = Found::new(addresses);
    let mut moved = Vec::new();
    if let Some(dump) = open() {
        each_record(dump, &stop, |record| match record {
            Record::Load(load) => found.add(load.code, load.time, &load.name),
            Record::Move(code) if found.has(code.code) && moved.len() < MAX_FUNCTIONS => {
                moved.push(code)
            }
            Record::Move(_) => {}
        })?;
    }
    if !moved.is_empty() {
        let indexes: HashSet<u64> = moved.iter().map(|code| code.index).collect();
        let mut names: HashMap<u64, Arc<str>> = HashMap::default();
        if let Some(dump) = open() {
            each_record(dump, &stop, |record| {
                if let Record::Load(load) = record
                    && indexes.contains(&load.index)
                    && let Some(name) = found.name(&load.name)
                {
                    names.insert(load.index, name);
                }
            })?;
        }
        for code in moved {
            if let Some(name) = names.get(&code.index) {
                found.add_named(code.code, code.time, name);
            }
        }
    }
    Ok(found.sorted())
}

/// Bytes of code.
#[derive(Clone, Copy)]
struct Code {
    start: u64,
    size: u64,
}

/// Code that was made.
struct Load {
    code: Code,
    time: u64,
    index: u64,
    name: Vec<u8>,
}

/// Code that was moved.
struct Moved {
    /// Where it is then.
    code: Code,
    time: u64,
    /// Index of its load.
    index: u64,
}

enum Record {
    Load(Load),
    Move(Moved),
}

/// Functions at addresses found so far.
struct Found<'a> {
    /// Sorted.
    addresses: &'a [u64],
    functions: Vec<DumpedFunction>,
    /// Bytes of names.
    names: usize,
}

impl<'a> Found<'a> {
    const fn new(addresses: &'a [u64]) -> Self {
        Self {
            addresses,
            functions: Vec::new(),
            names: 0,
        }
    }

    fn at(&self, code: Code) -> &'a [u64] {
        let end = code.start.saturating_add(code.size);
        addresses_in(self.addresses, code.start..end)
    }

    fn has(&self, code: Code) -> bool {
        !self.at(code).is_empty()
    }

    /// A name; `None` if there are too many.
    fn name(&mut self, name: &[u8]) -> Option<Arc<str>> {
        self.names = self.names.saturating_add(name.len());
        (self.names <= MAX_NAME_BYTES).then(|| Arc::from(String::from_utf8_lossy(name)))
    }

    fn add(&mut self, code: Code, time: u64, name: &[u8]) {
        if self.has(code)
            && !name.is_empty()
            && let Some(name) = self.name(name)
        {
            self.add_named(code, time, &name);
        }
    }

    fn add_named(&mut self, code: Code, time: u64, name: &Arc<str>) {
        let room = MAX_FUNCTIONS.saturating_sub(self.functions.len());
        let functions = self
            .at(code)
            .iter()
            .take(room)
            .map(|&address| DumpedFunction {
                address,
                since: time,
                name: Arc::clone(name),
                within: address - code.start,
            });
        self.functions.extend(functions);
    }

    /// Of several functions at an address from one time on, the last one.
    fn sorted(mut self) -> Vec<DumpedFunction> {
        // Those of one time stay in the order of the dump.
        let functions = &mut self.functions;
        functions.reverse();
        functions.sort_by_key(|function| (function.address, function.since));
        functions.dedup_by_key(|function| (function.address, function.since));
        self.functions
    }
}

/// Calls `each` with each load and move until the end of the dump.
fn each_record(
    dump: impl BufRead,
    stop: impl Fn() -> bool,
    mut each: impl FnMut(Record),
) -> io::Result<()> {
    let mut dump = dump.take(MAX_BYTES);
    let header: [u8; HEADER] = read(&mut dump)?;
    let mut fields = Fields(&header);
    let (magic, _version, size) = (fields.u32(), fields.u32(), fields.u32());
    if magic != MAGIC {
        let error = format!(
            "expected a jitdump of this host's byte order, found {magic:#010x} at its start"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, error));
    }
    fields.0 = header.get(HEADER - 8..).unwrap_or_default();
    let has_times = fields.u64() & OTHER_CLOCK == 0;
    skip(&mut dump, u64::from(size).saturating_sub(HEADER as u64))?;
    while !stop() {
        let prefix: [u8; PREFIX] = match read(&mut dump) {
            Ok(prefix) => prefix,
            // The process may be writing, or have been killed when it was.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
            Err(error) => return Err(error),
        };
        let mut fields = Fields(&prefix);
        let (kind, size, time) = (fields.u32(), fields.u32(), fields.u64());
        let rest = u64::from(size).checked_sub(PREFIX as u64);
        // Where the next record is cannot be known.
        let Some(rest) = rest else { break };
        let time = if has_times { time } else { 0 };
        let mut body = dump.by_ref().take(rest);
        match Record::read(kind, time, &mut body) {
            Ok(Some(record)) if body.limit() == 0 || skip_rest(&mut body)? => each(record),
            Ok(Some(_)) => break,
            Ok(None) => {
                skip_rest(&mut body)?;
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                skip_rest(&mut body)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Record {
    /// `None` of records that say nothing about functions.
    fn read(kind: u32, time: u64, body: &mut impl BufRead) -> io::Result<Option<Self>> {
        // Both begin with the process, the thread, and an address that is not that of the code.
        match kind {
            LOAD => {
                let bytes: [u8; 40] = read(body)?;
                let mut fields = Fields(bytes.get(16..).unwrap_or_default());
                let (start, size, index) = (fields.u64(), fields.u64(), fields.u64());
                let mut name = Vec::new();
                body.take(MAX_ONE_NAME_BYTES).read_until(0, &mut name)?;
                name.pop_if(|last| *last == 0);
                Ok(Some(Self::Load(Load {
                    code: Code { start, size },
                    time,
                    index,
                    name,
                })))
            }
            MOVE => {
                let bytes: [u8; 48] = read(body)?;
                let mut fields = Fields(bytes.get(24..).unwrap_or_default());
                let (start, size, index) = (fields.u64(), fields.u64(), fields.u64());
                Ok(Some(Self::Move(Moved {
                    code: Code { start, size },
                    time,
                    index,
                })))
            }
            _ => Ok(None),
        }
    }
}

/// Fields of a record; those beyond its end are 0.
struct Fields<'b>(&'b [u8]);

impl Fields<'_> {
    fn u32(&mut self) -> u32 {
        let Some((field, rest)) = self.0.split_first_chunk() else {
            return 0;
        };
        self.0 = rest;
        u32::from_ne_bytes(*field)
    }

    fn u64(&mut self) -> u64 {
        let Some((field, rest)) = self.0.split_first_chunk() else {
            return 0;
        };
        self.0 = rest;
        u64::from_ne_bytes(*field)
    }
}

fn read<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn skip(from: &mut impl Read, bytes: u64) -> io::Result<()> {
    io::copy(&mut from.take(bytes), &mut io::sink()).map(drop)
}

/// Skips the rest of a record; whether it is whole.
fn skip_rest<R: Read>(body: &mut io::Take<R>) -> io::Result<bool> {
    io::copy(body, &mut io::sink())?;
    Ok(body.limit() == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dump(flags: u64, records: &[Vec<u8>]) -> Vec<u8> {
        let mut all = Vec::new();
        for field in [MAGIC, 1, HEADER as u32 + 8, 62, 0, 7] {
            all.extend(field.to_ne_bytes());
        }
        all.extend(5_u64.to_ne_bytes());
        all.extend(flags.to_ne_bytes());
        all.extend([0xff; 8]);
        all.extend(records.concat());
        all
    }

    fn record(kind: u32, time: u64, body: &[u8]) -> Vec<u8> {
        let mut all = Vec::new();
        all.extend(kind.to_ne_bytes());
        all.extend((PREFIX as u32 + body.len() as u32).to_ne_bytes());
        all.extend(time.to_ne_bytes());
        all.extend(body);
        all
    }

    fn numbers(all: &[u64]) -> Vec<u8> {
        all.iter().flat_map(|number| number.to_ne_bytes()).collect()
    }

    fn load(time: u64, start: u64, size: u64, index: u64, name: &str) -> Vec<u8> {
        let mut body = numbers(&[7, start, start, size, index]);
        body.extend(name.as_bytes());
        body.extend([0, 0x90, 0x90]);
        record(LOAD, time, &body)
    }

    fn found(dump: &[u8], addresses: &[u64]) -> Vec<(u64, u64, String, u64)> {
        let found = functions(|| Some(dump), addresses, || false).unwrap();
        let functions = found.into_iter();
        let parts = |function: DumpedFunction| {
            let DumpedFunction { address, since, .. } = function;
            (address, since, function.name.to_string(), function.within)
        };
        functions.map(parts).collect()
    }

    #[test]
    fn functions_have_times() {
        let moved = numbers(&[7, 0, 0x1000, 0x3000, 0x10, 1]);
        let records = [
            load(10, 0x1000, 0x10, 1, "a"),
            record(4, 11, &[1; 33]),
            load(20, 0x1000, 0x20, 2, "b"),
            load(20, 0x1008, 0x20, 3, "c"),
            record(MOVE, 30, &moved),
            load(40, 0x1000, 0x10, 4, ""),
        ];
        let expected = |times: [u64; 4]| {
            [
                (0x1008, times[0], "a".to_owned(), 8),
                (0x1008, times[1], "c".to_owned(), 0),
                (0x101f, times[2], "c".to_owned(), 0x17),
                (0x3001, times[3], "a".to_owned(), 1),
            ]
        };
        let addresses = [0x1008, 0x101f, 0x1028, 0x3001, 0x3010];
        let all = dump(0, &records);
        assert_eq!(found(&all, &addresses), expected([10, 20, 20, 30]));
        // A clock that is not that of the trace.
        let all = dump(OTHER_CLOCK, &records);
        assert_eq!(found(&all, &addresses)[0], expected([0; 4])[1]);
    }

    #[test]
    fn what_is_malformed_is_left_out() {
        let good = load(10, 0x1000, 0x10, 1, "a");
        let (zero, huge) = ([0; PREFIX], [0xff; PREFIX]);
        let long = load(10, 0x2000, 0x10, 2, &"x".repeat(100_000));
        let short = record(LOAD, 1, &[1; 39]);
        let end = load(10, u64::MAX - 1, u64::MAX, 1, "end");
        let all = dump(
            0,
            &[short, long, end, good.clone(), huge.to_vec(), good.clone()],
        );
        let of_all = found(&all, &[0x1000, 0x2000, u64::MAX - 1]);
        assert_eq!(of_all[0].2, "a");
        assert_eq!(of_all[1].2.len() as u64, MAX_ONE_NAME_BYTES);
        assert_eq!(of_all[2].2, "end");
        for end in HEADER..all.len() {
            found(&all[..end], &[0x1000, 0x2000]);
        }
        assert_eq!(found(&dump(0, &[zero.to_vec(), good]), &[0x1000]), []);
        for no_dump in [&b""[..], b"ELF", &[0; 100]] {
            assert!(functions(|| Some(no_dump), &[1], || false).is_err());
        }
        let stopped = functions(|| Some(all.as_slice()), &[0x1000], || true).unwrap();
        assert!(stopped.is_empty());
    }
}
