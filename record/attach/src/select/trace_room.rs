//! Room in the trace for the probes of files. Readers do not take more of a head than some limits, so a file whose probes would exceed one is refused
//! before anything is attached: it would have names, types and strings of all events ignored. Of a file that nobody named, an account has a
//! [part](crate::places).

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use usdtrec_format::schema::Labels;
use usdtrec_format::trace::{HeadSize, Limit};
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
    /// Why there is none; nothing is taken.
    pub fn take(
        &mut self,
        program: &Program,
        probes: &[PlannedProbe],
    ) -> Result<(), RefusalReason> {
        self.take_size(program, &size(probes))
    }

    fn take_size(&mut self, program: &Program, size: &HeadSize) -> Result<(), RefusalReason> {
        let mut taken = self.taken;
        taken.add(size);
        taken.check().map_err(RefusalReason::NoRoom)?;
        let stream = Limit::StreamHead.check(taken.stream_bytes());
        stream.map_err(RefusalReason::NoRoom)?;
        let of_account = program.take_head(size.stream_bytes());
        of_account.map_err(RefusalReason::Places)?;
        self.taken = taken;
        Ok(())
    }
}

/// A file with probes, and what they take.
struct SizedFile<'p> {
    program: &'p Program,
    path: &'p Path,
    /// Whether nobody named it.
    is_found: bool,
    size: HeadSize,
}

/// Takes out the probes of files for which a trace has no room, those that nobody named and have the most first, and says why.
pub fn refuse_without_room(probes: &mut Vec<PlannedProbe>) -> Vec<Refusal> {
    let mut files: HashMap<*const Program, SizedFile<'_>> = HashMap::new();
    for probe in &*probes {
        let file = files.entry(Arc::as_ptr(&probe.program));
        let file = file.or_insert_with(|| SizedFile {
            program: &probe.program,
            path: &probe.path,
            is_found: probe.is_found,
            size: HeadSize::default(),
        });
        file.size.add(&size(std::slice::from_ref(probe)));
    }
    let mut files: Vec<SizedFile<'_>> = files.into_values().collect();
    files.sort_by_key(|file| (file.is_found, file.size.stream_bytes(), file.path));
    let mut room = TraceRoom::default();
    let refused = files.into_iter().filter_map(|file| {
        let reason = room.take_size(file.program, &file.size).err()?;
        Some((std::ptr::from_ref(file.program), reason))
    });
    let refused: HashMap<*const Program, RefusalReason> = refused.collect();
    let mut by_path: BTreeMap<PathBuf, Refusal> = BTreeMap::new();
    probes.retain(|probe| {
        let Some(reason) = refused.get(&Arc::as_ptr(&probe.program)) else {
            return true;
        };
        let refusal = by_path.entry(probe.path.clone());
        let refusal = refusal.or_insert_with(|| Refusal {
            path: probe.path.clone(),
            reason: reason.clone(),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::places::{Account, PlaceCount, Places};
    use crate::select::probe::made_up;

    /// Files of one user with long names leave room for those of others, and for files that are named.
    #[test]
    fn long_names_of_a_user_do_not_fill_the_head() {
        const FILES: u32 = 5;
        let places = Places::default();
        let names = |length: usize, file: u32| {
            (0..500).map(move |number| format!("{file}_{number}_{}", "x".repeat(length)))
        };
        let probes_of = |user: u32, length: usize, file: u32| {
            let program = made_up::program();
            let need = PlaceCount {
                files: 1,
                ..PlaceCount::default()
            };
            program.hold(places.take(&[Account::of_user(user)], need).unwrap());
            let probes = names(length, file).map(|name| PlannedProbe {
                path: PathBuf::from(format!("/{user}/{file}")),
                ..made_up::probe(&name, "8@%rdi", &program)
            });
            probes.collect::<Vec<_>>()
        };
        let long = |user| (0..FILES).flat_map(move |file| probes_of(user, 8000, file));
        let mut probes: Vec<PlannedProbe> = long(1000).chain(probes_of(1001, 8, 0)).collect();
        let refused = refuse_without_room(&mut probes);
        assert!((1..FILES as usize).contains(&refused.len()), "{refused:?}");
        let reason = refused[0].reason.to_string();
        assert!(reason.contains("user 1000 would have"), "{reason}");
        let is_there = |path: &str| probes.iter().any(|probe| probe.path.as_os_str() == path);
        assert!(is_there("/1000/0") && is_there("/1001/0"));
        // The same limits while following.
        let mut room = TraceRoom::beside(&probes);
        let mut take = |probes: Vec<PlannedProbe>| {
            let program = Arc::clone(&probes[0].program);
            room.take(&program, &probes)
        };
        assert!(take(probes_of(1000, 8000, 7)).is_err());
        assert!(take(probes_of(1002, 8000, 0)).is_ok());
    }
}
