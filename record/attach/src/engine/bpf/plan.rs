//! Plans what the program of each site captures, and the layout of its samples. Sites of a probe with the same layout and the same
//! constants are one event.

use std::collections::HashMap;
use std::sync::Arc;

use usdtrec_buildid_cache::elf::FileId;
use usdtrec_format::expr::Expr;
use usdtrec_format::perf::TracepointFormat;
use usdtrec_format::schema::Argument;
use usdtrec_format::{Arch, CapturePlan, Location, Operand, RawArgument, RawLayout};

use super::aggregate::number_layout::{Measured, measured};
use super::contract::{Rooms, rooms};
use super::contract::{register_offset, runs_here};
use super::program::stack::EndKind;
use super::samples::compact::Shape;
use super::spans::arguments::SpanArguments;
use super::spans::role::SpanRole;
use crate::aggregation::{Aggregation, Arguments};
use crate::engine::options::EngineOptions;
use crate::error::RecordError;
use crate::error::UsageError;
use crate::filter;
use crate::plan::call_graph::{CallGraph, CallGraphMethod, StackSizes};
use crate::plan::capture::{Capture, CaptureSite};
use crate::plan::condition::list::ListedArgument;
use crate::plan::condition::{self, Condition, ConditionError};
use crate::plan::frame::ReturnAddress;
use crate::plan::layout::{OfThread, Strings, layout};
use crate::plan::symbols::NotCaptured;
use crate::select::probe::PlannedProbe;
use crate::select::probe::PlannedSite;
use crate::select::program::CurrentProgram;
use crate::select::refusal::RefusalReason;

/// Id of our first tracepoint. The kernel's ids are small numbers.
pub(super) const FIRST_TYPE: u32 = 10_001;

/// The first ids of a part of the probes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ids {
    /// The smallest sample id.
    pub(super) sample: u64,
    /// The smallest id of a tracepoint: more than 16 bits if none is left.
    pub(super) event: u32,
}

impl Ids {
    /// The ids of the first part, whose sample ids begin with this one.
    pub(super) const fn first(sample: u64) -> Self {
        Self {
            sample,
            event: FIRST_TYPE,
        }
    }
}

/// One event: sites of a probe that share a layout.
#[derive(Debug)]
pub(super) struct Group {
    /// The probe with only these sites, and the layout in its plan.
    pub(super) probe: Arc<PlannedProbe>,
    /// The layout.
    pub(super) layout: RawLayout,
    /// The rooms of its records in the ring.
    pub(super) rooms: Rooms,
    /// How the callers are found; `None` if they are not recorded.
    pub(super) graph: Option<CallGraph>,
    /// What the ends of its records are; `None` if they have none.
    pub(super) end: Option<EndKind>,
    /// The sizes of stacks among which its programs choose; `None` if there is no choice.
    pub(super) sizes: Option<StackSizes>,
    /// What its hits are to spans that programs match; `None` if they are recorded.
    pub(super) role: Option<SpanRole>,
    /// How each site is captured.
    pub(super) plans: Vec<SitePlan>,
    /// The arguments whose numbers are aggregated.
    pub(super) measured: Vec<Measured>,
    /// The constants of its sites.
    constants: Vec<Location>,
}

/// How a site is captured.
#[derive(Debug)]
pub(super) struct SitePlan {
    /// What is captured for each operand.
    pub(super) captures: Vec<Capture>,
    /// Where the return address is, if the callers are found by frame pointers and the function has no frame.
    pub(super) return_address: Option<ReturnAddress>,
    /// Filter of the hits; `None` for all hits.
    pub(super) condition: Option<Condition>,
}

/// What is planned.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlanRequest<'a> {
    pub(super) probes: &'a [PlannedProbe],
    pub(super) options: &'a EngineOptions,
    /// Whether the base of thread-local storage is available.
    pub(super) has_thread: bool,
    /// The id of the first tracepoint.
    pub(super) first_type: u32,
    /// As in [`AttachRequest`](crate::engine::options::AttachRequest).
    pub(super) may_wait: bool,
}

