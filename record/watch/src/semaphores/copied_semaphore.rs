//! What a look into a process has found of a semaphore of a file that it may map more than once.

/// A semaphore of a file that a process may map more than once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopiedSemaphore {
    /// Index of the file.
    pub file: usize,
    /// File offset of the semaphore.
    pub offset: u64,
    /// How often the process maps the code.
    pub copies: usize,
    /// Number of breakpoints for which the kernel has incremented it, in all copies.
    pub breakpoints: u16,
    /// Its addresses, one in each copy.
    pub(super) addresses: Vec<u64>,
}

impl CopiedSemaphore {
    /// Adds the address in a copy.
    pub fn add(&mut self, address: u64) {
        if !self.addresses.contains(&address) {
            self.addresses.push(address);
        }
    }
}
