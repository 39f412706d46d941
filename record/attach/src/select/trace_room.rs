//! Room in the trace for the probes of files. Readers do not take more of a head than some limits, so a file whose probes would exceed one is refused
//! before anything is attached: it would have names, types and strings of all events ignored.

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use usdtrec_format::schema::Labels;
use usdtrec_format::trace::{HeadSize, Limit, LimitExceeded};
use usdtrec_format::{FileDefinition, ProbeDefinition, SiteDefinition};

use crate::select::probe::PlannedProbe;
use crate::select::probe::PlannedSite;
use crate::select::program::Program;
use crate::select::refusal::{Refusal, RefusalReason};

/// What the probes of a recording take of the limits of a trace, as far as it is known before they are attached.
#[derive(Clone, Debug, Default)]
pub struct TraceRoom {
    taken: HeadSize,
}

impl TraceRoom {
    /// What is left beside these probes.
    pub fn beside(probes: &[impl Borrow<PlannedProbe>]) -> Self {
        Self {
            taken: size(probes),
        }
    }

    /// Takes room for the probes of a file.
    ///
    /// # Errors
    /// [`LimitExceeded`]; nothing is taken.
    pub fn take(&mut self, probes: &[PlannedProbe]) -> Result<(), LimitExceeded> {
        self.take_size(&size(probes))
    }

    fn take_size(&mut self, size: &HeadSize) -> Result<(), LimitExceeded> {
        let mut taken = self.taken;
        taken.add(size);
        taken.check()?;
        Limit::StreamHead.check(taken.stream_bytes())?;
        self.taken = taken;
        Ok(())
    }
}

/// Takes out the probes of files for which a trace has no room, those with the most first, and says why.
pub fn refuse_without_room(probes: &mut Vec<PlannedProbe>) -> Vec<Refusal> {
    let mut files: HashMap<*const Program, HeadSize> = HashMap::new();
    for probe in &*probes {
        let file = files.entry(Arc::as_ptr(&probe.program)).or_default();
        file.add(&size(std::slice::from_ref(probe)));
    }
    let mut by_size: Vec<(*const Program, HeadSize)> = files.into_iter().collect();
    by_size.sort_by_key(|(_, size)| size.stream_bytes());
    let mut room = TraceRoom::default();
    let refused = by_size.into_iter().filter_map(|(file, size)| {
        let exceeded = room.take_size(&size).err()?;
        Some((file, exceeded))
    });
    let refused: HashMap<*const Program, LimitExceeded> = refused.collect();
    let mut by_path: BTreeMap<PathBuf, Refusal> = BTreeMap::new();
    probes.retain(|probe| {
        let Some(exceeded) = refused.get(&Arc::as_ptr(&probe.program)) else {
            return true;
        };
        let refusal = by_path.entry(probe.path.clone());
        let refusal = refusal.or_insert_with(|| Refusal {
            path: probe.path.clone(),
            reason: RefusalReason::NoRoom(*exceeded),
            events: Vec::new(),
        });
        refusal.events.push(probe.event());
        false
    });
    let mut refusals: Vec<Refusal> = by_path.into_values().collect();
    for refusal in &mut refusals {
        refusal.events.sort_unstable();
        refusal.events.dedup();
    }
    refusals
}

fn size(probes: &[impl Borrow<PlannedProbe>]) -> HeadSize {
    let mut size = HeadSize::default();
    let mut file = None;
    for probe in probes {
        let probe: &PlannedProbe = probe.borrow();
        // Sites have an event of their own if they have their arguments in another form.
        let mut forms: BTreeMap<&str, Vec<&PlannedSite>> = BTreeMap::new();
        for site in &probe.sites {
            forms.entry(&site.site.args).or_default().push(site);
        }
        for sites in forms.values() {
            add_event(probe, sites, &mut size);
        }
        if file.replace(&probe.path) != Some(&probe.path) {
            size.add_files(&[FileDefinition {
                path: probe.path.clone(),
                build_id: probe.build_id,
                arch: probe.arch,
                by_any_pattern: true,
            }]);
        }
    }
    size
}

/// Adds an event of a probe.
fn add_event(probe: &PlannedProbe, sites: &[&PlannedSite], size: &mut HeadSize) {
    /// Bytes and values of the layout of a sample in JSON, and of an argument there.
    const LAYOUT: (u64, u64) = (256, 16);
    const FIELD: (u64, u64) = (128, 8);
    /// Bytes of the name of a site's function in JSON.
    const PLACE: u64 = 256;
    /// Bytes of attr, ids and lengths beside the name of an event, and its number.
    const ATTR: usize = 320;
    const NUMBER: usize = 12;
    let definition = probe.definition(sites.iter().map(|site| described(site)).collect(), 0);
    let operands = sites.iter().map(|site| site.operands.len()).max();
    let fields = operands.unwrap_or(0).max(definition.arguments.len()) as u64;
    let sites = sites.len() as u64;
    let name = definition.event.len() + NUMBER;
    size.add_probes(std::slice::from_ref(&definition));
    size.take(
        Limit::Definitions,
        LAYOUT.0 + FIELD.0 * fields + PLACE * sites,
    );
    size.take(Limit::Values, LAYOUT.1 + FIELD.1 * fields);
    size.take(Limit::Events, 1);
    size.take(Limit::EventName, name as u64);
    size.take(Limit::EventNames, (ATTR + name) as u64 + 8 * sites);
    let format = format_bytes(&definition) as u64;
    size.take(Limit::Format, format);
    size.take(Limit::Formats, format);
}

fn described(site: &PlannedSite) -> SiteDefinition {
    SiteDefinition {
        site: site.site.clone(),
        ids: vec![u64::MAX],
        place: site.place.clone(),
    }
}

/// Length of the format of its tracepoint, about: it has the name of each argument three times, and words for numbers.
fn format_bytes(probe: &ProbeDefinition) -> usize {
    const OTHERS: usize = 1024;
    const OF_ARGUMENT: usize = 160;
    const OF_WORD: usize = 32;
    let labels = |labels: &Labels| {
        let words = labels.words().values();
        words.map(|word| word.len() + OF_WORD).sum::<usize>()
    };
    let arguments = probe.arguments.iter().map(|argument| {
        OF_ARGUMENT + 3 * argument.name.len() + argument.labels.as_ref().map_or(0, labels)
    });
    OTHERS + probe.event.len() + arguments.sum::<usize>()
}
