//! A probe that was selected.

use std::path::PathBuf;
use std::sync::Arc as Shared;

use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_format::expr::{Capture, Expr};
use usdtrec_format::schema::telemetry::Telemetry;
use usdtrec_format::schema::{Argument, LockUse, ScriptCall};
use usdtrec_format::spans::place_of_key;
use usdtrec_format::{
    Arch, BuildId, CapturePlan, CodePlace, Operand, ProbeDefinition, ShownArgument, Site,
    SiteDefinition, parse_operands,
};
use usdtrec_kernel::host::cached_pages;

use super::program::Program;
use super::refusal::{Refusal, RefusalReason};
use crate::error::{RecordError, with_source};

/// Sites of one probe in one file: as selected, all of them; as attached, those with the same capture plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedProbe {
    /// Provider.
    pub provider: String,
    /// Name.
    pub name: String,
    /// When the probe fires, in one line, from its schema.
    pub description: Option<String>,
    /// What the program needs for the probe to fire at all, in one line, from its schema.
    pub needs: Option<String>,
    /// Which function of a script is called or returns, from its schema.
    pub call: Option<ScriptCall>,
    /// What is done with a lock, from its schema.
    pub lock: Option<LockUse>,
    /// What a span that begins or ends there is in OpenTelemetry, from its schema.
    pub telemetry: Telemetry,
    /// The open file, so that the checked file is the one that the kernel attaches to.
    pub program: Shared<Program>,
    /// Path of the file.
    pub path: PathBuf,
    /// Its build-id.
    pub build_id: Option<BuildId>,
    /// Its architecture.
    pub arch: Option<Arch>,
    /// What is captured at a hit; empty until an engine has planned it.
    pub plan: CapturePlan,
    /// Filter of the hits; `None` for all hits.
    pub filter: Option<Expr>,
    /// Whether the recorder evaluates the filter because the programs of the sites cannot.
    pub filter_in_recorder: bool,
    /// The argument list; `None` without one.
    pub list: Option<Vec<Capture>>,
    /// The arguments that the list shows, if it computes none; `None` for all.
    pub shown: Option<Vec<ShownArgument>>,
    /// Whether the file was found in a process that nobody named, or appeared while recording, so that what is wrong with the probe is no error of the user.
    pub is_found: bool,
    /// The sites; at least one.
    pub sites: Vec<PlannedSite>,
    /// Names and types of the arguments, as many as the site with the most operands has.
    pub arguments: Vec<Argument>,
}

/// A probe that the kernel refused.
#[derive(Debug)]
pub struct RefusedProbe {
    /// The probe.
    pub probe: PlannedProbe,
    /// Error of attaching it.
    pub error: RecordError,
}

impl RefusedProbe {
    /// The refusal, with the error as its reason.
    pub fn refusal(&self) -> Refusal {
        let reason = match &self.error {
            RecordError::Refused(refusals) => refusals.first().map(|first| first.reason.clone()),
            _ => None,
        };
        let reason = reason.unwrap_or_else(|| RefusalReason::Unfit(with_source(&self.error)));
        Refusal::new(self.probe.event(), &self.probe.path, reason)
    }
}

/// File offsets, as the kernel takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SiteOffsets {
    /// Of the site.
    pub offset: u64,
    /// Of the semaphore, which the kernel calls reference counter; 0 without one.
    pub ref_ctr: u64,
}

impl SiteOffsets {
    /// Indexes of the pages that the kernel reads when it attaches.
    pub fn pages(self) -> impl Iterator<Item = u64> {
        cached_pages::of_site(self.offset, self.ref_ctr)
    }

    /// The `config` of an event of the uprobe PMU, which has 32 bits for the semaphore (`PERF_UPROBE_REF_CTR_OFFSET_BITS`,
    /// `kernel/events/core.c`).
    pub fn pmu_config(self) -> Result<u64, RefusalReason> {
        match u32::try_from(self.ref_ctr) {
            Ok(low) => Ok(u64::from(low) << 32),
            Err(_) => Err(RefusalReason::SemaphoreOffset(self.ref_ctr)),
        }
    }
}

/// File offset of the semaphore that the kernel counts at a site; 0 if there is none, or the kernel would count it wrong
/// (`record/watch/src/semaphores/`).
pub fn ref_ctr(file: &ObjectFile, site: &Site) -> u64 {
    let page = rustix::param::page_size() as u64;
    match file.semaphore_fault(site, page) {
        None => site.semaphore_offset.unwrap_or(0),
        Some(_) => 0,
    }
}

impl PlannedProbe {
    /// perf's event name, `sdt_PROVIDER:NAME`.
    #[must_use]
    pub fn event(&self) -> String {
        format!("sdt_{}:{}", self.provider, self.name)
    }

    /// The arguments as readers show them.
    #[must_use]
    pub fn shown_arguments(&self) -> Vec<Argument> {
        let own = &self.arguments;
        match &self.shown {
            Some(shown) => shown.iter().map(|shown| shown.argument_from(own)).collect(),
            None => own.clone(),
        }
    }

