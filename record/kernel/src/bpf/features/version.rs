//! What this kernel's programs and links can do, by its version.

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
