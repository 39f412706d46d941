//! Plans what the program of each site captures, and the layout of its samples. Sites of a probe with the same layout and the same
//! constants are one event.

use usdtrec_format::perf::TracepointFormat;
use usdtrec_format::{Arch, CapturePlan, Location, RawArgument, RawLayout};

use super::context::{register_offset, runs_here};
use super::program::{Rooms, rooms, stack_bytes};
use crate::RecordError;
use crate::plan::call_graph::CallGraph;
use crate::plan::capture::{Capture, Place};
use crate::plan::condition::{self, Condition};
use crate::plan::layout::{Strings, layout};
use crate::probe::{PlannedProbe, PlannedSite};
use crate::refusal::RefusalReason;
use crate::usage_error::UsageError;

/// Id of our first tracepoint. The kernel's ids are small numbers.
pub(in crate::engine) const FIRST_TYPE: u16 = 10_001;

/// One event: sites of a probe that share a layout.
#[derive(Debug)]
pub(in crate::engine) struct Group {
    /// The probe with only these sites, and the layout in its plan.
    pub(in crate::engine) probe: PlannedProbe,
    /// The layout.
    pub(in crate::engine) layout: RawLayout,
    /// The rooms of its records in the ring.
    pub(super) rooms: Rooms,
    /// How each site is captured.
    pub(in crate::engine) plans: Vec<SitePlan>,
    /// The constants of its sites.
    constants: Vec<Location>,
}

/// How a site is captured.
#[derive(Debug)]
pub(in crate::engine) struct SitePlan {
    /// What is captured for each operand.
    pub(in crate::engine) captures: Vec<Capture>,
    /// Filter of the hits; `None` for all hits.
    pub(super) condition: Option<Condition>,
}

/// Abilities of the engine.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Ability {
    /// Whether the base of thread-local storage is available.
    pub(in crate::engine) thread: bool,
    /// Whether pointers may be tried as texts.
    pub(in crate::engine) guesses: bool,
}

/// Groups the sites of all probes. Sites at which a filter is never true are omitted.
///
/// # Errors
/// [`RecordError::Usage`] if there are more events than ids, or a filter or argument list is invalid, or the filter is true at no site;
/// [`RecordError::Refused`] for programs of another architecture.
pub(in crate::engine) fn group(
    probes: &[PlannedProbe],
    strings: Strings,
    ability: Ability,
    graph: Option<CallGraph>,
) -> Result<Vec<Group>, RecordError> {
    let mut planner = Planner {
        strings,
        ability,
        graph,
        groups: Vec::new(),
    };
    for probe in probes {
        let first = planner
            .groups
            .iter()
            .position(|group| same(&group.probe, probe));
        for site in &probe.sites {
            planner.site(probe, site, first.unwrap_or(planner.groups.len()))?;
        }
    }
    if planner.groups.is_empty() && probes.iter().any(|probe| probe.filter.is_some()) {
        return Err(UsageError::FilterNeverTrue.into());
    }
    Ok(planner.groups)
}

/// Whether two are sites of one probe in one file.
fn same(one: &PlannedProbe, other: &PlannedProbe) -> bool {
    one.program == other.program && one.provider == other.provider && one.name == other.name
}

struct Planner {
    strings: Strings,
    ability: Ability,
    graph: Option<CallGraph>,
    groups: Vec<Group>,
}

impl Planner {
    /// Adds a site to a group of its probe. The probe's groups begin at index `first`.
    fn site(
        &mut self,
        probe: &PlannedProbe,
        site: &PlannedSite,
        first: usize,
    ) -> Result<(), RecordError> {
        let arch = probe.arch.filter(|arch| runs_here(*arch));
        let arch = arch.ok_or_else(|| probe.refused(RefusalReason::Architecture))?;
        let operands = &site.operands;
        let symbols = probe.program.symbols();
        let place = Place {
            arch,
            pc: site.site.pc,
            symbols: &symbols,
            has_register: &|register| register_offset(arch, register).is_some(),
            has_thread: self.ability.thread,
        };
        let captures: Vec<_> = operands
            .iter()
            .map(|operand| place.capture(operand))
            .collect();
        let addresses: Vec<_> = operands
            .iter()
            .map(|operand| place.address_of(operand))
            .collect();
        let at_site = condition::Site {
            arch,
            event: &probe.event(),
            operands,
            captures: &captures,
            addresses: &addresses,
            arguments: &probe.arguments,
        };
        let wrong_filter = |error| UsageError::Filter {
            event: probe.event(),
            error,
        };
        let wrong_list = |error| UsageError::Arguments {
            event: probe.event(),
            error,
        };
        let condition = match &probe.filter {
            None => None,
            Some(filter) => match at_site.condition(filter).map_err(wrong_filter)? {
                Condition::Never => return Ok(()),
                Condition::Always => None,
                condition => Some(condition),
            },
        };
        let listed = match &probe.captures {
            Some(list) => Some(at_site.list(list).map_err(wrong_list)?),
            None if self.strings.limit > 0 => at_site.list_of_schema(),
            None => None,
        };
        let is_listed = listed.is_some();
        let (captures, arguments) = match listed {
            Some(listed) => listed
                .into_iter()
                .map(|listed| (listed.capture, listed.argument))
                .unzip(),
            None => (captures, probe.arguments.clone()),
        };
        let guesses = self.ability.guesses || self.strings.known;
        let captures: Vec<_> = captures
            .into_iter()
            .map(|capture| capture.pointing(guesses))
            .collect();
        let mut layout = layout(&captures, self.strings, &arguments);
        layout.listed = is_listed;
        let plan = SitePlan {
            captures,
            condition,
        };
        let constants: Vec<_> = operands
            .iter()
            .zip(&layout.arguments)
            .filter(|(_, argument)| **argument == RawArgument::Constant && !layout.listed)
            .map(|(operand, _)| operand.location.clone())
            .collect();
        let known = self.groups.iter_mut().skip(first).find(|group| {
            layout.id = group.layout.id;
            same(&group.probe, probe)
                && group.layout == layout
                && group.constants == constants
                // The types of an argument list depend on the site's operands.
                && (!layout.listed || group.probe.arguments == arguments)
        });
        if let Some(group) = known {
            group.probe.sites.push(site.clone());
            group.plans.push(plan);
            return Ok(());
        }
        let number = u16::try_from(self.groups.len()).ok();
        layout.id = number
            .and_then(|number| FIRST_TYPE.checked_add(number))
            .ok_or_else(|| {
                let most = u16::MAX - FIRST_TYPE;
                UsageError::TooManyEvents { most }
            })?;
        self.groups.push(Group {
            probe: PlannedProbe {
                plan: CapturePlan {
                    raw: Some(layout.clone()),
                    ..CapturePlan::default()
                },
                sites: vec![site.clone()],
                arguments,
                ..probe.clone()
            },
            rooms: rooms(
                &layout,
                self.graph.map_or(0, |graph| stack_bytes(graph, arch)),
            ),
            layout,
            plans: vec![plan],
            constants,
        });
        Ok(())
    }
}

impl Group {
    /// The tracepoint's format, for stock perf.
    pub(in crate::engine) fn format(&self) -> TracepointFormat {
        let args = self.probe.sites.first().map_or("", |site| &site.site.args);
        let PlannedProbe {
            provider,
            name,
            arch,
            arguments,
            ..
        } = &self.probe;
        TracepointFormat::of_layout(provider, name, &self.layout, args, *arch, arguments)
    }

    /// Architecture of the traced program.
    pub(in crate::engine) fn arch(&self) -> Arch {
        self.probe.arch.unwrap_or(Arch::X86_64)
    }
}