    /// The place of an argument, by its name as readers show it, among those that are captured.
    #[must_use]
    pub fn own_place(&self, name: &str) -> Option<usize> {
        let at = place_of_key(&self.shown_arguments(), name)?;
        match &self.shown {
            Some(list) => Some(list.get(at)?.argument),
            None => Some(at),
        }
    }

    /// File offsets of a site and of the semaphore that the kernel counts there.
    pub fn offsets(&self, site: &Site) -> Result<SiteOffsets, RecordError> {
        let offset = site
            .offset
            .ok_or_else(|| self.refused(RefusalReason::NoSegment))?;
        Ok(SiteOffsets {
            offset,
            ref_ctr: ref_ctr(self.file(), site),
        })
    }

    /// Whether the file was found in a process that nobody named, and another user made it, who is not root: where it does not have what is asked for, that
    /// is no mistake of the user who asks.
    #[must_use]
    pub fn is_of_another_user(&self) -> bool {
        let owner = self.file().owner();
        self.is_found && owner != 0 && owner != rustix::process::geteuid().as_raw()
    }

    /// The refusal of a probe that was found, for an error that is about it alone; the error itself of others.
    pub fn refused_for(&self, error: RecordError) -> Result<RefusedProbe, RecordError> {
        if !self.is_found || matches!(error, RecordError::Interrupted(_)) {
            return Err(error);
        }
        Ok(RefusedProbe {
            probe: self.clone(),
            error,
        })
    }

    /// The error for a probe that cannot be attached.
    pub fn refused(&self, reason: RefusalReason) -> RecordError {
        RecordError::Refused(vec![Refusal::new(self.event(), &self.path, reason)])
    }

    /// What a trace says of it, with these of its sites, in a file with this index.
    pub fn definition(&self, sites: Vec<SiteDefinition>, file: usize) -> ProbeDefinition {
        ProbeDefinition {
            event: self.event(),
            provider: self.provider.clone(),
            name: self.name.clone(),
            description: self.description.clone(),
            needs: self.needs.clone(),
            call: self.call.clone(),
            lock: self.lock.clone(),
            telemetry: self.telemetry.clone(),
            filter: self.filter.as_ref().map(ToString::to_string),
            file,
            plan: self.plan.clone(),
            arguments: self.arguments.clone(),
            shown: self.shown.clone(),
            sites,
        }
    }

    /// The file.
    pub fn file(&self) -> &Shared<ObjectFile> {
        self.program.file()
    }
}

/// A site and its operands.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedSite {
    /// The site.
    pub site: Site,
    /// The operands in its argument string.
    pub operands: Vec<Operand>,
    /// Where in the code it is, as far as is known.
    pub place: CodePlace,
}

impl PlannedSite {
    /// Parses the argument string of a site in a file of this architecture.
    #[must_use]
    pub fn new(site: Site, arch: Option<Arch>) -> Self {
        Self {
            operands: parse_operands(&site.args, arch),
            site,
            place: CodePlace::default(),
        }
    }
}

#[cfg(test)]
pub mod made_up {
    //! What tests plan.

    use super::*;

    /// The program of the test itself.
    pub fn program() -> Shared<Program> {
        of_file(&std::env::current_exe().unwrap())
    }

    /// The same as a file of another user; `None` without the right to make one.
    pub fn program_of_another() -> Option<Shared<Program>> {
        const NOBODY: u32 = 65534;
        let copy = tempfile::NamedTempFile::new().unwrap();
        std::fs::copy(std::env::current_exe().unwrap(), copy.path()).unwrap();
        std::os::unix::fs::chown(copy.path(), Some(NOBODY), None).ok()?;
        Some(of_file(copy.path()))
    }

    fn of_file(path: &std::path::Path) -> Shared<Program> {
        let file = ObjectFile::open(path).unwrap();
        Shared::new(Program::new(Shared::new(file)))
    }

    /// A probe of a file that was found, with one site.
    pub fn probe(name: &str, arguments: &str, program: &Shared<Program>) -> PlannedProbe {
        let arch = Some(Arch::X86_64);
        let site = Site {
            pc: 0x1000,
            base: 0,
            semaphore: 0,
            offset: Some(0x1000),
            semaphore_offset: None,
            args: arguments.to_owned(),
        };
        let site = PlannedSite::new(site, arch);
        PlannedProbe {
            provider: "made_up".to_owned(),
            name: name.to_owned(),
            description: None,
            needs: None,
            call: None,
            lock: None,
            telemetry: Telemetry::default(),
            program: Shared::clone(program),
            path: program.file().path().to_owned(),
            build_id: None,
            arch,
            plan: CapturePlan::default(),
            filter: None,
            filter_in_recorder: false,
            list: None,
            shown: None,
            is_found: true,
            arguments: (0..site.operands.len()).map(Argument::unnamed).collect(),
            sites: vec![site],
        }
    }
}
