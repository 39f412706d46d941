//! perf.data structures: the file header, event attributes, records, samples and feature sections
//! (`tools/perf/Documentation/perf.data-file-format.txt`, `include/uapi/linux/perf_event.h`).

mod attr;
mod callchain;
pub(crate) mod cursor;
mod deferred_chain;
pub(crate) mod feature;
pub(crate) mod header;
mod lost;
mod mmap;
mod process_change;
pub(crate) mod record;
mod sample;
mod sample_id;
mod task;
pub(crate) mod tracing_data;

pub use attr::{Attr, EventAttr, SampleType};
pub use callchain::{CONTEXT_USER, ChainCut, put_callchain};
pub use deferred_chain::DeferredChain;
pub use feature::{BuildIdEntry, Pmu};
pub use lost::{Lost, LostSamples};
pub use mmap::{Mmap, MmapFile};
pub use process_change::{ProcessChange, ProcessChangeKind, RecordOrder};
pub(crate) use record::record_header;
pub use record::{RawRecord, RecordType, Records, with_padding};
pub use sample::{ChainEntry, Sample, SampleLayout, chain_entries};
pub use sample_id::{SampleId, SplitBody};
pub use task::{Comm, Task};
pub use tracing_data::{
    FieldShape, TracepointField, TracepointFormat, TracingData, TracingDataCut,
};
