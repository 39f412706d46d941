//! Threads that held a lock while others waited for it.
//!
//! Schemas say at which probes threads wait for a lock, acquire and release it, and which argument says which lock
//! ([`LockUse`](usdtrec_format::schema::LockUse)). The hit that ends a wait gets who held the lock in the meantime: the thread that held it for the
//! longest part of the wait. Where it is not known when that thread acquired the lock, because runtimes have no probe for locks that are free,
//! it held it from the beginning of the wait on. Where the argument says a group of locks, those who had one of them are candidates.

pub(crate) mod lock_table;
pub(crate) mod one_lock;
pub(crate) mod roles;

/// The part that has the values of the thread that held the lock.
pub(crate) const HOLDER: usize = 0;
/// The part that has the values of a thread that had one of a group of locks.
pub(crate) const CANDIDATE: usize = 1;
/// The first part of enclosing spans.
pub(crate) const FIRST_SPAN: usize = 2;
