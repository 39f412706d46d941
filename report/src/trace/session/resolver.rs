//! What a thread that shows samples keeps between them: buffers, and answers that mostly stay the same.

use foldhash::HashMap;
use usdtrec_format::Value;
use usdtrec_format::perf::Sample;

use crate::trace::process::DsoId;
use crate::trace::process::comm::{CommSpan, ProcessNumber};
use crate::trace::process::names::NameId;
use crate::trace::session::TraceSession;
use crate::trace::symbols::Symbol;

/// Most places that are remembered; then the memory is started anew.
const PLACES: usize = 1 << 16;
/// Threads whose names are remembered.
const NAMES: usize = 256;

/// Decodes samples and finds where they hit. One a thread.
#[derive(Debug)]
pub(crate) struct Resolver<'s> {
    session: &'s TraceSession,
    /// Values of each site's arguments, made when first needed.
    values: Vec<Vec<Value>>,
    places: HashMap<(i32, u64), Place>,
    names: Vec<(i32, CommSpan)>,
}

/// The file and the function at an address.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    from: u64,
    until: u64,
    pub(crate) file: Option<DsoId>,
    pub(crate) symbol: Option<Symbol>,
}

/// A span that holds no time.
const NEVER: CommSpan = CommSpan {
    name: None,
    process: ProcessNumber::UNKNOWN,
    from: 0,
    until: 0,
};

impl<'s> Resolver<'s> {
    pub(crate) fn new(session: &'s TraceSession) -> Self {
        Self {
            session,
            values: vec![Vec::new(); session.events.sites.len()],
            places: HashMap::default(),
            names: vec![(0, NEVER); NAMES],
        }
    }

    /// What a thread, or a process by its main thread, is called at a time; `None` if the trace does not say.
    #[inline]
    pub(crate) fn name(&mut self, tid: i32, time: u64) -> Option<NameId> {
        self.comm(tid, time).name
    }

    /// The name of a thread at a time, and which process of its pid a main thread belongs to.
    #[inline]
    pub(crate) fn comm(&mut self, tid: i32, time: u64) -> CommSpan {
        let Some((known, span)) = self.names.get_mut(tid as usize % NAMES) else {
            return self.session.processes.comm(tid, time);
        };
        if *known != tid || !(span.from..span.until).contains(&time) {
            *known = tid;
            *span = self.session.processes.comm(tid, time);
        }
        *span
    }

    pub(crate) const fn session(&self) -> &'s TraceSession {
        self.session
    }

    /// How many arguments a site has.
    pub(crate) fn argument_count(&self, site: usize) -> usize {
        let site = self.session.events.sites.get(site);
        site.map_or(0, |site| site.decoder.len())
    }

    /// The arguments of a sample of a site.
    #[inline]
    pub(crate) fn values(&mut self, site: usize, sample: &Sample<'_>) -> &[Value] {
        let Some(values) = self.values.get_mut(site) else {
            return &[];
        };
        let decoder = &self.session.events.sites[site].decoder;
        if values.len() != decoder.len() {
            *values = decoder.values();
        }
        decoder.decode(sample, values);
        values
    }

    /// One argument of a sample of a site. What [`decoded`](Self::decoded) gives is not of this sample then.
    #[inline]
    pub(crate) fn value(
        &mut self,
        site: usize,
        place: usize,
        sample: &Sample<'_>,
    ) -> Option<&Value> {
        let values = self.values.get_mut(site)?;
        let decoder = &self.session.events.sites[site].decoder;
        if values.len() != decoder.len() {
            *values = decoder.values();
        }
        decoder.decode_one(place, sample, values);
        values.get(place)
    }

    /// The arguments of the site's sample that [`values`](Self::values) were asked of last.
    #[inline]
    pub(crate) fn decoded(&self, site: usize) -> &[Value] {
        self.values.get(site).map_or(&[], Vec::as_slice)
    }

    /// Where a sample hit.
    pub(crate) fn place(&mut self, sample: &Sample<'_>) -> &Place {
        self.place_of(sample, sample.ip)
    }

    /// The file and the function at an address in the process of a sample, at its time.
    pub(crate) fn place_of(&mut self, sample: &Sample<'_>, address: u64) -> &Place {
        if self.places.len() >= PLACES {
            self.places.clear();
        }
        let session = self.session;
        let place = self
            .places
            .entry((sample.pid, address))
            .or_insert_with(|| Place::find(session, sample, address));
        if !(place.from..place.until).contains(&sample.time) {
            *place = Place::find(session, sample, address);
        }
        place
    }
}

impl Place {
    fn find(session: &TraceSession, sample: &Sample<'_>, address: u64) -> Self {
        let mappings = session.mappings();
        let mapping = mappings.mapping(sample.pid, address, sample.time);
        let mapping = mapping.or_else(|| mappings.kernel_mapping(address));
        let symbol = mapping.and_then(|mapping| {
            let offset = mapping.file_offset(address);
            session.symbols().find(mapping.dso, offset)
        });
        Self {
            from: sample.time,
            until: mappings.mappings_until(sample.pid, sample.time),
            file: mapping.map(|mapping| mapping.dso),
            symbol,
        }
    }
}
