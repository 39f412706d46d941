//! The priority of the threads that processes run against.

/// Lets this thread run before all threads of normal priority, and before those with a lower `level`. Without permission it stays as it was.
pub(super) fn raise(level: i32) {
    // SAFETY: an all-zero sched_param is valid.
    let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
    param.sched_priority = level;
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
