//! The events of a trace, with what is needed to decode their samples.

use std::cell::LazyCell;
use std::sync::Arc;

use foldhash::HashMap;
use usdtrec_decode::{Decoder, TracepointDecoder};
use usdtrec_format::perf::{Attr, EventAttr, Sample, SampleLayout, SampleType, TracepointFormat};
use usdtrec_format::schema::telemetry::Telemetry;
use usdtrec_format::schema::{Argument, Disagreement, LockUse, ProbeSchema, Schemas, ScriptCall};
use usdtrec_format::trace::TraceInfo;
use usdtrec_format::{
    Arch, Definitions, NoContext, NoWaits, Probe, ProbeDefinition, ShownArgument, ThreadContext,
    ThreadWaits,
};

use crate::added::added_argument::{AddedArgument, AddedPlace};
use crate::session::event_name::{event_name, short_name};

/// One event of a trace: one attr.
#[derive(Debug, Default)]
pub struct Event {
    /// Name (`sdt_tick:loop1`).
    pub name: String,
    /// Whether it is a probe, whose arguments follow the address of the hit: not so for the kernel's tracepoints.
    pub is_probe: bool,
    /// The attr.
    pub attr: Attr,
    /// Index of its definition in [`Definitions::probes`]; `None` if the trace has none for it.
    pub probe: Option<usize>,
    /// The build-id of the file with the probe, if the trace has it.
    pub build_id: Option<Box<str>>,
    /// Its arguments, as an argument list names and chooses them, then those that were added.
    pub arguments: Vec<Argument>,
    /// The arguments that were added: the last ones.
    pub added: Vec<AddedArgument>,
    /// The names that schemas have for them, if a list names, chooses or orders them.
    own_names: Option<Vec<String>>,
    /// Types of its arguments (`s32`, `str`), where a tracepoint's format has them.
    pub types: Vec<String>,
    /// Indices of its sites in [`Events::sites`].
    pub sites: std::ops::Range<usize>,
    /// Which function of a script is called or returns there, if one does.
    pub(crate) call: Option<ScriptCall>,
    /// What is done with a lock there, if anything is.
    pub lock: Option<LockUse>,
    /// What a span that begins or ends there is in OpenTelemetry.
    pub telemetry: Telemetry,
    /// Offset of the thread context in the raw part, if samples have it.
    pub(crate) thread_context: Option<u16>,
    /// Offset of how long the thread has waited, if samples have it.
    pub(crate) thread_waits: Option<u16>,
    pub(crate) layout: SampleLayout,
}

/// A site of a probe, ready to decode.
#[derive(Debug)]
pub struct EventSite {
    /// Address of the nop as linked.
    pub pc: u64,
    /// File offset of the nop, if known.
    pub offset: Option<u64>,
    /// Its decoder.
    pub decoder: Decoder,
    /// Indexes of the arguments whose strings samples may lack.
    pub(crate) unread_arguments: Vec<usize>,
    pub(crate) ids: Vec<u64>,
    /// The arguments that were added to its event.
    pub(crate) added: AddedOfSite,
}

/// The arguments that were added to the event of a site.
#[derive(Clone, Debug, Default)]
pub(crate) struct AddedOfSite {
    /// Where their values are.
    pub(crate) places: Arc<[AddedPlace]>,
    /// The index of the first one.
    pub(crate) first: usize,
}

/// All events of a trace, and the sites of all of them.
#[derive(Debug, Default)]
pub struct Events {
    /// Events in the order of the file's attrs.
    pub events: Vec<Event>,
    /// Sites, those of one event together.
    pub sites: Vec<EventSite>,
    /// Where schemas that were given do not agree with the trace.
    pub disagreements: Vec<Disagreement>,
}

impl Event {
    /// Whether it is called so: with its provider or without.
    pub fn is_called(&self, name: &str) -> bool {
        let short = short_name(&self.name);
        let bare = short.split_once(':').map_or(short, |(_, bare)| bare);
        [bare, short, &self.name].contains(&name)
    }

