//! Argument lists without programs: fetch arguments of tracefs events (Documentation/trace/uprobetracer.rst). The samples are rewritten as
//! the bpf engine writes them, so that readers know one form.

mod kernel;
mod plain;
mod site;
mod value;

use std::collections::HashMap;

use usdtrec_format::perf::{Attr, RecordType, Records, TracepointFormat};

use self::plain::{Fields, SiteFields};
use self::site::SitePlan;
use super::bpf::{self, Ability, FIRST_TYPE};
use crate::error::RecordError;
use crate::plan::layout::Strings;
use crate::probe::PlannedProbe;
use crate::usage_error::UsageError;

/// Size of the batches of records that are passed on, bytes: they stay in the CPU's cache until they are read.
const BATCH: usize = 128 << 10;

/// Rewrites samples of the kernel: those of events with argument lists, and those whose arguments are also written as fields.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    plans: Vec<SitePlan>,
    /// For sites without an argument list: how fields are added.
    plain: Vec<SiteFields>,
    /// Index in `plain` by sample id of the kernel.
    plain_sites: foldhash::HashMap<u64, usize>,
    /// Index in `plans` by sample id.
    sites: HashMap<u64, usize>,
    formats: Vec<TracepointFormat>,
    batch: Vec<u8>,
}

/// The sites of a probe that share a layout.
#[derive(Debug)]
pub(super) struct Listed {
    /// The probe with these sites, and the layout in its plan.
    pub(super) probe: PlannedProbe,
    /// Index of the plan of the first site; those of the other sites follow.
    pub(super) first: usize,
}

/// Planned argument lists.
#[derive(Debug)]
pub(super) struct PlannedLists {
    pub(super) fetched: Fetched,
    /// The probes, grouped by layout.
    pub(super) probes: Vec<Listed>,
}

impl Fetched {
    /// Plans probes with argument lists. With `force`, also those with which a traced program can make the kernel log a warning.
    ///
    /// # Errors
    /// [`RecordError::Usage`] for what fetch arguments cannot do, or must not do.
    pub(super) fn plan(
        probes: &[PlannedProbe],
        strings: Strings,
        force: bool,
    ) -> Result<PlannedLists, RecordError> {
        if let Some(probe) = probes.iter().find(|probe| probe.filter.is_some()) {
            let event = probe.event();
            return Err(UsageError::FilterWithArguments { event }.into());
        }
        let mut fetched = Self::default();
        let mut listed = Vec::new();
        let ability = Ability {
            // Refused later with the reason, instead of omitted.
            thread: true,
            guesses: false,
        };
        for group in bpf::group(probes, strings, ability, None)? {
            listed.push(Listed {
                probe: group.probe.clone(),
                first: fetched.plans.len(),
            });
            fetched.formats.push(group.format());
            for site in &group.plans {
                let plan = SitePlan::new(&site.captures, &group.layout, group.arch());
                let wrong = |part| UsageError::FetchArguments {
                    event: group.probe.event(),
                    part,
                };
                fetched.plans.push(plan.map_err(wrong)?);
            }
        }
        let uname = rustix::system::uname();
        let has_texts = fetched.plans.iter().any(SitePlan::has_texts);
        if has_texts && !kernel::keeps_to_its_buffer(&uname.release().to_string_lossy()) {
            return Err(UsageError::FetchOverflow.into());
        }
        let may_warn = fetched
            .plans
            .iter()
            .any(|plan| plan.most_bytes() > kernel::buffer());
        if may_warn && (!force || kernel::panics_on_warning()) {
            let is_fatal = kernel::panics_on_warning();
            return Err(UsageError::FetchWarning { is_fatal }.into());
        }
        Ok(PlannedLists {
            fetched,
            probes: listed,
        })
    }

    /// The fetch arguments of a site, as `uprobe_events` takes them.
    pub(super) fn arguments(&self, plan: usize) -> String {
        self.plans
            .get(plan)
            .map(SitePlan::arguments)
            .unwrap_or_default()
    }

    /// Reads the offsets of a site's fields from the format of its event. `None` if a field is missing.
    pub(super) fn find_fields(&mut self, plan: usize, format: &str) -> Option<()> {
        self.plans.get_mut(plan)?.find_fields(format)
    }

    /// Registers the sample ids of a site.
    pub(super) fn know(&mut self, plan: usize, ids: impl IntoIterator<Item = u64>) {
        self.sites.extend(ids.into_iter().map(|id| (id, plan)));
    }

    /// The formats of the samples, for stock perf.
    pub(super) fn formats(&self) -> Vec<TracepointFormat> {
        self.formats.clone()
    }

    /// Plans fields for a probe without an argument list. `attr` is the attr of the kernel's samples, and becomes that of the samples with
    /// fields. `ids` are the sample ids of each site. Does nothing if no fields are possible.
    pub(super) fn add_fields(&mut self, probe: &PlannedProbe, attr: &mut Attr, ids: &[Vec<u64>]) {
        let number = u16::try_from(self.formats.len()).ok();
        let id = number.and_then(|number| FIRST_TYPE.checked_add(number));
        let Some(fields) = id.and_then(|id| Fields::new(probe, id)) else {
            return;
        };
        for (site, ids) in fields.sites(probe, attr).zip(ids) {
            let number = self.plain.len();
            self.plain_sites.extend(ids.iter().map(|id| (*id, number)));
            self.plain.push(site);
        }
        fields.attr(attr);
        self.formats.push(fields.format().clone());
    }

    /// Passes whole records to `sink`, with rewritten samples.
    pub(super) fn pass(&mut self, records: &[u8], sink: &mut impl FnMut(&[u8])) {
        if self.sites.is_empty() && self.plain_sites.is_empty() {
            return sink(records);
        }
        let (mut walk, mut begin) = (Records::new(records), 0);
        self.batch.clear();
        while let Some(record) = walk.next() {
            if self.batch.len() >= BATCH {
                sink(&self.batch);
                self.batch.clear();
            }
            let whole = records.get(begin..walk.offset()).unwrap_or_default();
            begin = walk.offset();
            // `PERF_SAMPLE_IDENTIFIER` puts the id first. Other records are unchanged.
            let id = record.body.first_chunk().map(|id| u64::from_ne_bytes(*id));
            let site = id.filter(|_| record.kind == RecordType::SAMPLE);
            let plain = site.and_then(|id| self.plain_sites.get(&id));
            if let Some(fields) = plain.and_then(|number| self.plain.get_mut(*number)) {
                fields.rewrite(whole, &mut self.batch);
                continue;
            }
            match site.and_then(|id| self.plans.get(*self.sites.get(&id)?)) {
                // A sample that is shorter than its fields is dropped, and counted as missing at the end.
                Some(plan) => _ = plan.rewrite(whole, &mut self.batch),
                None => self.batch.extend_from_slice(whole),
            }
        }
        self.batch
            .extend_from_slice(records.get(begin..).unwrap_or_default());
        sink(&self.batch);
    }
}
