//! BTF of the running kernel.

use std::fs;

use usdtrec_format::Btf;

use super::super::sys;

const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

/// What `/sys/kernel/btf/vmlinux` has; `None` if the kernel has none.
pub(in crate::engine::bpf) fn from_sysfs() -> Option<Btf> {
    Btf::parse(fs::read(VMLINUX).ok()?)
}

/// The same where sysfs does not show it; needs `CAP_SYS_ADMIN`.
pub(in crate::engine::bpf) fn from_kernel() -> Option<Btf> {
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
