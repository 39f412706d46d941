//! Readings of the trace's clock and the wall clock at one moment.
//!
//! A recorder reads both clocks when it begins, every minute, when somebody has set the wall clock, and when it ends. Each flush writes the
//! new readings in a record of type 65, which perf ignores:
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 8 | `USDTCLCK` |
//! | 8 | 4 | CRC-32 (IEEE) of the rest, up to the last reading |
//! | 12 | 4 | number of readings |
//! | 16 | 8 | file offset of the previous ones; 0 if there are none, or in a pipe |
//! | 24 | 32 each | readings in the order of time: the trace's clock, ns (8); `CLOCK_REALTIME`, ns since 1970 (8); error, ns (4); flags (4: bit 0 the next two are known, bit 1 synchronized); estimated error of the wall clock, µs (4); maximum error, µs (4) |
//!
//! Each node of the [`index`](super::index) has the offset of the newest record.

use super::chunk::RECORD_HEADER;
use super::footer::put_ignored_record;
use super::read_error::ReadError;
use super::trace_files::TraceFiles;
use crate::perf::cursor::Cursor;

const MAGIC: [u8; 8] = *b"USDTCLCK";
/// Size of the header, bytes.
const HEAD: usize = 24;
/// Size of a reading, bytes.
const READING: usize = 32;
/// Offset after the CRC.
const CRC_FROM: usize = 12;
/// Maximum number of readings in a record, whose size is a `u16`.
const MAX_IN_RECORD: usize = 2000;
/// Maximum number of readings that are read: those of two years. Earlier ones are not.
const MAX_READINGS: usize = 1 << 20;
const KNOWN: u32 = 1;
const SYNCHRONIZED: u32 = 2;

/// A reading of the trace's clock and the wall clock at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// The trace's clock, ns.
    pub clock_ns: u64,
    /// `CLOCK_REALTIME`, ns since 1970.
    pub wall_ns: u64,
    /// Maximum time between the two readings, ns.
    pub error_ns: u32,
    /// What the host knows about its wall clock; `None` if it did not say.
    pub wall_quality: Option<WallQuality>,
}

impl ClockReading {
    /// Nanoseconds by which the wall clock is ahead of the trace's.
    #[must_use]
    pub fn ahead(&self) -> i128 {
        i128::from(self.wall_ns) - i128::from(self.clock_ns)
    }

    /// Whether the wall clock was set between two readings: `CLOCK_MONOTONIC` and `CLOCK_REALTIME` run at the same rate, so that otherwise
    /// their difference is the same up to the errors of both readings.
    #[must_use]
    pub fn is_step(&self, later: &Self) -> bool {
        let errors = u128::from(self.error_ns) + u128::from(later.error_ns);
        self.ahead().abs_diff(later.ahead()) > errors
    }
}

/// What a host knows about the difference of its wall clock from UTC (`adjtimex(2)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallQuality {
    /// Whether something synchronizes the clock (no `STA_UNSYNC`).
    pub is_synchronized: bool,
    /// Estimated error, µs (`esterror`).
    pub estimated_us: u32,
    /// Maximum error, µs (`maxerror`).
    pub maximum_us: u32,
}

/// Appends records with all readings. `at` is the file offset of the first byte of `out`, `previous` that of the newest record of readings.
/// Returns the offset of the last record; `None` if there are no readings.
pub(crate) fn put(
    readings: &[ClockReading],
    at: u64,
    previous: u64,
    out: &mut Vec<u8>,
) -> Option<u64> {
    let mut newest = None;
    for readings in readings.chunks(MAX_IN_RECORD) {
        let payload = put_ignored_record(out, |out| {
            let start = out.len();
            out.extend(MAGIC);
            out.extend([0; 4]);
            out.extend((readings.len() as u32).to_le_bytes());
            out.extend(newest.unwrap_or(previous).to_le_bytes());
            for reading in readings {
                reading.encode(out);
            }
            let crc = crc32fast::hash(&out[start + CRC_FROM..]);
            out[start + 8..start + CRC_FROM].copy_from_slice(&crc.to_le_bytes());
        });
        newest = Some(at + payload as u64);
    }
    newest
}

