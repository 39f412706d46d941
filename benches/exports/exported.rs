//! One export.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::Lab;
use crate::recorded::Recorded;
use crate::timed::run;

/// A format.
pub(crate) struct Format {
    pub(crate) name: &'static str,
    /// How many rows it has of a recording.
    pub(crate) rows: fn(&Recorded) -> u64,
}

/// What an export took.
#[derive(Clone, Copy)]
pub(crate) struct Exported {
    /// Seconds.
    pub(crate) cpu: f64,
    /// Bytes.
    pub(crate) memory: u64,
    /// Of all files.
    pub(crate) bytes: u64,
}

const fn format(name: &'static str, rows: fn(&Recorded) -> u64) -> Format {
    Format { name, rows }
}

/// The formats that have events or spans one by one, of any number.
pub(crate) const FORMATS: [Format; 5] = [
    format("parquet", |of| of.events + of.spans),
    format("perfetto", Recorded::slices),
    format("otlp", |of| of.spans),
    format("otlp-proto", |of| of.spans),
    format("perf", |of| of.events),
];

impl Format {
    /// Exports a recording.
    pub(crate) fn export(&self, lab: &Lab, program: &Path, recorded: &Recorded) -> Exported {
        let out = lab.file("exported");
        let mut command = Command::new(program);
        command.args(["export", "--to", self.name, "-i"]);
        command.arg(&recorded.file).arg("-o").arg(&out);
        let taken = run(command);
        let bytes = bytes(&out);
        match out.is_dir() {
            true => fs::remove_dir_all(&out),
            false => fs::remove_file(&out),
        }
        .expect("what was written");
        Exported {
            cpu: taken.cpu,
            memory: taken.memory,
            bytes,
        }
    }
}

/// Bytes of a file, or of all files of a folder.
fn bytes(path: &Path) -> u64 {
    if !path.is_dir() {
        return path.metadata().expect("a file").len();
    }
    let entries = fs::read_dir(path).expect("a folder");
    entries
        .map(|entry| bytes(&entry.expect("an entry").path()))
        .sum()
}
