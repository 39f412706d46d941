//! The choice of holding threads that map files which are not known.

/// Whether a thread that maps a file which is not known must be held until the probes of the file are attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapHold {
    /// In the kernel (Linux 6.18), if that is possible: no other process notices.
    Auto,
    /// The same; an error if it is not possible.
    Required,
}
