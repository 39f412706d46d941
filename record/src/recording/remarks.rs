//! What a trace and the terminal say of what was not recorded: of patterns that selected no probe, of files that ran when the recording began and whose
//! probes were not attached, and of spans that were too short.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use usdtrec_attach::engine::{Attached, SlowSpanCounts, SlowSpans};
use usdtrec_attach::select::EventSelector;
use usdtrec_attach::select::probe::{PlannedProbe, RefusedProbe};
use usdtrec_attach::select::refusal::Refusal;
use usdtrec_format::trace::ShortfallKind;
use usdtrec_format::{Pattern, counted, escape};
use usdtrec_watch::shortfalls::{FoundShortfall, Shortfalls};

/// Notes the patterns that selected no probe. One with a path selects some, or the recording does not begin.
pub(super) fn note_unselected(
    events: &[EventSelector],
    attached: &Attached,
    shortfalls: &Shortfalls,
) {
    let events = events.iter();
    let patterns = events.map(|event| &event.pattern);
    let patterns = patterns.filter(|pattern| pattern.path().is_none());
    for pattern in patterns.filter(|pattern| !has_probe(&attached.probes, pattern)) {
        let why = match was_refused(attached, shortfalls, pattern) {
            true => "those that match were not attached",
            false => "no file that was read has a matching probe",
        };
        let text = escape::escape(pattern.text());
        shortfalls.add(FoundShortfall {
            kind: ShortfallKind::NoProbe,
            found: format!("'{text}' selected no probe: {why}"),
            effect: "it has no events".to_owned(),
            ..FoundShortfall::default()
        });
    }
}

fn has_probe(probes: &[Arc<PlannedProbe>], pattern: &Pattern) -> bool {
    probes.iter().any(|probe| {
        pattern.fits_build(probe.build_id) && pattern.matches(&probe.provider, &probe.name)
    })
}

/// Whether probes that match are known, and were not attached.
fn was_refused(attached: &Attached, shortfalls: &Shortfalls, pattern: &Pattern) -> bool {
    let refused = attached.refused.iter();
    let at_start = refused.map(RefusedProbe::refusal);
    let mut at_start = at_start.flat_map(|refusal| refusal.events);
    let later = shortfalls.all();
    let mut later = later
        .iter()
        .filter(|found| found.kind == ShortfallKind::NotFollowed)
        .flat_map(|found| &found.events);
    at_start.any(|event| pattern.matches_event(&event))
        || later.any(|event| pattern.matches_event(event))
}

/// Maximum number of refusals that are named. Any user can map any number of files.
const NAMED: usize = 16;

/// Notes refusals of probes in files that nobody named.
pub(super) fn note_refused(refused: &[Refusal], shortfalls: &Shortfalls) {
    for refusal in refused.iter().take(NAMED) {
        let probes = match refusal.reason.is_of_file() {
            true => "probes".to_owned(),
            false => counted(refusal.events.len(), "probe"),
        };
        shortfalls.add(FoundShortfall {
            events: refusal.events.iter().take(NAMED).cloned().collect(),
            ..shortfall(
                refusal.path.clone(),
                format!("{probes} not attached: {}", refusal.reason),
            )
        });
    }
    if let Some(more) = refused.get(NAMED..).filter(|more| !more.is_empty()) {
        let found = format!(
            "not attached for similar reasons: probes of {}",
            counted(more.len(), "other file")
        );
        shortfalls.add(shortfall(PathBuf::new(), found));
    }
}

fn shortfall(path: PathBuf, found: String) -> FoundShortfall {
    FoundShortfall {
        kind: ShortfallKind::NotFollowed,
        path,
        found,
        effect: "their hits are not recorded".to_owned(),
        ..FoundShortfall::default()
    }
}

/// Notes that only slow spans are recorded, with what was counted of the others if the recording has ended.
/// `is_filtered` is whether filters exclude some, too.
pub(super) fn note_short_spans(
    shortfalls: &Shortfalls,
    spans: &SlowSpans,
    is_filtered: bool,
    counts: Option<SlowSpanCounts>,
) {
    if !spans.is_required {
        return;
    }
    let others = match is_filtered {
        true => "shorter ones, or ones that the filter excludes, are left out",
        false => "shorter ones are left out",
    };
    let effect = match counts {
        None => others.to_owned(),
        Some(SlowSpanCounts { short, .. }) => format!("{short} {others}"),
    };
    let kept = counts.map_or(0, |counts| counts.full + counts.deep);
    let more = match kept {
        0 => String::new(),
        kept => format!(
            ", and {}, because too many were open at once",
            counted(kept, "other")
        ),
    };
    shortfalls.replace(FoundShortfall {
        kind: ShortfallKind::ShortSpans,
        found: format!(
            "only spans of at least {:?} were recorded ({})",
            Duration::from_nanos(spans.least),
            spans.spans.join(", ")
        ),
        effect: effect + &more,
        ..FoundShortfall::default()
    });
}
