//! Whether two processes share their memory, as after vfork(2).

use std::io;

/// `KCMP_VM` (include/uapi/linux/kcmp.h).
const MEMORY: libc::c_long = 1;

/// Whether two processes share their memory; `true` if the kernel does not say, so that the memory is left alone. One that has ended shares none.
pub(super) fn is_shared(first: u32, second: u32) -> bool {
    // SAFETY: kcmp(2) takes integers.
    let order = unsafe {
        libc::syscall(
            libc::SYS_kcmp,
            libc::c_long::from(first),
            libc::c_long::from(second),
            MEMORY,
            0_i64,
            0_i64,
        )
    };
    order == 0 || order < 0 && io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_have_their_own_memory() {
        let us = std::process::id();
        assert!(is_shared(us, us));
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        assert!(!is_shared(us, child.id()));
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
