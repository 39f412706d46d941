//! A probe that was selected.

use std::path::PathBuf;
use std::sync::Arc as Shared;

use usdtrec_buildid_cache::elf::ObjectFile;
use usdtrec_format::expr::{Capture, Expr};
use usdtrec_format::schema::Argument;
use usdtrec_format::{Arch, BuildId, CapturePlan, Operand, Site, parse_operands};

use crate::RecordError;
use crate::program::Program;
use crate::refusal::{Refusal, RefusalReason};

/// Sites of one probe in one file. Selection gives all that were asked for; of what is planted, those that are captured alike.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedProbe {
    /// Provider.
    pub provider: String,
    /// Name.
    pub name: String,
    /// When it fires, in a line, as its schema says.
    pub description: Option<String>,
    /// What a program needs so that it fires at all, in a line, as its schema says.
    pub needs: Option<String>,
    /// The file, which is open: what was checked is what is planted.
    pub program: Shared<Program>,
    /// What the file is called.
    pub path: PathBuf,
    /// Its build-id.
    pub build_id: Option<BuildId>,
    /// Its architecture.
    pub arch: Option<Arch>,
    /// What a hit hands over: nothing until an engine has planned it.
    pub plan: CapturePlan,
    /// Which hits count; `None` for all.
    pub filter: Option<Expr>,
    /// Which arguments are captured; `None` for those of the note.
    pub captures: Option<Vec<Capture>>,
    /// The sites; at least one.
    pub sites: Vec<PlannedSite>,
    /// What is known of the arguments, as many as the site with the most operands has.
    pub arguments: Vec<Argument>,
}

/// A site and its operands.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedSite {
    /// The site.
    pub site: Site,
    /// What its argument string says.
    pub operands: Vec<Operand>,
}

impl PlannedSite {
    /// Parses the argument string of a site in a file of an architecture.
    #[must_use]
    pub fn new(site: Site, arch: Option<Arch>) -> Self {
        Self {
            operands: parse_operands(&site.args, arch),
            site,
        }
    }
}

impl PlannedProbe {
    /// perf's event name, `sdt_PROVIDER:NAME`.
    #[must_use]
    pub fn event(&self) -> String {
        format!("sdt_{}:{}", self.provider, self.name)
    }

    /// What the kernel wants to know of a site: its file offset and its semaphore's, 0 for none.
    pub(crate) fn offsets(&self, site: &Site) -> Result<(u64, u32), RecordError> {
        let offset = site
            .offset
            .ok_or_else(|| self.refused(RefusalReason::NoSegment))?;
        // The uprobe PMU takes 32 bits (config 32-63, kernel/events/core.c PERF_UPROBE_REF_CTR_OFFSET).
        let semaphore = site.semaphore_offset.unwrap_or(0);
        let low = u32::try_from(semaphore);
        Ok((
            offset,
            low.map_err(|_| self.refused(RefusalReason::SemaphoreOffset(semaphore)))?,
        ))
    }

    /// The error for a probe that cannot be attached.
    pub(crate) fn refused(&self, reason: RefusalReason) -> RecordError {
        RecordError::Refused(vec![Refusal::new(self.event(), &self.path, reason)])
    }

    /// The file.
    pub(crate) fn file(&self) -> &Shared<ObjectFile> {
        self.program.file()
    }
}
