//! Functions that have no caller, and those that signal handlers return to.

/// Beginnings of the names of functions that have no caller: of programs, of threads, and of coroutines.
const OUTERMOST: [&str; 17] = [
    "_start",
    "__libc_start",
    "__libc_init_first",
    "generic_start_main",
    "libc_start_main",
    "_dl_start",
    "start_thread",
    "__start_context",
    "thread_start",
    "clone",
    "__clone",
    "__GI___clone",
    "__thread_start",
    "__pthread_start",
    "runtime.goexit",
    "runtime.rt0_go",
    "runtime.mstart",
];

/// What handlers of signals return to, in glibc, musl and the kernel's vDSO.
const SIGNAL_RETURNS: [&str; 6] = [
    "__restore_rt",
    "__restore",
    "__kernel_rt_sigreturn",
    "__kernel_sigreturn",
    "__vdso_rt_sigreturn",
    "__default_rt_sa_restorer",
];

/// Whether a function of this name has no caller.
pub(crate) fn is_outermost(name: &str) -> bool {
    OUTERMOST.iter().any(|start| name.starts_with(start))
}

/// Whether handlers of signals return to the start of a function of this name.
pub(crate) fn is_signal_return(name: &str) -> bool {
    SIGNAL_RETURNS.contains(&name)
}
