//! Stacks of hits that are counted in the kernel.

/// A stack by frame pointers, as addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedStack {
    /// Its number in the recording: others have other ones.
    pub number: u64,
    /// A sample id of the site.
    pub id: u64,
    /// The process.
    pub pid: i32,
    /// Time of the first hit with it, ns of the trace's clock.
    pub time: u64,
    /// Address of the hit.
    pub ip: u64,
    /// The call chain as samples have it ([`Sample::callchain`](usdtrec_format::perf::Sample::callchain)).
    pub callchain: Vec<u8>,
}
