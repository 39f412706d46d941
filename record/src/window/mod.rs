//! A window: the last seconds of a recording, in memory, packed as they will be in a file.
//!
//! Records are packed flush by flush, as for a file, and wait here. Old ones fall out, by age and by bytes. What process records said that fell out is
//! kept, so that a file that begins in the middle has the names and mappings of its processes, also of those that have ended since. A file is made of a
//! copy of the window, which shares the packed records: recording continues meanwhile. What falls out before it is written stays in memory until then.

pub(super) mod content;
pub(super) mod file_maker;
pub(super) mod files;
mod kept_processes;
pub(super) mod writer;

use std::collections::VecDeque;
use std::sync::Arc;

use usdtrec_format::perf::SampleType;
use usdtrec_format::trace::{PackedPart, PackedReader, PackedRecords};

use self::files::WindowLimits;
use self::kept_processes::KeptProcesses;

/// How much longer process records stay than hits, ns: they need not be read in the same pass.
const MARGIN: u64 = 2_000_000_000;
/// The last seconds.
#[derive(Debug)]
pub(super) struct Window {
    limits: WindowLimits,
    samples: VecDeque<Piece>,
    /// All other records.
    others: VecDeque<Piece>,
    /// Number of the next part.
    next: u64,
    /// Memory of all pieces, bytes.
    memory: usize,
    kept: KeptProcesses,
    reader: PackedReader,
    /// Time of the last hit that fell out, ns.
    fell_out: u64,
}

/// Packed records of a part.
#[derive(Clone, Debug)]
struct Piece {
    /// Number of the part.
    number: u64,
    ends_round: bool,
    records: Arc<PackedRecords>,
}

impl Piece {
    fn memory(&self) -> usize {
        self.records.memory()
    }

    /// Time of its latest record; 0 if none has a time.
    fn last(&self) -> u64 {
        self.records.time().map_or(0, |time| time.last)
    }
}

impl Window {
    /// `id_type` is the layout of the sample ids of the records.
    pub(super) fn new(limits: WindowLimits, id_type: SampleType) -> Self {
        Self {
            limits,
            samples: VecDeque::new(),
            others: VecDeque::new(),
            next: 0,
            memory: 0,
            kept: KeptProcesses::new(id_type),
            reader: PackedReader::default(),
            fell_out: 0,
        }
    }

    /// Adds records.
    pub(super) fn add(&mut self, part: PackedPart) {
        let PackedPart {
            metadata,
            samples,
            ends_round,
        } = part;
        let number = self.next;
        self.next += 1;
        for (queue, records) in [(&mut self.others, metadata), (&mut self.samples, samples)] {
            if let Some(records) = records {
                self.memory += records.memory();
                queue.push_back(Piece {
                    number,
                    ends_round,
                    records: Arc::new(records),
                });
            }
        }
    }

    /// Has what is too old fall out, and what exceeds the limit of memory. `now` is ns of the trace's clock.
    pub(super) fn trim(&mut self, now: u64) {
        let begin = now.saturating_sub(self.limits.nanoseconds());
        while self
            .samples
            .front()
            .is_some_and(|oldest| oldest.last() < begin || self.is_full())
        {
            if let Some(oldest) = self.samples.pop_front() {
                self.memory -= oldest.memory();
                self.fell_out = self.fell_out.max(oldest.last());
            }
        }
        // Hits of a piece may be older than it was read.
        let first = self.samples.front();
        let first = first.and_then(|oldest| oldest.records.time());
        let needed = first.map_or(begin, |time| time.first.min(begin));
        let needed = needed.saturating_sub(MARGIN);
        while self
            .others
            .front()
            .is_some_and(|oldest| oldest.last() < needed || self.is_full())
        {
            if let Some(oldest) = self.others.pop_front() {
                self.memory -= oldest.memory();
                let Self { kept, reader, .. } = self;
                oldest.records.read(reader, |records| kept.take(records));
            }
        }
    }

    /// Whether the packed records take too much memory.
    const fn is_full(&self) -> bool {
        self.memory > self.limits.bytes()
    }

    /// Memory of the packed records, bytes.
    pub(super) const fn memory(&self) -> usize {
        self.memory
    }

