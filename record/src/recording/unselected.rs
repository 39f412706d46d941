//! Patterns that selected no probe until the end of the recording: what is said of them, and written to the trace.

use usdtrec_attach::select::probe::{PlannedProbe, RefusedProbe};
use usdtrec_format::trace::ShortfallKind;
use usdtrec_format::{Pattern, escape};
use usdtrec_watch::shortfalls::FoundShortfall;

use crate::recording::session::Session;

/// Notes the patterns that selected no probe. One with a path selects some, or the recording does not begin.
pub(super) fn note(session: &Session) {
    let events = session.options.following.events.iter();
    let patterns = events.map(|event| &event.pattern);
    let patterns = patterns.filter(|pattern| pattern.path().is_none());
    for pattern in patterns.filter(|pattern| !has_probe(session.probes(), pattern)) {
        let why = match was_refused(session, pattern) {
            true => "those that match were not attached",
            false => "no file that was read has one that matches",
        };
        let text = escape::escape(pattern.text());
        session.shortfalls.add(FoundShortfall {
            kind: ShortfallKind::NoProbe,
            found: format!("'{text}' selected no probe: {why}"),
            effect: "it has no events".to_owned(),
            ..FoundShortfall::default()
        });
    }
}

fn has_probe(probes: &[PlannedProbe], pattern: &Pattern) -> bool {
    probes.iter().any(|probe| {
        pattern.fits_build(probe.build_id) && pattern.matches(&probe.provider, &probe.name)
    })
}

/// Whether probes that match are known, and were not attached.
fn was_refused(session: &Session, pattern: &Pattern) -> bool {
    let refused = session.attached.refused.iter();
    let at_start = refused.map(RefusedProbe::refusal);
    let mut at_start = at_start.flat_map(|refusal| refusal.events);
    let later = session.shortfalls.all();
    let mut later = later
        .iter()
        .filter(|found| found.kind == ShortfallKind::NotFollowed)
        .flat_map(|found| &found.events);
    at_start.any(|event| pattern.matches_event(&event))
        || later.any(|event| pattern.matches_event(event))
}
