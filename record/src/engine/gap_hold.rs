//! The choice of how threads are held that map files which are not known.

/// How a thread that maps a file which is not known is held until the probes of the file are attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapHold {
    /// In the kernel if that is possible, else by stopping its process.
    Auto,
    /// In the kernel (Linux 6.18): no other process notices.
    InKernel,
    /// By stopping its process with `SIGSTOP`, which its parent can see.
    ByStop,
}