/// Groups the sites of all probes. Sites at which a filter is never true are omitted. `of_spans` says which arguments are read besides those that are
/// aggregated.
///
/// # Errors
/// [`RecordError::Usage`] if there are more events than ids, or a filter or argument list is invalid, or the filter can match at no site;
/// [`RecordError::Refused`] for programs of another architecture.
pub(super) fn group(
    request: &PlanRequest<'_>,
    of_spans: &SpanArguments,
) -> Result<Vec<Group>, RecordError> {
    let PlanRequest {
        probes,
        options,
        has_thread,
        first_type,
        ..
    } = *request;
    let mut planner = Planner {
        strings: options.strings,
        has_thread,
        first_type,
        of_thread: OfThread {
            context: options.thread_context,
            // Where hits are counted, spans alone have them.
            waits: options.off_cpu && options.aggregation.is_none(),
        },
        graph: options.graph,
        aggregation: options.aggregation.as_ref(),
        matches_spans: options.slow_spans.is_some() && options.aggregation.is_none(),
        of_spans,
        groups: Vec::new(),
    };
    let mut firsts: HashMap<(FileId, &str, &str), usize> = HashMap::new();
    let mut current = CurrentProgram::default();
    for probe in probes {
        current.set(&probe.program);
        let key = (probe.file().id(), &*probe.provider, &*probe.name);
        let next = planner.groups.len();
        let first = *firsts.entry(key).or_insert(next);
        let mut groups = planner.groups.iter().skip(first);
        let first = groups
            .position(|group| same(&group.probe, probe))
            .map_or(next, |at| first + at);
        for site in &probe.sites {
            planner.site(probe, site, first)?;
        }
    }
    if planner.groups.is_empty() && probes.iter().any(|probe| probe.filter.is_some()) {
        return Err(UsageError::FilterNeverTrue.into());
    }
    Ok(planner.groups)
}

/// Whether two are sites of one probe in one file of which the same is recorded.
fn same(one: &PlannedProbe, other: &PlannedProbe) -> bool {
    one.program == other.program
        && one.provider == other.provider
        && one.name == other.name
        && one.shown == other.shown
}

struct Planner<'a> {
    strings: Strings,
    has_thread: bool,
    /// What of the thread is recorded.
    of_thread: OfThread,
    graph: Option<CallGraph>,
    /// What is aggregated; `None` if hits are copied out.
    aggregation: Option<&'a Aggregation>,
    /// Whether spans are matched and recorded.
    matches_spans: bool,
    /// Arguments that match spans.
    of_spans: &'a SpanArguments,
    first_type: u32,
    groups: Vec<Group>,
}

/// Where a filter is evaluated.
enum FilterAt {
    Program(Condition),
    Recorder,
}

/// What is captured at a site.
struct Planned {
    plan: SitePlan,
    /// Without an id of its own.
    layout: RawLayout,
    /// Names and types of the arguments.
    arguments: Vec<Argument>,
    constants: Vec<Location>,
    /// Whether the recorder evaluates the filter.
    filter_in_recorder: bool,
}