    /// Time of the last hit that fell out, ns of the trace's clock; 0 if none has.
    pub(super) const fn fell_out(&self) -> u64 {
        self.fell_out
    }

    /// Time of its last hit, ns of the trace's clock; 0 without any.
    fn last_hit(&self) -> u64 {
        self.samples.iter().map(Piece::last).max().unwrap_or(0)
    }

    /// The pieces in the order in which they were added: of a part, process records come first.
    fn pieces(&self) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = self.others.iter().chain(&self.samples).cloned().collect();
        pieces.sort_by_key(|piece| piece.number);
        pieces
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use usdtrec_format::perf::{Comm, RawRecord, RecordType, Records, SampleId};
    use usdtrec_format::trace::{Compression, RecordPacker};

    use super::*;

    const IDS: SampleType = SampleType(
        SampleType::TID.0 | SampleType::TIME.0 | SampleType::CPU.0 | SampleType::IDENTIFIER.0,
    );
    const SECOND: u64 = 1_000_000_000;

    /// A window that gets records.
    struct Filled {
        packer: RecordPacker,
        window: Window,
    }

    impl Filled {
        fn new(seconds: u64, bytes: usize) -> Self {
            let limits = WindowLimits::new(Duration::from_secs(seconds), bytes);
            Self {
                packer: RecordPacker::new(IDS, Compression::None).expect("a packer"),
                window: Window::new(limits, IDS),
            }
        }

        /// A flush of 100 samples in a second, and the name of a process that begins then.
        fn second(&mut self, second: u64) {
            let id = SampleId {
                time: second * SECOND,
                ..SampleId::default()
            };
            let name = format!("at {second}");
            let mut records = Vec::new();
            Comm {
                pid: second as i32,
                tid: second as i32,
                exec: true,
                name: name.as_bytes(),
                id,
            }
            .encode(IDS, &mut records);
            for hit in 0..100 {
                let words = [1, 0x1000, 7, second * SECOND + hit];
                let body: Vec<u8> = words
                    .iter()
                    .flat_map(|word: &u64| word.to_le_bytes())
                    .collect();
                let record = RawRecord {
                    kind: RecordType::SAMPLE,
                    misc: 2,
                    body: &body,
                    offset: 0,
                };
                record.put(&mut records);
            }
            let Self { packer, window } = self;
            packer.push(&records);
            packer.pack(true, |part| window.add(part)).expect("records");
            window.trim(second * SECOND + 100);
        }

        /// The seconds of the hits, and the processes whose names are known.
        fn found(&self) -> (Vec<u64>, Vec<i32>) {
            let (mut seconds, mut pids) = (Vec::new(), Vec::new());
            let mut note = |records: &[u8]| {
                for record in Records::new(records) {
                    if let Some(comm) = Comm::parse(&record, IDS) {
                        pids.push(comm.pid);
                    } else if record.kind == RecordType::SAMPLE {
                        let time = record.body.get(24..32).and_then(<[u8]>::first_chunk);
                        seconds.push(time.map_or(0, |time| u64::from_le_bytes(*time)) / SECOND);
                    }
                }
            };
            self.window.kept.write(&mut note);
            let mut reader = PackedReader::default();
            for piece in self.window.pieces() {
                piece.records.read(&mut reader, &mut note);
            }
            seconds.dedup();
            (seconds, pids)
        }
    }

    #[test]
    fn what_is_too_old_falls_out_and_names_stay() {
        let mut filled = Filled::new(10, 1 << 30);
        for second in 1..=30 {
            filled.second(second);
        }
        let (seconds, pids) = filled.found();
        assert_eq!(seconds, (21..=30).collect::<Vec<_>>());
        assert_eq!(pids, (1..=30).collect::<Vec<_>>());
        assert_eq!(filled.window.fell_out(), 20 * SECOND + 99);
    }

    #[test]
    fn memory_is_bounded_and_names_stay() {
        let mut filled = Filled::new(1000, 50_000);
        for second in 1..=30 {
            filled.second(second);
            assert!(filled.window.memory() <= 50_000, "second {second}");
        }
        let (seconds, pids) = filled.found();
        assert!(seconds.len() > 5 && seconds.len() < 15, "{seconds:?}");
        assert_eq!(seconds.last(), Some(&30));
        assert_eq!(pids, (1..=30).collect::<Vec<_>>());
    }
}
