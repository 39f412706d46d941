//! usdtrec's own SDT probes (provider `usdtrec`), which `usdtrec demo` records.

use std::ffi::CStr;

use crate::sdt::{Semaphore, sdt_probe};

/// A request of the demonstration's server. Its address is an argument of `request__start`.
#[repr(C)]
pub(crate) struct Request {
    /// Number of the request, from 1.
    pub(crate) id: u64,
    /// Worker that serves it.
    pub(crate) worker: u8,
    /// Number of retries.
    pub(crate) retries: u16,
}

#[unsafe(link_section = ".probes")]
static REQUEST_START: Semaphore = Semaphore::new();
#[unsafe(link_section = ".probes")]
static REQUEST_DONE: Semaphore = Semaphore::new();
#[unsafe(link_section = ".probes")]
static GC_START: Semaphore = Semaphore::new();
#[unsafe(link_section = ".probes")]
static GC_DONE: Semaphore = Semaphore::new();

/// `usdtrec:request__start`: id, method, url, the request itself.
pub(crate) fn request_start(request: &Request, method: &CStr, url: &CStr) {
    sdt_probe!(
        "usdtrec", "request__start", REQUEST_START,
        u64 request.id, ptr method.as_ptr(), ptr url.as_ptr(), ptr std::ptr::from_ref(request)
    );
}

/// `usdtrec:request__done`: id, HTTP status (negative where the connection broke), bytes sent, latency in
/// milliseconds, worker, retries.
pub(crate) fn request_done(request: &Request, status: i32, bytes: u64, latency_ms: f64) {
    sdt_probe!(
        "usdtrec", "request__done", REQUEST_DONE,
        u64 request.id, i32 status, u64 bytes, f64 latency_ms, u8 request.worker, u16 request.retries
    );
}

/// `usdtrec:gc__start`: generation.
pub(crate) fn gc_start(generation: u8) {
    sdt_probe!("usdtrec", "gc__start", GC_START, u8 generation);
}

/// `usdtrec:gc__done`: generation, objects freed, change of the heap in bytes, share of the heap that is in use.
pub(crate) fn gc_done(generation: u8, freed: u32, heap_change: i64, in_use: f32) {
    sdt_probe!(
        "usdtrec", "gc__done", GC_DONE,
        u8 generation, u32 freed, i64 heap_change, f32 in_use
    );
}
