//! Arguments that hits get besides their own: what is known of other hits when they come, such as the arguments of the span that encloses
//! them.
//!
//! A hit has them as it has its own: what shows, groups, selects and exports arguments takes no notice. What needs the
//! arguments of hits is done in parallel ([`AddedArguments::steps`]); what needs the order of hits is little, and is done for one hit
//! after the other ([`AddedState::take`]). So the answer does not depend on the number of threads.

pub mod added_argument;
pub mod hit_step;

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use crate::added::added_argument::{AddedArgument, AddedValues};
use crate::added::hit_step::{HitStep, StepPlace};
use crate::error::ReportError;
use crate::session::TraceSession;
use crate::session::hit::Hit;
use crate::session::resolver::Resolver;

/// Finds which arguments the hits of a trace get besides their own.
pub trait FindAdded: Debug {
    /// Called when a trace was opened, and of a stream again when events were added to it. `None` if nothing is requested.
    ///
    /// # Errors
    /// [`ReportError::Question`] if the trace does not have what they are about.
    fn find(&self, session: &TraceSession) -> Result<Option<Arc<dyn AddedArguments>>, ReportError>;
}

/// Which arguments the hits of a trace get besides their own, and which hits say them.
pub trait AddedArguments: Debug + Send + Sync {
    /// What the hits of an event get.
    fn of_event(&self, event: usize) -> &[AddedArgument];
    /// Whether hits of an event say something about what others get.
    fn has(&self, event: usize) -> bool;
    /// What a hit says about what it and later ones get.
    fn steps(&self, resolver: &mut Resolver<'_>, hit: Hit<'_>) -> Vec<HitStep>;
    /// The state before the first hit. May read the trace.
    fn begin(&self, session: &TraceSession) -> Box<dyn AddedState>;
}

/// What is known while hits are taken in the order of time. Its memory is bounded.
pub trait AddedState: Send + Sync {
    /// Takes the next hit with what it says. Returns what it gets; `None` for nothing.
    fn take(&mut self, place: StepPlace, steps: Vec<HitStep>) -> Option<Arc<AddedValues>>;

    /// Takes when probes were detached, as far as a stream says it so far.
    fn renew_pauses(&mut self, session: &TraceSession);
}

/// Adds arguments to the events of a session, in place of those that were added before.
///
/// # Errors
/// The errors of [`FindAdded::find`]; then the session has none.
pub fn add_arguments(session: &mut TraceSession, find: &dyn FindAdded) -> Result<(), ReportError> {
    session.set_added(None, |_| Vec::new());
    if let Some(added) = find.find(session)? {
        let kept: Arc<dyn Any + Send + Sync> = Arc::new(Arc::clone(&added));
        session.set_added(Some(kept), |event| added.of_event(event).to_vec());
    }
    Ok(())
}

/// The arguments that were added to the events of a session, if any were.
pub(crate) fn added_of(session: &TraceSession) -> Option<&dyn AddedArguments> {
    // The session cannot name the type: what finds the arguments needs the session.
    let added = session.added()?.downcast_ref::<Arc<dyn AddedArguments>>()?;
    Some(&**added)
}
