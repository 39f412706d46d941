//! What the kernel logs about uprobes that it could not take back.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

/// Maximum number of lines that are kept.
const MAX_LINES: usize = 8;
/// Maximum length of a record of `/dev/kmsg`, bytes (`CONSOLE_EXT_LOG_MAX`).
const RECORD: usize = 8192;

/// The kernel's log from some moment on.
#[derive(Debug)]
pub struct KernelLog(File);

impl KernelLog {
    /// From now on. `None` if it cannot be read.
    pub fn from_now() -> Option<Self> {
        Self::open()?.forward()
    }

    /// The same log from now on.
    pub fn forward(mut self) -> Option<Self> {
        self.0.seek(SeekFrom::End(0)).ok()?;
        Some(self)
    }

    /// From its beginning. `None` if it cannot be read.
    pub fn whole() -> Option<Self> {
        Self::open()
    }

    fn open() -> Option<Self> {
        let mut options = File::options();
        options.read(true).custom_flags(libc::O_NONBLOCK);
        options.open("/dev/kmsg").ok().map(Self)
    }

    /// The last lines about uprobes that stayed.
    pub fn leaks(mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut record = [0; RECORD];
        loop {
            match self.0.read(&mut record) {
                Ok(0) => return lines,
                Ok(len) => lines.extend(leak(record.get(..len).unwrap_or_default())),
                // Records were overwritten before they were read.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                Err(_) => return lines,
            }
            if lines.len() > MAX_LINES {
                lines.remove(0);
            }
        }
    }
}

/// The text of a record `PRIORITY,NUMBER,TIME,FLAGS;TEXT`, if it is about a uprobe that stayed.
fn leak(record: &[u8]) -> Option<String> {
    let record = String::from_utf8_lossy(record);
    let (_, text) = record.split_once(';')?;
    let text = text.lines().next()?;
    let is_leak = text.contains("leaking uprobe") || text.contains("ref_ctr going negative");
    is_leak.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaks_are_found_among_records() {
        let record = b"4,1012,9154273,-;uprobe: exe:27:28 failed to unregister, leaking uprobe\n SUBSYSTEM=x\n";
        assert_eq!(
            leak(record).as_deref(),
            Some("uprobe: exe:27:28 failed to unregister, leaking uprobe")
        );
        for other in [&b"6,1,2,-;EXT4-fs: leaking"[..], b"", b"uprobe"] {
            assert_eq!(leak(other), None);
        }
    }
}
