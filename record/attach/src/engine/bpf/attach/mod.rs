//! Attaching to sites with programs, by the first attach method that works.

pub(super) mod attacher;
pub(super) mod links;
pub(super) mod site_programs;
pub(super) mod unit_links;

use std::io;

use usdtrec_kernel::host::kernel_version::{is_since, tells_processes};
use usdtrec_kernel::{BpfRefusal, KernelError};

use self::attacher::{AttachedSites, Attacher};
use self::links::Links;
use self::site_programs::{Loading, Maps, Site, SitePrograms};
use self::unit_links::{Attachment, Later};
use super::super::options::{AttachMethod, AttachRequest, TaskFilter};
use super::super::outcome::{NotFaultedIn, SkippedMethod};
use super::contract::RecordedProcesses;
use super::nonresident::Touch;
use super::program::spec::Common;
use crate::error::RecordError;

/// The sites, and how to attach to them.
pub(super) struct Attaching<'a> {
    pub(super) sites: &'a [Site<'a>],
    pub(super) common: Common,
    pub(super) maps: Maps<'a>,
    pub(super) request: &'a AttachRequest<'a>,
}

impl Attaching<'_> {
    /// Attaches the sites by the first method that works.
    pub(super) fn run(&self) -> Result<AttachedSites, RecordError> {
        let mut skipped: Vec<SkippedMethod> = Vec::new();
        for &attach_method in self.request.options.choice.bpf_attach_methods() {
            match self.by(attach_method) {
                Ok(mut attached) => {
                    attached.attachment.skipped = skipped;
                    return Ok(attached);
                }
                Err(error @ RecordError::Interrupted(_)) => return Err(error),
                Err(error) => skipped.push(SkippedMethod {
                    attach_method,
                    error,
                }),
            }
        }
        let last = skipped.pop().map(|skipped| skipped.error);
        Err(last.unwrap_or_else(|| KernelError::NoBpf(BpfRefusal::NoAttachMethod).into()))
    }

    /// Attaches nothing: the attach method is the first that the kernel may have.
    pub(super) fn nothing(&self) -> Result<AttachedSites, RecordError> {
        let methods = self.request.options.choice.bpf_attach_methods();
        let may_work = |method: &&AttachMethod| **method != AttachMethod::Multi || is_since(6, 6);
        let method = methods.iter().find(may_work).or_else(|| methods.first());
        let attach_method = *method.ok_or(KernelError::NoBpf(BpfRefusal::NoAttachMethod))?;
        let mut attachment = Attachment::empty(attach_method, self.common.touch);
        if attach_method == AttachMethod::Multi && self.maps.can_hold {
            let processes = self.request.filter.named_processes();
            attachment.later = processes.map(|processes| Later {
                processes,
                named: Vec::new(),
                own: Links::default(),
                everywhere: Links::default(),
            });
        }
        Ok(AttachedSites {
            attachment,
            bad: Vec::new(),
        })
    }

    /// Loads the programs, and prepares links for processes that get links of their own, and for the others. Attaches to nothing.
    pub(super) fn plan(&self) -> Result<AttachedSites, RecordError> {
        let common = Common {
            recorded: RecordedProcesses::Apart,
            ..self.common.clone()
        };
        let loading = Loading {
            sites: self.sites,
            common: &common,
            maps: &self.maps,
            attach_method: AttachMethod::Multi,
        };
        let end_signal = self.request.end_signal;
        let programs = SitePrograms::load(&loading, end_signal)?;
        let attachment = Attachment::empty(AttachMethod::Multi, common.touch);
        Attacher::new(self.sites, programs, attachment, end_signal).plan()
    }

    /// Attaches the sites by one method. Not all kernels support the check of mappings: if it fails, memory that is not resident is not
    /// brought in.
    fn by(&self, attach_method: AttachMethod) -> Result<AttachedSites, RecordError> {
        let asked = self.common.touch;
        let error = match self.by_with(attach_method, asked) {
            Err(error) if matches!(asked, Touch::Look(_)) => error,
            result => return result,
        };
        if matches!(error, RecordError::Interrupted(_)) {
            return Err(error);
        }
        let mut attached = self.by_with(attach_method, Touch::Never)?;
        attached.attachment.not_faulted_in = Some(NotFaultedIn::Refused(error));
        Ok(attached)
    }

    /// Attaches the sites by one method, with one way of reading memory: where processes can be held, to the named processes only, with
    /// the rest prepared.
    fn by_with(
        &self,
        attach_method: AttachMethod,
        touch: Touch,
    ) -> Result<AttachedSites, RecordError> {
        if attach_method == AttachMethod::Event {
            let refusal = match touch {
                Touch::Always if !is_since(6, 10) => Some(BpfRefusal::WaitingEvents),
                Touch::Look(_) if !is_since(6, 0) => Some(BpfRefusal::SleepingEvents),
                _ => None,
            };
            if let Some(refusal) = refusal {
                return Err(KernelError::NoBpf(refusal).into());
            }
        }
        let end_signal = self.request.end_signal;
        let is_apart = attach_method == AttachMethod::Multi && self.maps.can_hold;
        let common = Common {
            touch,
            recorded: if is_apart {
                RecordedProcesses::Apart
            } else {
                self.common.recorded
            },
            ..self.common.clone()
        };
        let attached = || {
            let loading = Loading {
                sites: self.sites,
                common: &common,
                maps: &self.maps,
                attach_method,
            };
            let programs = SitePrograms::load(&loading, end_signal)?;
            let attachment = Attachment::empty(attach_method, touch);
            let attacher = Attacher::new(self.sites, programs, attachment, end_signal);
            attacher.plant(self.request, is_apart)
        };
        attached().map_err(|error| {
            if needs_newer(attach_method, &error) {
                KernelError::NoBpf(BpfRefusal::MultiLinks).into()
            } else {
                error
            }
        })
    }
}

/// Whether an error means that the kernel does not have the attach method: `EINVAL` for uprobe_multi links.
fn needs_newer(attach_method: AttachMethod, error: &RecordError) -> bool {
    let invalid = match error {
        RecordError::Kernel(KernelError::Operation { source, .. })
        | RecordError::Attach { source, .. } => source.kind() == io::ErrorKind::InvalidInput,
        _ => false,
    };
    attach_method == AttachMethod::Multi && invalid && !is_since(6, 6)
}

/// Whether probes may be attached to the named processes only, although processes that they start are recorded, if these can be held.
pub(super) fn can_be_apart(request: &AttachRequest<'_>) -> bool {
    matches!(request.filter, TaskFilter::Processes(_))
        && request
            .options
            .choice
            .bpf_attach_methods()
            .contains(&AttachMethod::Multi)
        && tells_processes()
        && request.filter.held_processes().is_some()
}
