//! Writes a trace of ten samples of one event, which `perf script` and `usdtrec script` read.
//!
//! `cargo run -p usdtrec-format --example write_trace -- usdtrec.data`

use std::error::Error;
use std::fs::File;
use std::path::Path;

use usdtrec_format::perf::{Attr, Comm, EventAttr, RawRecord, RecordType, SampleId, SampleType};
use usdtrec_format::trace::{Compression, TraceInfo, TraceWriter};

/// The process that hits, the event's id, the site's address.
const PID: i32 = 42;
const ID: u64 = 7;
const SITE: u64 = 0x40_1136;

/// The body of one sample: the parts that the attr below asks for, in perf's order.
fn sample(time: u64) -> Vec<u8> {
    let process = PID.unsigned_abs();
    let mut body = Vec::new();
    body.extend(ID.to_le_bytes());
    body.extend(SITE.to_le_bytes());
    body.extend([process.to_le_bytes(), process.to_le_bytes()].concat());
    body.extend(time.to_le_bytes());
    // The CPU, 4 bytes, and 4 reserved ones.
    body.extend(0_u64.to_le_bytes());
    body
}

/// Writes the file: a name for the process, then the samples, one per millisecond.
pub(crate) fn run(path: &Path) -> Result<(), Box<dyn Error>> {
    let attr = Attr {
        kind: 8, // the number of the uprobe PMU on the recorded machine
        sample_type: SampleType::IDENTIFIER
            | SampleType::IP
            | SampleType::TID
            | SampleType::TIME
            | SampleType::CPU,
        flags: Attr::SAMPLE_ID_ALL,
        ..Attr::default()
    };
    let id_type = attr.id_type();
    let event = EventAttr {
        attr,
        name: "sdt_app:start".to_owned(),
        ids: vec![ID],
    };
    let info = TraceInfo {
        events: vec![event],
        ..TraceInfo::default()
    };
    let mut writer = TraceWriter::create(File::create(path)?, &info, Compression::Zstd(3))?;
    let comm = Comm {
        pid: PID,
        tid: PID,
        exec: false,
        name: b"app",
        id: SampleId::default(),
    };
    let mut records = Vec::new();
    comm.encode(id_type, &mut records);
    for millisecond in 1..=10 {
        let body = sample(millisecond * 1_000_000);
        let record = RawRecord {
            kind: RecordType::SAMPLE,
            misc: 2, // PERF_RECORD_MISC_USER
            body: &body,
            offset: 0,
        };
        record.put(&mut records);
    }
    writer.push(&records);
    // From here on the records are in the file, even if the process is killed.
    writer.flush()?;
    writer.finish(&[])?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os()
        .nth(1)
        .ok_or("usage: write_trace FILE")?;
    run(Path::new(&path))
}