impl ClockReading {
    fn encode(&self, out: &mut Vec<u8>) {
        let (flags, estimated, maximum) = match self.wall_quality {
            None => (0, 0, 0),
            Some(quality) => {
                let synchronized = if quality.is_synchronized {
                    SYNCHRONIZED
                } else {
                    0
                };
                (
                    KNOWN | synchronized,
                    quality.estimated_us,
                    quality.maximum_us,
                )
            }
        };
        out.extend(self.clock_ns.to_le_bytes());
        out.extend(self.wall_ns.to_le_bytes());
        for number in [self.error_ns, flags, estimated, maximum] {
            out.extend(number.to_le_bytes());
        }
    }

    fn take(cursor: &mut Cursor<'_>) -> Option<Self> {
        let (clock_ns, wall_ns) = (cursor.u64()?, cursor.u64()?);
        let (error_ns, flags) = (cursor.u32()?, cursor.u32()?);
        let (estimated_us, maximum_us) = (cursor.u32()?, cursor.u32()?);
        let quality = WallQuality {
            is_synchronized: flags & SYNCHRONIZED != 0,
            estimated_us,
            maximum_us,
        };
        Some(Self {
            clock_ns,
            wall_ns,
            error_ns,
            wall_quality: (flags & KNOWN != 0).then_some(quality),
        })
    }
}

/// The readings of a record.
struct Readings {
    previous: u64,
    readings: Vec<ClockReading>,
}

impl Readings {
    /// Parses the payload of a record; `None` if it has no readings, as none is written, or is damaged.
    fn parse(payload: &[u8]) -> Option<Self> {
        let mut cursor = Cursor::new(payload);
        if cursor.take(MAGIC.len())? != MAGIC.as_slice() {
            return None;
        }
        let (crc, count) = (cursor.u32()?, cursor.u32()? as usize);
        if !(1..=MAX_IN_RECORD).contains(&count) {
            return None;
        }
        let bytes = payload.get(CRC_FROM..HEAD + count * READING)?;
        if crc32fast::hash(bytes) != crc {
            return None;
        }
        let previous = cursor.u64()?;
        let readings = (0..count).map(|_| ClockReading::take(&mut cursor));
        Some(Self {
            previous,
            readings: readings.collect::<Option<_>>()?,
        })
    }
}

/// Whether the payload of a record begins as readings do.
pub(crate) fn is_readings(payload: &[u8]) -> bool {
    payload.starts_with(&MAGIC)
}

/// The readings that were found, and whether others are damaged.
#[derive(Debug, Default)]
pub(crate) struct FoundReadings {
    /// In the order of time.
    pub(crate) readings: Vec<ClockReading>,
    /// File offset of a record that is damaged.
    pub(crate) damaged_at: Option<u64>,
}

impl FoundReadings {
    /// Adds those of a record, in any order.
    fn add(&mut self, source: &TraceFiles, at: u64) -> Result<Option<u64>, ReadError> {
        let mut record = Vec::new();
        if let Some(record_at) = at.checked_sub(RECORD_HEADER as u64) {
            source.read_record(record_at, &mut record)?;
        }
        let payload = record.get(RECORD_HEADER..).unwrap_or_default();
        match Readings::parse(payload) {
            Some(found) => {
                self.readings.extend(found.readings);
                Ok(Some(found.previous))
            }
            None => {
                self.damaged_at = Some(at);
                Ok(None)
            }
        }
    }

    fn in_order(mut self) -> Self {
        self.readings.sort_by_key(|reading| reading.clock_ns);
        self
    }
}