    /// The index of an argument: by its name, as `args.NAME`, or as `arg1`, `arg2`, …; of a span around the hit, as `SPAN.NAME` or `SPAN.arg1`.
    pub fn argument(&self, name: &str) -> Option<usize> {
        let named = |name: &str| self.arguments.iter().position(|known| known.name == name);
        let bare = name.strip_prefix("args.");
        let numbered = || {
            let number = bare.unwrap_or(name).strip_prefix("arg")?;
            let place = number.parse::<usize>().ok()?.checked_sub(1)?;
            let is_own = place < self.own_arguments().len();
            (is_own && !number.starts_with(['0', '+'])).then_some(place)
        };
        let of_span = || Argument::place_in_span(&self.arguments, name);
        named(name)
            .or_else(|| bare.and_then(named))
            .or_else(numbered)
            .or_else(of_span)
    }

    /// The index of an argument by `PROBE.NAME`, if the event is called so.
    pub fn argument_of_probe(&self, name: &str) -> Option<usize> {
        let (probe, argument) = name.rsplit_once('.')?;
        self.argument(argument).filter(|_| self.is_called(probe))
    }

    /// Whether the value of the argument at a place is a part of the names of functions of scripts, or of their files.
    pub fn names_functions(&self, place: usize) -> bool {
        let arguments = self.call.as_ref().and_then(ScriptCall::arguments);
        let mut places = arguments
            .into_iter()
            .flatten()
            .map(|name| self.own_argument(name));
        places.any(|named| named == Some(place))
    }

    /// Its arguments without those that were added.
    pub fn own_arguments(&self) -> &[Argument] {
        let own = self.arguments.len().saturating_sub(self.added.len());
        self.arguments.get(..own).unwrap_or_default()
    }

    /// The index of the argument that schemas call so; `None` if a list leaves it out.
    pub fn own_argument(&self, name: &str) -> Option<usize> {
        match &self.own_names {
            Some(names) => names.iter().position(|known| known == name),
            None => self.arguments.iter().position(|known| known.name == name),
        }
    }

    /// The request that the thread of a sample was working on.
    #[inline]
    pub(crate) fn context_of(&self, sample: &Sample<'_>) -> Result<ThreadContext, NoContext> {
        let offset = self.thread_context.ok_or(NoContext::NotRecorded)?;
        ThreadContext::decode(sample.raw, offset)
    }

    /// How long the thread of a sample has waited.
    #[inline]
    pub(crate) fn waits_of(&self, sample: &Sample<'_>) -> Result<ThreadWaits, NoWaits> {
        let offset = self.thread_waits.ok_or(NoWaits::NotRecorded)?;
        ThreadWaits::decode(sample.raw, offset).ok_or(NoWaits::NoRoom)
    }

    fn new(attr: &EventAttr) -> Self {
        Self {
            name: attr.name.clone(),
            layout: SampleLayout::new(&attr.attr),
            attr: attr.attr.clone(),
            ..Self::default()
        }
    }

    /// Sets its arguments: its own ones, or those that a list shows.
    fn show(&mut self, own: Vec<Argument>, shown: Option<&[ShownArgument]>) {
        let Some(shown) = shown else {
            self.arguments = own;
            return;
        };
        let name = |shown: &ShownArgument| own.get(shown.argument).map(|own| own.name.clone());
        let names = shown.iter().map(|shown| name(shown).unwrap_or_default());
        self.own_names = Some(names.collect());
        self.arguments = shown
            .iter()
            .map(|shown| shown.argument_from(&own))
            .collect();
    }

    /// Whether it never fires.
    #[must_use]
    pub const fn is_dummy(&self) -> bool {
        self.attr.kind == Attr::SOFTWARE && self.attr.config == Attr::DUMMY
    }

    /// What a sample counts for: its period, or the event's where samples have none.
    #[must_use]
    pub const fn weight(&self, sample: &Sample<'_>) -> u64 {
        match self.only_weight() {
            Some(weight) => weight,
            None => sample.period,
        }
    }

    /// The [`weight`](Self::weight) of all of its samples, if it is the same.
    pub const fn only_weight(&self) -> Option<u64> {
        match self.attr.sample_type.has(SampleType::PERIOD) {
            true => None,
            false => Some(self.attr.sample_period),
        }
    }

    /// Whether its samples have the callers, or with `--call-graph dwarf` a copy of the stack, from which they are found.
    #[must_use]
    pub const fn has_chain(&self) -> bool {
        self.attr.sample_type.has(SampleType::CALLCHAIN)
            && (self.attr.flags & Attr::EXCLUDE_CALLCHAIN_USER == 0
                || self.attr.sample_type.has(SampleType::STACK_USER))
    }

