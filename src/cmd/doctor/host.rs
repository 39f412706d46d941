//! What recording needs of a host: its kernel, privileges, and files.

use std::fs;
use std::io;
use std::path::Path;

use rustix::process::{Resource, getrlimit};
use usdtrec_record::{Caution, KernelVersion, check_privilege, profiler_panic};

use super::finding::Finding;
use crate::advice::{NO_PROFILER, message};

/// Versions of Linux from which on something works.
const PERF: (u32, u32) = (4, 20);
const BPF: (u32, u32) = (5, 10);
const MULTI: (u32, u32) = (6, 6);
const SINGLE: (u32, u32) = (6, 18);
/// Before it, memory of BPF maps counts as locked memory.
const UNLOCKED: (u32, u32) = (5, 11);

/// What is found, in the order in which one depends on the other.
pub(super) fn findings() -> Vec<Finding> {
    let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
    let version = version(&release);
    let mut findings = vec![
        kernel(&release, version),
        privileges(),
        paranoid(),
        lockdown(),
        tracefs(),
        types(),
    ];
    findings.extend(locked_memory(version));
    findings.extend(profiler_panic().map(beside_profilers));
    findings
}

fn read(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

/// The first two numbers of a release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn kernel(release: &str, version: Option<(u32, u32)>) -> Finding {
    const CHECK: &str = "kernel";
    let found = format!("Linux {release}");
    let limited = |lacks: &str, from: (u32, u32)| {
        let advice = format!("{lacks}: Linux {}.{} and later", from.0, from.1);
        Finding::limited(CHECK, found.clone(), advice)
    };
    match version {
        None => Finding::works(CHECK, found),
        Some(version) if version < PERF => {
            let advice = "recording needs Linux 4.20 or later";
            Finding::fails(CHECK, found, advice)
        }
        Some(version) if version < BPF => {
            limited("strings and filters in the kernel need the bpf engine", BPF)
        }
        Some(version) if version < MULTI => limited("one link for all sites of a file", MULTI),
        Some(version) if version < SINGLE => limited(
            "probes that cost nothing in processes that are not recorded, with -p or a command",
            SINGLE,
        ),
        Some(_) => Finding::works(CHECK, found),
    }
}

/// A kernel that panics if threads that hit probes are profiled, too.
fn beside_profilers(version: KernelVersion) -> Finding {
    let caution = Caution::ProfilerPanic(version);
    Finding::limited("beside profilers", caution.to_string(), NO_PROFILER)
}

fn privileges() -> Finding {
    const CHECK: &str = "privileges";
    match check_privilege() {
        Ok(()) => Finding::works(CHECK, capabilities()),
        Err(error) => {
            let advice = "run it as root (sudo), or with CAP_BPF and CAP_PERFMON; docs/requirements.md says which capabilities are enough for what";
            Finding::fails(CHECK, message(&error), advice)
        }
    }
}

