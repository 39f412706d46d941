//! Attaching to sites with programs, by the first attach method that works.

use std::io;

use super::attach_method::AttachMethod;
use super::attacher::{Attacher, Bad};
use super::attachment::Attachment;
use super::kernel::{is_since, tells_processes};
use super::nonresident::Touch;
use super::options::BpfOptions;
use super::program::{Common, Who};
use super::site_programs::{Maps, Site, SitePrograms};
use crate::RecordError;
use crate::kernel_error::BpfRefusal;
use crate::target::Filter;

/// Attaches the sites by the first method that works.
pub(super) fn attach(
    sites: &[Site<'_>],
    common: Common,
    maps: &Maps<'_>,
    options: &BpfOptions<'_>,
) -> Result<(Attachment, Bad), RecordError> {
    let mut last = RecordError::NoBpf(BpfRefusal::NoAttachMethod);
    let mut untouched = None;
    let mut skipped = Vec::new();
    // Not all kernels support the check of mappings.
    let asked = common.touch;
    let ways: &[Touch] = match asked {
        Touch::Look(_) => &[asked, Touch::Never],
        Touch::Never | Touch::Always => &[asked],
    };
    for &attach_method in options.attach_methods {
        if attach_method == AttachMethod::Event && asked == Touch::Always && !is_since(6, 10) {
            last = RecordError::NoBpf(BpfRefusal::WaitingEvents);
            continue;
        }
        for &touch in ways {
            let common = Common {
                touch,
                ..common.clone()
            };
            if touch != Touch::Never && attach_method == AttachMethod::Event && !is_since(6, 0) {
                untouched = Some(BpfRefusal::SleepingEvents.to_string());
                last = RecordError::NoBpf(BpfRefusal::SleepingEvents);
                continue;
            }
            let planted = attach_by(attach_method, (sites, &common), maps, options);
            match planted {
                Ok((mut attachment, bad)) => {
                    attachment.untouched = untouched.filter(|_| touch == Touch::Never);
                    attachment.skipped = skipped;
                    return Ok((attachment, bad));
                }
                Err(error @ RecordError::Interrupted(_)) => return Err(error),
                Err(error) if needs_newer(attach_method, &error) => {
                    last = RecordError::NoBpf(BpfRefusal::MultiLinks);
                }
                Err(error) => last = error,
            }
            untouched = Some(reason(&last));
        }
        skipped.push((attach_method, reason(&last)));
    }
    Err(last)
}

/// Whether an error means that the kernel does not have the attach method: `EINVAL` for uprobe_multi links.
fn needs_newer(attach_method: AttachMethod, error: &RecordError) -> bool {
    let invalid = match error {
        RecordError::Kernel { source, .. } | RecordError::Attach { source, .. } => {
            source.kind() == io::ErrorKind::InvalidInput
        }
        _ => false,
    };
    attach_method == AttachMethod::Multi && invalid && !is_since(6, 6)
}

/// Attaches the sites by one method: where processes can be held, to the named processes only, with the rest prepared.
fn attach_by(
    attach_method: AttachMethod,
    (sites, common): (&[Site<'_>], &Common),
    maps: &Maps<'_>,
    options: &BpfOptions<'_>,
) -> Result<(Attachment, Bad), RecordError> {
    let signals = options.planting.signals;
    let load = |who: Option<Who>| {
        let mut common = common.clone();
        if let Some(who) = who {
            common.who = who;
        }
        SitePrograms::load(sites, &common, maps, (attach_method, signals))
    };
    let is_apart = attach_method == AttachMethod::Multi && maps.can_hold;
    let everywhere = is_apart.then(|| load(Some(Who::Unlinked))).transpose()?;
    let programs = load(is_apart.then_some(Who::Linked))?;
    Attacher::new(sites, programs, (attach_method, common.touch), signals)
        .plant(options, everywhere.as_ref())
}

/// Whether probes may be attached to the named processes only, although processes that they start are recorded, if these can be held.
pub(super) fn can_be_apart(options: &BpfOptions<'_>) -> bool {
    matches!(options.filter, Filter::Processes(_))
        && options.attach_methods.contains(&AttachMethod::Multi)
        && tells_processes()
        && options.filter.held_processes().is_some()
}

/// An error and one line of its cause: of the verifier's log the last line that is not a statistic.
fn reason(error: &RecordError) -> String {
    if let RecordError::NoBpf(reason) = error {
        return reason.to_string();
    }
    let cause = std::error::Error::source(error).map(ToString::to_string);
    let cause = cause.unwrap_or_default();
    let mut lines = cause.lines().filter(|line| !line.starts_with("processed "));
    match lines.next_back() {
        Some(last) => format!("{error}: {last}"),
        None => error.to_string(),
    }
}