    /// Whether its samples have the CPU.
    pub const fn has_cpu(&self) -> bool {
        self.attr.sample_type.has(SampleType::CPU)
    }

    /// Whether perf calls it a tracepoint.
    #[must_use]
    pub const fn is_tracepoint(&self) -> bool {
        self.attr.kind == Attr::TRACEPOINT
    }
}

impl Events {
    pub(crate) fn new(info: &TraceInfo, schemas: &Schemas) -> Self {
        let mut all = Self::default();
        all.extend(info, schemas);
        all
    }

    /// Adds the events that `info` has after those so far, which keep their numbers.
    pub(crate) fn extend(&mut self, info: &TraceInfo, schemas: &Schemas) {
        let definitions = info.definitions.as_ref();
        let probes = definitions.map_or(&[][..], |definitions| &definitions.probes);
        // The first of those of one id.
        let formats = info.tracepoints.iter().rev();
        let formats: HashMap<u64, &TracepointFormat> =
            formats.map(|format| (format.id.into(), format)).collect();
        let mut of_events = definitions.map(|all| all.probes_of(&info.events));
        let of_events = of_events.get_or_insert_default();
        for (at, attr) in info.events.iter().enumerate().skip(self.events.len()) {
            let probe = of_events.get(at).copied().flatten();
            let mut event = Event::new(attr);
            // The event's own name may be damaged.
            if let Some(defined) = probe.and_then(|probe| probes.get(probe)) {
                event.name.clone_from(&defined.event);
            }
            match (probe, definitions) {
                (Some(probe), Some(definitions)) => {
                    self.define(&mut event, probe, definitions, schemas);
                }
                _ if event.is_tracepoint() => {
                    if let Some(format) = formats.get(&attr.attr.config) {
                        self.describe(&mut event, format, schemas);
                    }
                }
                _ => {}
            }
            if event.name.is_empty() {
                event.name = event_name(&event.attr);
            }
            self.events.push(event);
        }
    }

    /// Replaces the arguments that were added.
    pub(crate) fn set_added(&mut self, of_event: impl Fn(usize) -> Vec<AddedArgument>) {
        for (at, event) in self.events.iter_mut().enumerate() {
            let own = event.own_arguments().len();
            event.arguments.truncate(own);
            event.added = of_event(at);
            let arguments = event.added.iter().map(|added| added.argument.clone());
            event.arguments.extend(arguments);
            let places: Arc<[AddedPlace]> = event.added.iter().map(|added| added.place).collect();
            for site in self.sites.get_mut(event.sites.clone()).unwrap_or_default() {
                site.added = AddedOfSite {
                    places: Arc::clone(&places),
                    first: own.max(site.decoder.len()),
                };
            }
        }
    }

    /// Sites and arguments as our recorder defines them.
    fn define(&mut self, event: &mut Event, probe: usize, all: &Definitions, schemas: &Schemas) {
        let Some(defined) = all.probes.get(probe) else {
            return;
        };
        let first = self.sites.len();
        let file = all.files.get(defined.file);
        let arch = file.and_then(|file| file.arch);
        let own = self.arguments(defined, arch, schemas);
        let named = ProbeName {
            provider: &defined.provider,
            name: &defined.name,
        };
        let count = own.len();
        let given = named.schema(schemas, count);
        let built_in = LazyCell::new(|| named.schema(&Schemas::built_in(), count));
        event.call = given
            .as_ref()
            .and_then(|schema| schema.call.clone())
            .or_else(|| defined.call.clone())
            .or_else(|| built_in.as_ref()?.call.clone());
        event.lock = given
            .as_ref()
            .and_then(|schema| schema.lock.clone())
            .or_else(|| defined.lock.clone())
            .or_else(|| built_in.as_ref()?.lock.clone());
        let stored = Some(&defined.telemetry).filter(|telemetry| !telemetry.is_empty());
        event.telemetry = given
            .map(|schema| schema.telemetry)
            .or_else(|| stored.cloned())
            .or_else(|| Some(built_in.as_ref()?.telemetry.clone()))
            .unwrap_or_default();
        self.sites.extend(sites(defined, &own, &event.attr, all));
        event.sites = first..self.sites.len();
        let raw = defined.plan.raw.as_ref();
        event.thread_context = raw.and_then(|layout| layout.thread_context);
        event.thread_waits = raw.and_then(|layout| layout.thread_waits);
        event.probe = Some(probe);
        let build_id = file.and_then(|file| file.build_id);
        event.build_id = build_id.map(|id| id.to_string().into());
        event.is_probe = true;
        event.show(own, defined.shown.as_deref());
    }

