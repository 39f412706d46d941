//! Limits and defects of the kernel's fetch arguments for texts.

/// Maximum length of a text, bytes (`MAX_STRING_SIZE`, kernel/trace/trace_probe.h). Fetch arguments cannot set a lower limit.
pub(super) const TEXT: usize = 4096;

/// Maximum total length of the fetch arguments of a hit, bytes. Beyond `MAX_UCB_BUFFER_SIZE`, a page, the kernel logs a warning
/// (`prepare_uprobe_buffer`, kernel/trace/trace_uprobe.c), and also beyond `PERF_MAX_TRACE_SIZE`, which includes the head of a sample.
pub(super) fn buffer() -> usize {
    const PERF_MAX_TRACE_SIZE: usize = 8192;
    const HEAD: usize = 64;
    rustix::param::page_size().min(PERF_MAX_TRACE_SIZE - HEAD)
}

/// Whether the kernel panics on a warning. If the setting cannot be read, the kernel does not have it.
pub(super) fn panics_on_warning() -> bool {
    let setting = std::fs::read_to_string("/proc/sys/kernel/panic_on_warn");
    setting.is_ok_and(|setting| setting.trim() != "0")
}

/// Whether a kernel of this release (`uname -r`) stays within its buffer if texts are long: since Linux 6.12. Earlier ones write beyond it
/// (CVE-2024-50067); kernels with a backported fix cannot be recognized.
pub(super) fn keeps_to_its_buffer(release: &str) -> bool {
    const SINCE: (u32, u32) = (6, 12);
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= SINCE,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::keeps_to_its_buffer;

    #[test]
    fn only_kernels_that_are_known_to_are_trusted() {
        for release in ["6.12.0", "6.18.44-fc", "7.0-rc1", "6.12-rc5"] {
            assert!(keeps_to_its_buffer(release), "{release}");
        }
        for release in ["", "6", "5.15.0-91-generic", "6.6.60", "6.x", "linux"] {
            assert!(!keeps_to_its_buffer(release), "{release}");
        }
    }
}