/// `CapEff` in words.
fn capabilities() -> String {
    const NAMES: [(u32, &str); 7] = [
        (1, "CAP_DAC_OVERRIDE"),
        (2, "CAP_DAC_READ_SEARCH"),
        (14, "CAP_IPC_LOCK"),
        (21, "CAP_SYS_ADMIN"),
        (24, "CAP_SYS_RESOURCE"),
        (38, "CAP_PERFMON"),
        (39, "CAP_BPF"),
    ];
    let status = read("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let has = NAMES
        .iter()
        .filter(|(bit, _)| mask.is_some_and(|mask| mask >> bit & 1 != 0));
    let names: Vec<&str> = has.map(|(_, name)| *name).collect();
    match names.len() {
        0 => "not known".to_owned(),
        count if count == NAMES.len() => "all that recording uses".to_owned(),
        _ => names.join(", "),
    }
}

fn paranoid() -> Finding {
    const CHECK: &str = "perf_event_paranoid";
    let level = read("/proc/sys/kernel/perf_event_paranoid");
    match level.as_deref().map(str::parse::<i32>) {
        Some(Ok(level)) if level > 2 => Finding::limited(
            CHECK,
            level.to_string(),
            "perf events need CAP_SYS_ADMIN: sysctl kernel.perf_event_paranoid=2 opens them for CAP_PERFMON",
        ),
        Some(_) => Finding::works(CHECK, level.unwrap_or_default()),
        None => Finding::fails(
            CHECK,
            "this kernel has no perf events",
            "use a kernel with CONFIG_PERF_EVENTS",
        ),
    }
}

fn lockdown() -> Finding {
    const CHECK: &str = "lockdown";
    let modes = read("/sys/kernel/security/lockdown").unwrap_or_default();
    let mode = modes.split(['[', ']']).nth(1).unwrap_or("none");
    match mode {
        "none" => Finding::works(CHECK, "none"),
        "confidentiality" => Finding::limited(
            CHECK,
            mode,
            "the kernel refuses tracefs, and reads of its memory by programs: use the bpf engine, or boot with lockdown=integrity",
        ),
        _ => Finding::works(CHECK, mode),
    }
}

fn tracefs() -> Finding {
    const CHECK: &str = "tracefs";
    const ADVICE: &str =
        "the perf engine cannot follow new threads: use the bpf engine, or run it as root";
    let files = [
        "/sys/kernel/tracing/uprobe_events",
        "/sys/kernel/debug/tracing/uprobe_events",
    ];
    let is_hidden = |file: &&str| {
        Path::new(file)
            .try_exists()
            .is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    };
    if let Some(file) = files.into_iter().find(is_hidden) {
        let found = format!("{file} cannot be looked at: permission denied");
        return Finding::limited(CHECK, found, ADVICE);
    }
    let found = files.into_iter().find(|file| Path::new(file).exists());
    match found {
        Some(file) => {
            let open = fs::OpenOptions::new().append(true).open(file);
            match open {
                Ok(_) => Finding::works(CHECK, file),
                Err(error) => {
                    Finding::limited(CHECK, format!("{file} cannot be written: {error}"), ADVICE)
                }
            }
        }
        None => Finding::works(CHECK, "not mounted: a recorder mounts it for itself"),
    }
}

fn types() -> Finding {
    const CHECK: &str = "BTF of the kernel";
    const FILE: &str = "/sys/kernel/btf/vmlinux";
    match Path::new(FILE).exists() {
        true => Finding::works(CHECK, FILE),
        false => Finding::limited(
            CHECK,
            format!("there is no {FILE}"),
            "memory that is not resident is not read at a hit, and files are not followed without a gap: use a kernel with CONFIG_DEBUG_INFO_BTF",
        ),
    }
}

/// The limit of locked memory, where maps count as such.
fn locked_memory(version: Option<(u32, u32)>) -> Option<Finding> {
    const CHECK: &str = "locked memory";
    version.filter(|version| *version < UNLOCKED)?;
    let limit = getrlimit(Resource::Memlock);
    Some(match (limit.current, limit.maximum) {
        (None, _) | (_, None) => Finding::works(CHECK, "not limited"),
        (Some(bytes), _) => Finding::limited(
            CHECK,
            format!("{bytes} bytes"),
            "the bpf engine needs more before Linux 5.11: CAP_SYS_RESOURCE, or ulimit -l unlimited",
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::finding::State;
    use super::*;

    #[test]
    fn kernels_are_told_apart_by_their_versions() {
        for (release, state) in [
            ("4.19.0-amd64", State::Fails),
            ("4.20.1", State::Limited),
            ("5.10.0-30", State::Limited),
            ("6.1.0", State::Limited),
            ("6.18.44", State::Works),
            ("7.2.0-rc1", State::Works),
            ("unknown", State::Works),
        ] {
            assert_eq!(kernel(release, version(release)).state, state, "{release}");
        }
    }
}
