//! Lost events of a trace, for formats that have a place for them.

use usdtrec_trace::session::TraceSession;

/// How many events of one name were lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventLoss {
    /// `None` if it is not known of which.
    pub(crate) event: Option<String>,
    pub(crate) lost: u64,
}

/// All losses: their sum is that of the session.
pub(crate) fn losses_of(session: &TraceSession) -> Vec<EventLoss> {
    let trace = session.trace();
    let events = &session.events().events;
    let mut losses: Vec<EventLoss> = Vec::new();
    let mut add = |event: Option<usize>, lost: u64| {
        let event = event.and_then(|event| events.get(event));
        let event = event.map(|event| event.name.clone());
        if lost == 0 {
            return;
        }
        match losses.iter_mut().find(|loss| loss.event == event) {
            Some(known) => known.lost = known.lost.saturating_add(lost),
            None => losses.push(EventLoss { event, lost }),
        }
    };
    match trace.losses().or_else(|| trace.losses_so_far()) {
        Some(counted) => {
            for loss in counted {
                add(Some(loss.event), loss.lost);
            }
        }
        None => {
            for (event, lost) in session.lost_by_event() {
                add(event.map(|event| event as usize), *lost);
            }
        }
    }
    losses
}
