//! Whether the kernel may be asked for texts.

/// Most bytes that a text takes (`MAX_STRING_SIZE`, kernel/trace/trace_probe.h). Fetch arguments cannot ask for less.
pub(super) const TEXT: usize = 4096;

/// Bytes of fixed and variable length that a hit's fetch arguments may have: beyond `MAX_UCB_BUFFER_SIZE`, a page, the kernel warns
/// (`prepare_uprobe_buffer`, kernel/trace/trace_uprobe.c), and beyond `PERF_MAX_TRACE_SIZE`, too, of which the head of a sample takes some.
pub(super) fn buffer() -> usize {
    const PERF_MAX_TRACE_SIZE: usize = 8192;
    const HEAD: usize = 64;
    rustix::param::page_size().min(PERF_MAX_TRACE_SIZE - HEAD)
}

/// Whether a warning stops the machine. Where that cannot be read, it does not: the file is there wherever the setting is.
pub(super) fn panics_on_warning() -> bool {
    let setting = std::fs::read_to_string("/proc/sys/kernel/panic_on_warn");
    setting.is_ok_and(|setting| setting.trim() != "0")
}

/// Whether a kernel of this release (`uname -r`) keeps to its buffer when texts are long: since Linux 6.12. Before, it writes beyond
/// (CVE-2024-50067); those that have the correction since do not say so.
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
