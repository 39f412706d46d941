//! The events of a trace, with what is needed to decode their samples.

use usdtrec_format::perf::{Attr, EventAttr, Sample, SampleLayout, SampleType};
use usdtrec_format::{Definitions, ProbeDefinition};

use crate::decode::Decoder;

/// One event of a trace: one attr.
#[derive(Debug)]
pub struct Event {
    /// Name (`sdt_tick:loop1`).
    pub name: String,
    /// The attr.
    pub attr: Attr,
    /// Index of its definition in [`Definitions::probes`]; `None` if the trace has none for it.
    pub probe: Option<usize>,
    /// Names of its arguments.
    pub arguments: Vec<String>,
    /// Indices of its sites in [`Events::sites`].
    pub sites: std::ops::Range<usize>,
    pub(crate) layout: SampleLayout,
}

/// A site of a probe, ready to decode.
#[derive(Debug)]
pub struct Site {
    /// Address of the nop as linked.
    pub pc: u64,
    /// File offset of the nop, if known.
    pub offset: Option<u64>,
    /// Its decoder.
    pub decoder: Decoder,
    pub(crate) ids: Vec<u64>,
}

/// All events of a trace, and the sites of all of them.
#[derive(Debug, Default)]
pub struct Events {
    /// Events in the order of the file's attrs.
    pub events: Vec<Event>,
    /// Sites, those of one event together.
    pub sites: Vec<Site>,
}

/// `PERF_TYPE_SOFTWARE` and `PERF_COUNT_SW_DUMMY`: an event that never fires and only brings metadata.
const DUMMY: (u32, u64) = (1, 9);
/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u32 = 2;

impl Event {
    /// Whether it never fires.
    #[must_use]
    pub const fn is_dummy(&self) -> bool {
        self.attr.kind == DUMMY.0 && self.attr.config == DUMMY.1
    }

    /// What a sample counts for, as perf weighs it: its period, or the event's where samples have none.
    #[must_use]
    pub const fn weight(&self, sample: &Sample<'_>) -> u64 {
        if self.attr.sample_type.has(SampleType::PERIOD) {
            sample.period
        } else {
            self.attr.sample_period
        }
    }

    /// Whether perf calls it a tracepoint.
    #[must_use]
    pub const fn is_tracepoint(&self) -> bool {
        self.attr.kind == TRACEPOINT
    }
}

impl Events {
    pub(super) fn new(attrs: &[EventAttr], definitions: Option<&Definitions>) -> Self {
        let mut all = Self::default();
        let probes = definitions.map_or(&[][..], |definitions| &definitions.probes);
        let mut next = 0;
        for attr in attrs {
            // Definitions stand in the order of the attrs, which also has events without one.
            let probe = probes
                .get(next)
                .filter(|probe| probe.event == attr.name)
                .map(|_| next);
            next += usize::from(probe.is_some());
            all.push(attr, probe, definitions);
        }
        all
    }

    fn push(&mut self, attr: &EventAttr, probe: Option<usize>, all: Option<&Definitions>) {
        let first = self.sites.len();
        let defined = probe.and_then(|at| all?.probes.get(at));
        if let (Some(probe), Some(all)) = (defined, all) {
            self.sites.extend(sites(probe, &attr.attr, all));
        }
        self.events.push(Event {
            name: attr.name.clone(),
            layout: SampleLayout::new(&attr.attr),
            attr: attr.attr.clone(),
            probe,
            arguments: defined.map_or_else(Vec::new, |probe| probe.arguments.clone()),
            sites: first..self.sites.len(),
        });
    }
}

fn sites(probe: &ProbeDefinition, attr: &Attr, all: &Definitions) -> impl Iterator<Item = Site> {
    let arch = all.files.get(probe.file).and_then(|file| file.arch);
    probe.sites.iter().map(move |definition| Site {
        pc: definition.site.pc,
        offset: definition.site.offset,
        decoder: match &probe.plan.raw {
            Some(layout) => Decoder::of_raw(&definition.site.args, arch, layout),
            None => Decoder::new(&definition.site.args, arch, attr),
        },
        ids: definition.ids.clone(),
    })
}
