//! What to do about an error, in terms of the command line. The libraries' errors say what is wrong and where; the advice is here.
//!
//! `tests/layers/advice.rs` checks that libraries know neither options nor the program's name. Views have hints as data
//! (`report/view/src/hints.rs`), whose words are in `hints`.

mod hints;
#[cfg(feature = "record")]
mod optional_value;
mod reports;

use std::error::Error;

use usdtrec_buildid_cache::{BuildError, CacheError};
use usdtrec_report::ReportError;

use crate::shell;

pub(crate) use self::hints::HINTS;
#[cfg(feature = "record")]
use self::recording::{for_record, for_refusal};
pub(crate) use self::reports::for_field;
use self::reports::for_report;

/// The message of an error with its causes, and the advice in lines of its own.
pub(crate) fn explained(error: &(dyn Error + 'static)) -> String {
    let mut text = message(error);
    let mut known: Vec<String> = Vec::new();
    for advice in chain(error).flat_map(for_error) {
        if !known.contains(&advice) {
            text.push_str("\n  ");
            text.push_str(&advice);
            known.push(advice);
        }
    }
    text
}

/// The message of an error with its causes, separated by colons.
pub(crate) fn message(error: &(dyn Error + 'static)) -> String {
    let messages = chain(error).map(ToString::to_string);
    messages.collect::<Vec<_>>().join(": ")
}

/// An error and its causes.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| Error::source(error))
}

/// Advice for one error.
fn for_error(error: &(dyn Error + 'static)) -> Vec<String> {
    if let Some(error) = error.downcast_ref::<CacheError>() {
        return for_cache(error).into_iter().collect();
    }
    if let Some(error) = error.downcast_ref::<BuildError>() {
        return for_build(error).into_iter().collect();
    }
    if let Some(error) = error.downcast_ref::<ReportError>() {
        return for_report(error).into_iter().collect();
    }
    #[cfg(feature = "record")]
    if let Some(error) = error.downcast_ref::<usdtrec_record::RecordError>() {
        return for_record(error);
    }
    Vec::new()
}

fn for_cache(error: &CacheError) -> Option<String> {
    match error {
        CacheError::NoDirectory => Some("name its directory: --buildid-dir DIR".to_owned()),
        CacheError::Untrusted { .. } => Some(
            "use another cache (--buildid-dir DIR), or change owner and mode (chown -R root:root, chmod -R go-w)"
                .to_owned(),
        ),
        CacheError::NoBuildId(path) => Some(format!(
            "select its probes by path: {}",
            shell::event("sdt_PROVIDER:NAME", path)
        )),
        _ => None,
    }
}

fn for_build(error: &BuildError) -> Option<String> {
    let advice = "give more digits, or all";
    error.is_ambiguous.then(|| advice.to_owned())
}

/// What a recording lacks, with the advice.
#[cfg(feature = "record")]
pub(crate) fn shortfall(shortfall: &usdtrec_format::trace::Shortfall) -> String {
    use usdtrec_format::trace::ShortfallKind;

    if shortfall.found.starts_with(usdtrec_record::TRAPPED) {
        return format!(
            "{shortfall}\n  with -D MSECS (record, trace, stat), or with -p once it runs, the probes are attached later"
        );
    }
    // The options that leave other processes alone.
    let options = match &*shortfall.remedy {
        usdtrec_record::SPARED => " (-p PID, or -- CMD)",
        usdtrec_record::SPARED_ALONE => " (-p PID --no-inherit)",
        _ if shortfall.kind == ShortfallKind::Unjudged => " (see --nonresident)",
        _ => "",
    };
    format!("{shortfall}{options}")
}

/// A refusal with its advice.
#[cfg(feature = "record")]
pub(crate) fn refusal(refusal: &usdtrec_record::Refusal) -> String {
    match for_refusal(refusal) {
        Some(advice) => format!("{refusal}\n  {advice}"),
        None => refusal.to_string(),
    }
}

#[cfg(feature = "record")]
pub(crate) use self::recording::{NO_PROFILER, caution, guard_death, notice};

/// Advice about recording.
#[cfg(feature = "record")]
mod recording {
    use std::io;

    use usdtrec_buildid_cache::elf::CheckError;
    use usdtrec_record::plan::ConditionError;
    use usdtrec_record::{
        Caution, ChoiceError, GuardDeath, KernelError, KernelOperation, NoProbe, Notice,
        RecordError, Refusal, RefusalReason, Searched, TargetError, UsageError,
    };

    use crate::shell;

    /// Advice for kernels that panic if threads that hit probes are profiled, too.
    pub(crate) const NO_PROFILER: &str = "use Linux 6.1.131, 6.6.83, 6.12.19, 6.13 or later, or do not profile (perf record -g, profilers by eBPF) while probes are attached";
    /// Advice where no capability but `CAP_SYS_ADMIN` is enough.
    const AS_ROOT: &str = "record as root, or with CAP_SYS_ADMIN";

    pub(super) fn for_record(error: &RecordError) -> Vec<String> {
        let advice = match error {
            RecordError::Refused(refusals) => {
                return refusals.iter().filter_map(for_refusal).collect();
            }
            RecordError::Usage(error) => for_usage(error).map(str::to_owned),
            RecordError::Command { command, .. } => super::optional_value::advice(command),
            RecordError::NoProbe(error) => Some(for_no_probe(error)),
            RecordError::Build(error) => super::for_build(error),
            RecordError::Choice(ChoiceError::OldGroup(_) | ChoiceError::NoHierarchy { .. }) => {
                Some("name its processes with -p, or filter the trace".to_owned())
            }
            RecordError::Choice(ChoiceError::Root) => {
                Some("record all processes with -a".to_owned())
            }
            RecordError::Target(TargetError::TooManyChildren { .. }) => {
                Some("record all processes with -a, or these without children with -i".to_owned())
            }
            RecordError::Find(error) => super::for_cache(error),
            RecordError::FileOfProcess {
                is_outside: true, ..
            } => Some("record that file without -p".to_owned()),
            RecordError::Kernel(error) => for_kernel(error),
            RecordError::NoTracefs(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Some(AS_ROOT.to_owned())
            }
            RecordError::NoTracefs(_) => {
                Some("mount it: mount -t tracefs tracefs /sys/kernel/tracing".to_owned())
            }
            RecordError::KeepsCapabilities(_) | RecordError::Capabilities(_) => {
                Some("record without --no-follow".to_owned())
            }
            RecordError::Attach { source, .. } => for_system_call(source).map(str::to_owned),
            _ => None,
        };
        advice.into_iter().collect()
    }

    fn for_kernel(error: &KernelError) -> Option<String> {
        match error {
            KernelError::Privilege { .. } => Some(for_privilege()),
            KernelError::Ring { .. } => Some(
                "a smaller -m needs less locked memory (kernel.perf_event_mlock_kb, ulimit -l, or CAP_IPC_LOCK)"
                    .to_owned(),
            ),
            KernelError::Operation {
                operation: KernelOperation::BpfObject(_),
                source,
            } if source.kind() == io::ErrorKind::PermissionDenied && usdtrec_record::has_admin() => Some(
                "before Linux 5.11 BPF maps are locked memory: raise its limit (ulimit -l unlimited), or record with CAP_SYS_RESOURCE"
                    .to_owned(),
            ),
            KernelError::Operation { source, .. } => for_system_call(source).map(str::to_owned),
            _ => None,
        }
    }

    pub(super) fn for_refusal(refusal: &Refusal) -> Option<String> {
        match &refusal.reason {
            RefusalReason::Gone => Some(format!(
                "remove its entry with: usdtrec buildid-cache --purge {}",
                shell::path(&refusal.path)
            )),
            RefusalReason::SemaphoreOffset(_) => {
                Some("record with: --engine bpf-multi or --engine perf-tracefs".to_owned())
            }
            RefusalReason::CopiesCode { .. } => Some(
                "with -D MSECS (record, trace, stat), or with -p once it runs, the probes are attached after that: it then runs on, but hits in the copied code are not recorded; \
                 --force attaches all the same"
                    .to_owned(),
            ),
            RefusalReason::NotCached(_) => Some("--force attaches all the same".to_owned()),
            RefusalReason::Nop5 { .. } => Some("--force does not change that".to_owned()),
            RefusalReason::Check(error) => match &**error {
                CheckError::Changed { path, .. } => Some(format!(
                    "refresh with: usdtrec buildid-cache --update {}",
                    shell::path(path)
                )),
                CheckError::NotInNotes { path, .. } => Some(format!(
                    "remove that entry with: usdtrec buildid-cache --purge {}",
                    shell::path(path)
                )),
                _ => None,
            },
            _ => None,
        }
    }

    const fn for_usage(error: &UsageError) -> Option<&'static str> {
        match error {
            UsageError::Filter {
                error: ConditionError::Unsupported(_) | ConditionError::FloatArithmetic,
                ..
            }
            | UsageError::FilterReadsMemory { .. } => {
                Some("record without the filter, and use it with script or report")
            }
            UsageError::FilterOfUser { .. } => {
                Some("record with --engine bpf (as root, or with CAP_BPF and CAP_PERFMON)")
            }
            UsageError::NoNumber { .. } | UsageError::KeyOfEnds { .. } => {
                Some("record, and use report")
            }
            UsageError::TooManyEvents { .. } => Some("record fewer probes"),
            UsageError::ComputedArgument { .. } => Some(
                "record with --engine bpf (as root, or with CAP_BPF and CAP_PERFMON), or list arguments and names alone: NAME=arg1",
            ),
            UsageError::PmuInherit => Some("use -a, -t or another --engine"),
            _ => None,
        }
    }

    fn for_no_probe(error: &NoProbe) -> String {
        let by_path = shell::word(format!("{}@PATH", error.pattern));
        match &error.searched {
            Searched::File(path) => {
                format!(
                    "without a path, -e {} finds those of libraries that are loaded; list its probes with: usdtrec list --file {}",
                    shell::word(&error.pattern),
                    shell::path(path)
                )
            }
            Searched::Index => format!(
                "index another binary with: usdtrec buildid-cache --add PATH, or name it: {by_path}"
            ),
            Searched::Host => format!(
                "to list running files with probes: usdtrec list -a; for a program that does not run yet, name it: {by_path}, index it with: \
                 usdtrec buildid-cache --add PATH, or wait for it with the bpf engine (without --no-wait and --no-follow)"
            ),
            Searched::Processes(_) => format!(
                "if a library that has it is loaded later, name the library: {by_path}, index it with: usdtrec buildid-cache --add PATH, \
                 or wait for it with the bpf engine (without --no-wait and --no-follow)"
            ),
        }
    }

    fn for_privilege() -> String {
        let arguments: Vec<_> = std::env::args_os().skip(1).map(shell::word).collect();
        let program = std::env::current_exe();
        let program =
            program.map_or_else(|_| "usdtrec".to_owned(), |program| shell::path(&program));
        // chgrp comes first, because it removes a file's capabilities.
        format!(
            "{} {}\n  \
             or, for a group of users who may trace all processes (Documentation/admin-guide/perf-security.rst):\n    \
             sudo groupadd -f perf_users; sudo chgrp perf_users {program}; sudo chmod 0750 {program}\n    \
             sudo setcap cap_bpf,cap_perfmon,cap_ipc_lock+ep {program}\n    \
             (enough for --engine bpf from Linux 6.6 on if kernel.perf_event_paranoid is at most 2, else add cap_sys_admin)",
            shell::sudo(),
            arguments.join(" "),
        )
    }

    fn for_system_call(error: &io::Error) -> Option<&'static str> {
        match error.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE) => {
                Some("record fewer probes, threads or CPUs, or raise the limit: ulimit -n")
            }
            Some(libc::EACCES | libc::EPERM) if !usdtrec_record::has_admin() => Some(AS_ROOT),
            _ => None,
        }
    }

    /// A notice about the end of a recording.
    pub(crate) fn notice(notice: &Notice) -> String {
        match notice {
            Notice::LeftBehind(left) if !left.breakpoints.is_empty() => {
                format!("{notice}; to restore what recordings left: usdtrec doctor --heal")
            }
            _ => notice.to_string(),
        }
    }

    /// A guard process that was killed, with what clears up instead.
    pub(crate) fn guard_death(death: &GuardDeath) -> String {
        match death.failure {
            None => death.to_string(),
            Some(_) => format!("{death}; usdtrec doctor lists what a killed recorder leaves"),
        }
    }

    /// What the user should know before the recording begins.
    pub(crate) fn caution(caution: &Caution) -> String {
        match caution {
            Caution::SlowEnd { .. } => format!(
                "{caution}; to end at once, use fewer probes, or --engine bpf if it is available"
            ),
            Caution::NotHeld(_) => format!("--no-gap: {caution}"),
            Caution::ProfilerPanic(_) => format!("{caution}; {NO_PROFILER}"),
            Caution::NotNoted(_) => {
                format!(
                    "/run/usdtrec: {caution}; if it is, doctor --heal does not remove its breakpoints"
                )
            }
        }
    }
}