    /// What a schema says of a probe's own arguments, or else what the trace does. Those that a list computes are no schema's.
    fn arguments(
        &mut self,
        defined: &ProbeDefinition,
        arch: Option<Arch>,
        schemas: &Schemas,
    ) -> Vec<Argument> {
        let listed = defined
            .plan
            .raw
            .as_ref()
            .is_some_and(|layout| layout.listed);
        if listed || schemas.is_empty() {
            return defined.arguments.clone();
        }
        let sites = defined.sites.iter();
        let probe = Probe {
            provider: defined.provider.clone(),
            name: defined.name.clone(),
            sites: sites.map(|definition| definition.site.clone()).collect(),
        };
        let mut described = schemas.describe(&probe, arch);
        // A probe may have several events.
        let seen = &self.disagreements;
        described
            .disagreements
            .retain(|known| !seen.contains(known));
        self.disagreements.extend(described.disagreements);
        match described.choice.schema {
            Some(_) => described.arguments,
            None => defined.arguments.clone(),
        }
    }

    /// Arguments as a tracepoint's format describes them, all at one site that has no address of its own.
    fn describe(&mut self, event: &mut Event, format: &TracepointFormat, schemas: &Schemas) {
        let TracepointDecoder { arguments, decoder } = Decoder::from_tracepoint(format);
        if event.name.is_empty() {
            event.name = format!("{}:{}", format.system, format.name);
        }
        event.is_probe = format.is_probe();
        event.sites = self.sites.len()..self.sites.len() + 1;
        for argument in arguments {
            event.arguments.push(Argument::named(argument.name));
            event.types.push(argument.kind);
        }
        let name = event.name.strip_prefix("sdt_");
        if let Some((provider, name)) = name.and_then(|name| name.split_once(':')) {
            let count = event.arguments.len();
            let choice = schemas.choose(provider, name, count);
            if let Some(schema) = &choice.schema {
                event.arguments = choice.arguments(count);
                event.call.clone_from(&schema.call);
                event.lock.clone_from(&schema.lock);
                event.telemetry.clone_from(&schema.telemetry);
            }
            let misfits = choice.misfits.iter().map(|misfit| Disagreement {
                event: event.name.clone(),
                place: misfit.place.clone(),
                words: misfit.to_string(),
            });
            self.disagreements.extend(misfits);
        }
        self.sites.push(EventSite {
            pc: 0,
            offset: None,
            unread_arguments: decoder.unread_arguments(),
            decoder,
            ids: Vec::new(),
            added: AddedOfSite::default(),
        });
    }
}

/// A probe by its name.
#[derive(Clone, Copy)]
struct ProbeName<'n> {
    provider: &'n str,
    name: &'n str,
}

impl ProbeName<'_> {
    /// Its schema, if there is one.
    fn schema(self, schemas: &Schemas, arguments: usize) -> Option<ProbeSchema> {
        let Self { provider, name } = self;
        schemas.choose(provider, name, arguments).schema
    }
}

fn sites(
    probe: &ProbeDefinition,
    arguments: &[Argument],
    attr: &Attr,
    all: &Definitions,
) -> impl Iterator<Item = EventSite> {
    let arch = all.files.get(probe.file).and_then(|file| file.arch);
    probe.sites.iter().map(move |definition| {
        let decoder = match &probe.plan.raw {
            Some(layout) => Decoder::from_raw(&definition.site.args, arch, layout),
            None => Decoder::new(&definition.site.args, arch, attr),
        };
        let decoder = decoder.typed(arguments);
        let decoder = match &probe.shown {
            Some(shown) => decoder.showing(shown),
            None => decoder,
        };
        EventSite {
            pc: definition.site.pc,
            offset: definition.site.offset,
            unread_arguments: decoder.unread_arguments(),
            decoder,
            ids: definition.ids.clone(),
            added: AddedOfSite::default(),
        }
    })
}
