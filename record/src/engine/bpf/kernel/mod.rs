//! What the running kernel has.

pub(super) mod btf;
pub(super) mod members;
pub(super) mod pid_namespace;
pub(super) mod trials;
pub(super) mod version;

use usdtrec_format::Btf;

use self::pid_namespace::PidNamespace;
use super::preemption::Preemption;

/// What programs need to know of the running kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunningKernel<'a> {
    /// `None` if it does not describe its structures.
    pub(super) btf: Option<&'a Btf>,
    /// How preemption is disabled, if it must be.
    pub(super) preemption: Option<Preemption>,
    /// That of the recorder, if it is not the first one.
    pub(super) namespace: Option<PidNamespace>,
}
