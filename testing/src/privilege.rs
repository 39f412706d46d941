//! Whether tests can record.

use rustix::thread::{CapabilitySet, capabilities};

/// Whether this user can record: has `CAP_SYS_ADMIN`.
///
/// # Panics
/// With `CI=true`, if not: no test is left out there.
#[must_use]
pub fn can_record() -> bool {
    let is_admin = |has: CapabilitySet| has.contains(CapabilitySet::SYS_ADMIN);
    let can = capabilities(None).map_or(true, |has| is_admin(has.effective));
    let is_ci = std::env::var("CI").as_deref() == Ok("true");
    assert!(can || !is_ci, "expected root");
    can
}
