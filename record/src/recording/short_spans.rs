//! What a trace says of spans that it does not have because they were too short.

use std::time::Duration;

use usdtrec_attach::engine::SlowSpanCounts;
use usdtrec_attach::engine::SlowSpans;
use usdtrec_format::counted;
use usdtrec_format::trace::ShortfallKind;
use usdtrec_watch::shortfalls::{FoundShortfall, Shortfalls};

/// Notes that only slow spans are recorded, with what was counted of the others if the recording has ended.
/// `is_filtered` is whether filters exclude some, too.
pub(crate) fn note(
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
