//! The site that an event hit.

use usdtrec_format::{CodePlace, FileDefinition};
use usdtrec_trace::session::TraceSession;

/// A site of a probe.
#[derive(Clone, Copy, Debug)]
pub struct RowSite<'r> {
    /// Address as linked.
    pub address: u64,
    /// Offset in the file, bytes; `None` if the trace does not say.
    pub offset: Option<u64>,
    /// The file; `None` if the trace does not say.
    pub file: Option<&'r FileDefinition>,
    /// The function and the line; `None` if the trace does not say either.
    pub place: Option<&'r CodePlace>,
}

impl<'r> RowSite<'r> {
    /// The site of an index among those of all events.
    pub(crate) fn new(session: &'r TraceSession, event: usize, site: usize) -> Option<Self> {
        let known = session.events().sites.get(site)?;
        let event = session.events().events.get(event)?;
        let definitions = session.info().definitions.as_ref();
        let probe = definitions.and_then(|all| all.probes.get(event.probe?));
        let of_probe = site.checked_sub(event.sites.start);
        let defined = probe.and_then(|probe| probe.sites.get(of_probe?));
        Some(Self {
            address: known.pc,
            offset: known.offset,
            file: probe.and_then(|probe| definitions?.files.get(probe.file)),
            place: defined.map(|defined| &defined.place),
        })
    }
}
