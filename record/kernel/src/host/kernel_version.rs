//! The version of the kernel, and what is known by it: what programs and links can do, and that it may panic.
//!
//! Kernels that panic if a sampling profiler takes the user stack of a thread which has hit a uprobe and is ending (`uprobe_free_utask` frees
//! what `is_uprobe_at_func_entry` reads in an interrupt; siderolabs/talos#9671). The fault came with "perf,x86: avoid missing caller address in
//! stack traces captured in uprobe" (Linux 6.12, 6.6.55, 6.1.113), for x86 only, and went with "uprobes: Fix race in uprobe_free_utask" (Linux 6.13,
//! 6.12.19, 6.6.83, 6.1.131). A recorder cannot avoid it.

use std::fmt;

use usdtrec_format::Arch;

/// Whether the kernel is this version or a later one.
pub fn is_since(major: u32, minor: u32) -> bool {
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    let mut numbers = release
        .split(|letter: char| !letter.is_ascii_digit())
        .map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(first)), Some(Ok(second))) => (first, second) >= (major, minor),
        _ => false,
    }
}

/// Whether a link for a process is one for all its threads: from Linux 6.11 on. Before, it was one for its first thread.
pub fn tells_processes() -> bool {
    is_since(6, 11)
}

/// A version of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelVersion([u32; 3]);

/// The first and the last version of each series that has the fault. Of 6.12.0 nothing is said: other vendors name kernels so that have the repair.
const AFFECTED: [[KernelVersion; 2]; 3] = [
    [KernelVersion([6, 1, 113]), KernelVersion([6, 1, 130])],
    [KernelVersion([6, 6, 55]), KernelVersion([6, 6, 82])],
    [KernelVersion([6, 12, 1]), KernelVersion([6, 12, 18])],
];

/// The version of this kernel if it is known to have the fault.
#[must_use]
pub fn profiler_panic() -> Option<KernelVersion> {
    let kernel = rustix::system::uname();
    let release = kernel.release().to_string_lossy();
    let build = kernel.version().to_string_lossy();
    affected(&release, &build).filter(|_| Arch::host() == Some(Arch::X86_64))
}

/// The version with these names, `uname -r` and `uname -v`, if it has the fault. Debian's release has the version in the second one.
fn affected(release: &str, build: &str) -> Option<KernelVersion> {
    let debian = build.split_once("Debian ").map(|(_, version)| version);
    let version = KernelVersion::parse(debian.unwrap_or(release))?;
    let has = |[first, last]: &[KernelVersion; 2]| (*first..=*last).contains(&version);
    AFFECTED.iter().any(has).then_some(version)
}

impl KernelVersion {
    /// The first three numbers of a release.
    fn parse(release: &str) -> Option<Self> {
        let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
        let mut next = || numbers.next()?.parse().ok();
        Some(Self([next()?, next()?, next()?]))
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([major, minor, patch]) = self;
        write!(f, "{major}.{minor}.{patch}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_versions_with_the_fault_are_named() {
        const OTHER: &str = "#1 SMP PREEMPT_DYNAMIC Mon Nov 4 12:00:00 UTC 2024";
        for (release, build, is_affected) in [
            ("6.6.58-talos", OTHER, true),
            ("6.6.54", OTHER, false),
            ("6.6.82", OTHER, true),
            ("6.6.83", OTHER, false),
            ("6.12.18-amd64", OTHER, true),
            ("6.12.19", OTHER, false),
            ("6.12.0-55.9.1.el10_0.x86_64", OTHER, false),
            ("6.13.0", OTHER, false),
            ("6.18.5", OTHER, false),
            (
                "6.1.0-31-amd64",
                "#1 SMP Debian 6.1.128-1 (2025-02-07)",
                true,
            ),
            (
                "6.1.0-32-amd64",
                "#1 SMP Debian 6.1.129-1 (2025-03-06)",
                true,
            ),
            (
                "6.1.0-33-amd64",
                "#1 SMP Debian 6.1.133-1 (2025-04-10)",
                false,
            ),
            ("6.1.0-31-generic", OTHER, false),
            ("unknown", OTHER, false),
        ] {
            let found = affected(release, build);
            assert_eq!(found.is_some(), is_affected, "{release} {build}");
        }
    }
}
