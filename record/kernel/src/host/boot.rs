//! Which boot of the host this is.

/// The kernel's id of this boot; `None` if it cannot be read.
pub fn id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let id = id.trim();
    (!id.is_empty()).then(|| id.to_owned())
}
