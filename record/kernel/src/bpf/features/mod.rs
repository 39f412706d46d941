//! What the running kernel has.

pub mod btf;
pub mod members;
pub mod pid_namespace;
pub mod tracepoint;
pub mod trials;
pub mod version;

use usdtrec_format::Btf;

use self::pid_namespace::PidNamespace;
use super::preemption::Preemption;

/// What programs need to know of the running kernel.
#[derive(Clone, Copy, Debug)]
pub struct RunningKernel<'a> {
    /// `None` if it does not describe its structures.
    pub btf: Option<&'a Btf>,
    /// How preemption is disabled, if it must be.
    pub preemption: Option<Preemption>,
    /// That of the recorder, if it is not the first one.
    pub namespace: Option<PidNamespace>,
}
