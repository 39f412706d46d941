//! Files that ran when the recording began and whose probes are not attached, although nobody named the files: what is said of them, and written to the
//! trace, as of files that appear later.

use std::path::PathBuf;

use usdtrec_attach::select::refusal::Refusal;
use usdtrec_format::counted;
use usdtrec_format::trace::ShortfallKind;
use usdtrec_watch::shortfalls::{FoundShortfall, Shortfalls};

/// Maximum number of refusals that are named. Any user can map any number of files.
const NAMED: usize = 16;

/// Notes refusals.
pub(super) fn note(refused: &[Refusal], shortfalls: &Shortfalls) {
    for refusal in refused.iter().take(NAMED) {
        let probes = counted(refusal.events.len(), "probe");
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
            "not attached for reasons like these: probes of {}",
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
