//! The names of stacks that were counted as addresses.

use usdtrec_analysis::stats::keys::stacks::Stacks;
use usdtrec_format::perf::Sample;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::resolver::Resolver;

use super::stack_name::StackName;

/// A stack of hits that were counted in the kernel.
#[derive(Clone, Copy, Debug)]
pub struct StackAddresses<'a> {
    /// A sample id of the site.
    pub id: u64,
    /// The process.
    pub pid: i32,
    /// A time at which the process had the stack, ns of the trace's clock.
    pub time: u64,
    /// Address of the hit.
    pub ip: u64,
    /// The call chain as samples have it.
    pub callchain: &'a [u8],
}

/// Finds names of stacks, as those of samples are found.
pub struct StackNamer<'s> {
    session: &'s TraceSession,
    /// Made when first needed.
    resolver: Option<Resolver<'s>>,
    stacks: Stacks,
}

impl<'s> StackNamer<'s> {
    pub(super) fn new(session: &'s TraceSession) -> Self {
        Self {
            session,
            resolver: None,
            stacks: Stacks::default(),
        }
    }

    /// The names of a stack.
    pub fn name(&mut self, stack: StackAddresses<'_>) -> StackName {
        let session = self.session;
        let sample = Sample {
            id: stack.id,
            ip: stack.ip,
            pid: stack.pid,
            tid: stack.pid,
            time: stack.time,
            callchain: stack.callchain,
            ..Sample::default()
        };
        let Some(target) = session.target(stack.id) else {
            return StackName::unnamed(sample.callers());
        };
        let resolver = self.resolver.get_or_insert_with(|| Resolver::new(session));
        let parts = resolver.stack(target, &sample);
        StackName::new(&self.stacks.names(parts, session))
    }
}
