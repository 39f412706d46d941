//! The arguments of enclosing spans and of holders of locks, as those that are added to events.

use std::sync::{Arc, OnceLock};

use usdtrec_trace::added::added_argument::AddedArgument;
use usdtrec_trace::added::hit_step::HitStep;
use usdtrec_trace::added::{AddedArguments, AddedState};
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::hit::Hit;
use usdtrec_trace::session::resolver::Resolver;

use crate::enclosing::roles::SpanRoles;
use crate::enclosing::state::ContextState;
use crate::enclosing::survey::Survey;
use crate::holders::lock_table::LockTable;
use crate::holders::roles::LockRoles;

/// The arguments of enclosing spans, and of holders of locks.
#[derive(Debug)]
pub(crate) struct ContextArguments {
    /// What the hits of each event get.
    pub(crate) of_events: Vec<Vec<AddedArgument>>,
    /// Number of parts.
    pub(crate) parts: usize,
    pub(crate) roles: SpanRoles,
    pub(crate) locks: LockRoles,
    /// What is known of the spans of the whole trace, found when first needed.
    pub(crate) survey: OnceLock<Arc<Survey>>,
}

impl AddedArguments for ContextArguments {
    fn of_event(&self, event: usize) -> &[AddedArgument] {
        self.of_events.get(event).map_or(&[], Vec::as_slice)
    }

    fn has(&self, event: usize) -> bool {
        self.roles.has(event) || self.locks.has(event)
    }

    fn steps(&self, resolver: &mut Resolver<'_>, hit: Hit<'_>) -> Vec<HitStep> {
        let spans = self.roles.steps(resolver, hit, true).into_iter();
        let lock = self.locks.step(resolver, hit);
        spans
            .map(HitStep::Span)
            .chain(lock.map(HitStep::Lock))
            .collect()
    }

    fn begin(&self, session: &TraceSession) -> Box<dyn AddedState> {
        // A stream has no blocks, and locks need no survey.
        let needs_survey = !session.blocks().is_empty() && !self.roles.is_empty();
        let survey = needs_survey.then(|| {
            let survey = || Arc::new(Survey::new(session, &self.roles));
            Arc::clone(self.survey.get_or_init(survey))
        });
        let locks = LockTable::new(self.locks.pauses(session));
        let pauses = &self.roles.pauses;
        Box::new(ContextState::new(survey, self.parts, pauses, locks))
    }
}
