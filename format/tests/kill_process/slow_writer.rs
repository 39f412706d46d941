//! Writes a trace with every write stretched in time, so that whoever kills it finds it in the middle of something.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use usdtrec_format::trace::{Compression, Storage, TraceWriter};

use crate::support;

/// A file on a slow disk: writes arrive in pieces, one after the other.
struct Slow(File);

/// Pieces of a write.
const PIECES: usize = 8;
const PAUSE: Duration = Duration::from_micros(300);

impl Storage for Slow {
    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        std::thread::sleep(PAUSE);
        // A commit's 8 bytes are one copy within a page, which no kill parts.
        let piece = bytes.len().div_ceil(PIECES).max(8);
        for (number, part) in bytes.chunks(piece).enumerate() {
            self.0
                .write_all_at(part, offset + (number * piece) as u64)?;
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
}

/// Writes `rounds` rounds of so many `samples`, and prints after each flush how many samples are committed.
pub(crate) fn write(path: &str, compression: &str, (samples, rounds): (u64, u64)) {
    let compression = match compression {
        "zstd" => Compression::Zstd(1),
        _ => Compression::None,
    };
    let file = Slow(File::create_new(path).unwrap());
    let rounds = support::rounds(rounds, samples);
    println!("begun");
    let mut writer = TraceWriter::create(file, &support::info(), compression).unwrap();
    println!("0");
    for (round, numbers) in rounds.iter().enumerate() {
        support::push_round(&mut writer, round, numbers);
        // Every other flush is within a pass.
        if round % 2 == 0 {
            writer.flush_part().unwrap();
        } else {
            writer.flush().unwrap();
        }
        println!("{}", writer.totals().samples);
        io::stdout().flush().unwrap();
    }
    writer.finish(&support::LOSSES).unwrap();
    println!("finished");
}
