//! perf.data structures: the file header, event attributes, records, samples and feature sections
//! (`tools/perf/Documentation/perf.data-file-format.txt`, `include/uapi/linux/perf_event.h`).

mod attr;
mod record;
mod sample;

pub use attr::{Attr, EventAttr, SampleType};
pub use record::{RawRecord, RecordType, Records};
pub use sample::{Sample, SampleLayout};