impl Planner<'_> {
    /// Adds a site to a group of its probe. The probe's groups begin at index `first`.
    fn site(
        &mut self,
        probe: &PlannedProbe,
        site: &PlannedSite,
        first: usize,
    ) -> Result<(), RecordError> {
        let arch = probe.arch.filter(|arch| runs_here(*arch));
        let arch = arch.ok_or_else(|| probe.refused(RefusalReason::Architecture))?;
        let Some(mut planned) = self.plan(probe, site, arch)? else {
            return Ok(());
        };
        let mut groups = self.groups.iter_mut().skip(first);
        if let Some(group) = groups.find(|group| planned.is_of(group, probe)) {
            let known = Arc::make_mut(&mut group.probe);
            known.sites.push(site.clone());
            known.filter_in_recorder |= planned.filter_in_recorder;
            group.plans.push(planned.plan);
            return Ok(());
        }
        let id = self.next_id()?;
        let mut group = planned.group(probe, site, id, self.graph);
        if let Some(aggregation) = self.aggregation {
            group.measured = measured(aggregation, &group.probe, &group.layout)?;
        }
        self.groups.push(group);
        Ok(())
    }

    /// Where the filter of a probe is evaluated at a site. `is_listed`: the values are those of a list, which are not the ones that the filter compares.
    fn filter_at(
        &self,
        probe: &PlannedProbe,
        filter: Option<&Expr>,
        at_site: &condition::site::Site<'_>,
        is_listed: bool,
    ) -> Result<FilterAt, RecordError> {
        let error = match condition_of(filter, at_site) {
            Ok(condition) => return Ok(FilterAt::Program(condition)),
            Err(error) => error,
        };
        let is_of_program = is_listed || self.aggregation.is_some() || self.matches_spans;
        if let ConditionError::Unsupported(_) | ConditionError::FloatArithmetic = error
            && !is_of_program
        {
            match filter::of_samples(probe, self.of_thread.context) {
                Ok(_) => return Ok(FilterAt::Recorder),
                Err(unknown @ RecordError::Usage(UsageError::FilterName { .. })) => {
                    return Err(unknown);
                }
                Err(_) => {}
            }
        }
        let event = probe.event();
        Err(UsageError::Filter { event, error }.into())
    }

    /// The captures without those that are not needed.
    fn needed(
        &self,
        probe: &PlannedProbe,
        captures: Vec<Capture>,
        arguments: &[Argument],
        filter_in_recorder: bool,
    ) -> Vec<Capture> {
        let needed = match self.aggregation {
            Some(aggregation) => {
                let of = Arguments {
                    all: arguments,
                    ..Arguments::from_probe(probe)
                };
                Some(self.of_spans.needed(aggregation, &probe.event(), of))
            }
            None => probe.needed(filter_in_recorder, arguments),
        };
        let is_needed = |place: usize| {
            let needed = needed.as_ref();
            needed.is_none_or(|needed| needed.get(place) == Some(&true))
        };
        // What looks like a string is known from many hits.
        let has_numbers = self.aggregation.is_some() && !self.strings.known;
        let captures = captures.into_iter().enumerate();
        let captures = captures.map(|(place, capture)| match is_needed(place) {
            true if has_numbers => capture.without_string(),
            true => capture,
            false => Capture::Nothing(NotCaptured::LeftOut),
        });
        captures.collect()
    }

    /// Plans a site; `None` if the filter is never true there.
    fn plan(
        &self,
        probe: &PlannedProbe,
        site: &PlannedSite,
        arch: Arch,
    ) -> Result<Option<Planned>, RecordError> {
        let operands = &site.operands;
        let symbols = probe.program.symbols();
        let place = CaptureSite {
            arch,
            pc: site.site.pc,
            symbols: &symbols,
            has_register: &|register| register_offset(arch, register).is_some(),
            has_thread: self.has_thread,
        };
        let captures = operands.iter().map(|operand| place.capture(operand));
        let captures: Vec<_> = captures.collect();
        let addresses = operands.iter().map(|operand| place.address_of(operand));
        let addresses: Vec<_> = addresses.collect();
        let at_site = condition::site::Site {
            arch,
            event: &probe.event(),
            operands,
            captures: &captures,
            addresses: &addresses,
            arguments: &probe.arguments,
            captures_schema: false,
        };
        let listed = self.list(probe, &at_site)?;
        let is_listed = listed.is_some();
        let at_site = condition::site::Site {
            captures_schema: is_listed && probe.computed_list().is_none(),
            ..at_site
        };
        let filter = probe.own_filter();
        let (condition, filter_in_recorder) =
            match self.filter_at(probe, filter.as_ref(), &at_site, is_listed)? {
                // A begin that is excluded is the begin of its end all the same.
                FilterAt::Program(Condition::Never) if !self.matches_spans => return Ok(None),
                FilterAt::Program(Condition::Always) => (None, false),
                FilterAt::Program(condition) => (Some(condition), false),
                FilterAt::Recorder => (None, true),
            };
        let (captures, arguments) = match listed {
            Some(listed) => listed
                .into_iter()
                .map(|listed| (listed.capture, listed.argument))
                .unzip(),
            None => {
                let declared = filter.map(|filter| at_site.with_strings_of(&filter));
                let arguments = declared.unwrap_or_else(|| probe.arguments.clone());
                (captures, arguments)
            }
        };
        let captures = self.needed(probe, captures, &arguments, filter_in_recorder);
        let return_address = self
            .graph
            .filter(|graph| graph.method == CallGraphMethod::FramePointers)
            .and_then(|_| probe.program.frames().return_address(site.site.pc));
        let of_thread = OfThread {
            context: self.of_thread.context && arch.pointer_size() == 8,
            ..self.of_thread
        };
        let mut layout = layout(&captures, self.strings, &arguments, of_thread);
        layout.listed = is_listed;
        Ok(Some(Planned {
            constants: constants(operands, &layout),
            plan: SitePlan {
                captures,
                return_address,
                condition,
            },
            layout,
            arguments,
            filter_in_recorder,
        }))
    }

    /// The arguments in place of the note's; `None` for those of the note.
    fn list(
        &self,
        probe: &PlannedProbe,
        at_site: &condition::site::Site<'_>,
    ) -> Result<Option<Vec<ListedArgument>>, RecordError> {
        let Some(list) = probe.computed_list() else {
            let reads_strings = self.strings.limit > 0;
            return Ok(reads_strings.then(|| at_site.list_of_schema()).flatten());
        };
        let listed = at_site.list(list);
        let listed = listed.map_err(|error| UsageError::Arguments {
            event: probe.event(),
            error,
        })?;
        Ok(Some(listed))
    }

    /// The id of the next group.
    fn next_id(&self) -> Result<u16, UsageError> {
        let id = self.first_type + self.groups.len() as u32;
        let most = u16::MAX - FIRST_TYPE as u16;
        u16::try_from(id).map_err(|_| UsageError::TooManyEvents { most })
    }
}