/// Reads the readings of a file, given the offset of the newest record; 0 if there is none. A damaged record hides all before it. Each
/// record must be before the one that refers to it.
///
/// # Errors
/// [`ReadError::Read`].
pub(crate) fn walk(source: &TraceFiles, newest_at: u64) -> Result<FoundReadings, ReadError> {
    let mut found = FoundReadings::default();
    let (mut at, mut limit) = (newest_at, u64::MAX);
    while at != 0 && found.readings.len() < MAX_READINGS {
        if at >= limit {
            found.damaged_at = Some(limit);
            break;
        }
        let Some(previous) = found.add(source, at)? else {
            break;
        };
        (limit, at) = (at, previous);
    }
    Ok(found.in_order())
}

/// Reads the readings at file offsets that a scan of the records found.
///
/// # Errors
/// [`ReadError::Read`].
pub(crate) fn read_all(source: &TraceFiles, all_at: &[u64]) -> Result<FoundReadings, ReadError> {
    let mut found = FoundReadings::default();
    for &at in all_at {
        found.add(source, at)?;
        if found.readings.len() >= MAX_READINGS {
            break;
        }
    }
    Ok(found.in_order())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn source(bytes: &[u8]) -> TraceFiles {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        TraceFiles::new(vec![file]).unwrap()
    }

    fn reading(clock_ns: u64) -> ClockReading {
        ClockReading {
            clock_ns,
            wall_ns: clock_ns + 1_795_000_000_000_000_000,
            error_ns: 25,
            wall_quality: Some(WallQuality {
                is_synchronized: clock_ns.is_multiple_of(2),
                estimated_us: 3,
                maximum_us: 16_000_000,
            }),
        }
    }

    #[test]
    fn readings_round_trip_and_any_flip_shows() {
        let early: Vec<_> = (0..MAX_IN_RECORD as u64 + 1).map(reading).collect();
        let mut late = reading(10_000);
        late.wall_quality = None;
        let mut file = vec![0; 64];
        let first = put(&early, 0, 0, &mut file).unwrap();
        let start = file.len();
        let newest = put(&[late], 0, first, &mut file).unwrap();
        assert_eq!(put(&[], 0, newest, &mut file), None);
        let found = walk(&source(&file), newest).unwrap();
        let all: Vec<_> = early.iter().copied().chain([late]).collect();
        assert_eq!(found.readings, all);
        assert_eq!(found.damaged_at, None);
        for at in start + 8..start + 8 + HEAD + READING {
            let mut bytes = file.clone();
            bytes[at] ^= 0x10;
            let found = walk(&source(&bytes), newest).unwrap();
            assert_eq!(found.damaged_at, Some(newest), "byte {at}");
            let scanned = read_all(&source(&bytes), &[newest, first]).unwrap();
            assert_eq!(scanned.readings, [early[MAX_IN_RECORD]]);
        }
    }

    /// A record cannot make the reader go round in circles.
    #[test]
    fn readings_refer_backwards_only() {
        let mut file = vec![0; 64];
        put(&[reading(1)], 0, 72, &mut file).unwrap();
        let found = walk(&source(&file), 72).unwrap();
        assert_eq!(found.readings.len(), 1);
        assert_eq!(found.damaged_at, Some(72));
    }

    /// Records without readings would be followed through the whole file.
    #[test]
    fn a_record_without_readings_is_damaged() {
        let mut file = vec![0; 64];
        let newest = put(&[reading(1)], 0, 8, &mut file).unwrap();
        let start = newest as usize;
        file[start + CRC_FROM..][..4].fill(0);
        let crc = crc32fast::hash(&file[start + CRC_FROM..start + HEAD]);
        file[start + 8..start + CRC_FROM].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(
            walk(&source(&file), newest).unwrap().damaged_at,
            Some(newest)
        );
    }

    #[test]
    fn a_step_is_more_than_both_errors() {
        let early = reading(1000);
        let mut later = reading(2000);
        later.wall_ns += 50;
        assert!(!early.is_step(&later));
        later.wall_ns += 1;
        assert!(early.is_step(&later));
    }
}
