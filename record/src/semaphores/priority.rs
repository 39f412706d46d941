//! The priority of the thread that processes run against.

/// Lets this thread run before all threads of normal priority. Without permission it stays as it was.
pub(super) fn raise() {
    // SAFETY: an all-zero sched_param is valid.
    let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
    param.sched_priority = 1;
    // SAFETY: 0 is this thread; `param` outlives the call.
    let failed = unsafe {
        libc::sched_setscheduler(
            0,
            libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK,
            &raw const param,
        )
    };
    if failed != 0 {
        let _ = rustix::process::setpriority_process(None, -20);
    }
}