/// A filter, compiled for a site.
fn condition_of(
    filter: Option<&Expr>,
    at_site: &condition::site::Site<'_>,
) -> Result<Condition, ConditionError> {
    filter.map_or(Ok(Condition::Always), |filter| at_site.condition(filter))
}

/// The operands that the layout leaves to the note.
fn constants(operands: &[Operand], layout: &RawLayout) -> Vec<Location> {
    let arguments = operands.iter().zip(&layout.arguments);
    arguments
        .filter(|(_, argument)| **argument == RawArgument::Constant && !layout.listed)
        .map(|(operand, _)| operand.location.clone())
        .collect()
}

impl Planned {
    /// Whether the site is one of this group, whose id it gets.
    fn is_of(&mut self, group: &Group, probe: &PlannedProbe) -> bool {
        self.layout.id = group.layout.id;
        // A probe may have very many forms.
        self.layout == group.layout
            && group.constants == self.constants
            && same(&group.probe, probe)
            // The types of an argument list, and those that a filter declares, depend on the site's operands.
            && group.probe.arguments == self.arguments
    }

    /// A group of this site alone.
    fn group(
        self,
        probe: &PlannedProbe,
        site: &PlannedSite,
        id: u16,
        graph: Option<CallGraph>,
    ) -> Group {
        let layout = RawLayout { id, ..self.layout };
        Group {
            probe: Arc::new(PlannedProbe {
                plan: CapturePlan {
                    raw: Some(layout.clone()),
                    user: true,
                    ..CapturePlan::default()
                },
                sites: vec![site.clone()],
                arguments: self.arguments,
                filter_in_recorder: self.filter_in_recorder,
                ..probe.clone()
            }),
            rooms: rooms(&layout),
            sizes: graph
                .map(CallGraph::sizes)
                .filter(|sizes| sizes.all.len() > 1),
            end: graph
                .zip(probe.arch)
                .map(|(graph, arch)| EndKind::for_graph(graph, arch)),
            graph,
            layout,
            role: None,
            plans: vec![self.plan],
            measured: Vec::new(),
            constants: self.constants,
        }
    }
}

impl Group {
    /// Size of the values, with the whole rooms of the strings, bytes.
    pub(super) fn whole_bytes(&self) -> usize {
        let strings = self.layout.strings().count();
        usize::from(self.layout.size) + strings * self.rooms.whole.each
    }

    /// The same with another id of its tracepoint.
    pub(super) fn with_id(mut self, id: u16) -> Self {
        self.layout.id = id;
        Arc::make_mut(&mut self.probe).plan.raw = Some(self.layout.clone());
        self
    }

    /// The tracepoint's format, for stock perf.
    pub(super) fn format(&self) -> TracepointFormat {
        let args = self.probe.sites.first().map_or("", |site| &site.site.args);
        let PlannedProbe {
            provider,
            name,
            arch,
            arguments,
            shown,
            ..
        } = &*self.probe;
        let shown = shown.as_deref();
        let layout = &self.layout;
        TracepointFormat::of_layout(provider, name, layout, args, *arch, arguments, shown)
    }

    /// The shape of its records that end with so many bytes from which the callers are found.
    pub(super) const fn shape(&self, end: usize) -> Shape<'_> {
        Shape {
            layout: &self.layout,
            rooms: self.rooms,
            end,
        }
    }

    /// Architecture of the traced program.
    pub(super) fn arch(&self) -> Arch {
        self.probe.arch.unwrap_or(Arch::X86_64)
    }
}
