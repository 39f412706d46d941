//! BTF of the running kernel.

use std::fs::{self, File};

use memmap2::MmapOptions;
use rustix::fs::fstatfs;
use usdtrec_format::Btf;

use super::super::sys;

const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

/// What `/sys/kernel/btf/vmlinux` has; `None` if the kernel has none.
pub fn from_sysfs() -> Option<Btf> {
    match mapped() {
        Some(data) => Btf::parse(data),
        None => Btf::parse(fs::read(VMLINUX).ok()?),
    }
}

/// The kernel's own pages, without a copy of megabytes. Mapped until the process ends. `None` before Linux 6.17, and if the file is none of sysfs.
fn mapped() -> Option<&'static [u8]> {
    /// `SYSFS_MAGIC`, statfs(2)
    const SYSFS: u64 = 0x6265_6572;
    let file = File::open(VMLINUX).ok()?;
    if fstatfs(&file).ok()?.f_type as u64 != SYSFS {
        return None;
    }
    // SAFETY: the kernel neither changes nor removes its types while it runs.
    let mapping = unsafe { MmapOptions::new().map_copy_read_only(&file) }.ok()?;
    Some(Box::leak(Box::new(mapping)))
}

/// The same where sysfs does not show it; needs `CAP_SYS_ADMIN`.
pub fn from_kernel() -> Option<Btf> {
    Btf::parse(sys::kernel_btf().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_members_of_the_running_kernel() {
        // Kernels without BTF exist, but not for CI, where no test may be left out.
        let Some(btf) = from_sysfs() else {
            let is_ci = std::env::var("CI").as_deref() == Ok("true");
            assert!(!is_ci, "expected a kernel with BTF at {VMLINUX}");
            return;
        };
        let tgid = btf.member("task_struct", &["tgid"]).unwrap();
        let pid = btf.member("task_struct", &["pid"]).unwrap();
        assert_eq!(tgid, pid + 4, "the two stand side by side in the source");
        assert!(btf.member("task_struct", &["signal"]).is_some());
        assert_eq!(btf.member("task_struct", &["no such member"]), None);
        assert_eq!(btf.member("no such structure", &["pid"]), None);
    }
}
