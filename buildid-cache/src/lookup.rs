//! Finding probes by pattern, and the nearest names where there are none.

use std::path::Path;

use usdtrec_format::{Binary, Pattern, Probe};

use crate::entry::Indexed;
use crate::find::resolve;

/// Least likeness (0 to 1) of a name that is suggested for another.
const LIKENESS: f64 = 0.5;
/// Longer names are not compared, which takes memory and time by the product of both lengths.
const LONGEST: usize = 256;

/// The probes that a pattern selects, in the order of the binaries.
pub fn select<'a>(binaries: &'a [Indexed], pattern: &Pattern) -> Vec<(&'a Indexed, &'a Probe)> {
    let wanted = pattern.path().map(WantedPath::new);
    let fits = |indexed: &&Indexed| {
        wanted
            .as_ref()
            .is_none_or(|wanted| wanted.is(&indexed.binary.path))
    };
    binaries
        .iter()
        .filter(fits)
        .flat_map(|indexed| {
            indexed
                .binary
                .probes
                .iter()
                .map(move |probe| (indexed, probe))
        })
        .filter(|(_, probe)| pattern.matches(&probe.provider, &probe.name))
        .collect()
}

/// Up to `count` events of the binaries whose names are most like the pattern, best first, as `sdt_PROVIDER:NAME`.
#[must_use]
pub fn suggest<'a>(
    binaries: impl IntoIterator<Item = &'a Binary>,
    pattern: &Pattern,
    count: usize,
) -> Vec<String> {
    let text = pattern.text();
    let wanted = text.split('@').next().unwrap_or(text);
    let wanted = wanted.strip_prefix("sdt_").unwrap_or(wanted);
    if wanted.len() > LONGEST {
        return Vec::new();
    }
    let names_only = !wanted.contains(':');
    let mut near: Vec<(f64, String)> = binaries
        .into_iter()
        .flat_map(|binary| &binary.probes)
        .map(|probe| {
            let found = format!("{}:{}", probe.provider, probe.name);
            let like = |found: &str| {
                if found.len() > LONGEST {
                    return 0.0;
                }
                strsim::normalized_damerau_levenshtein(wanted, found)
            };
            let likeness = if names_only {
                like(&probe.name).max(like(&probe.provider))
            } else {
                like(&found)
            };
            (likeness, probe.event())
        })
        .filter(|(likeness, _)| *likeness >= LIKENESS)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    near.dedup_by(|a, b| a.1 == b.1);
    near.truncate(count);
    near.into_iter().map(|(_, event)| event).collect()
}

/// A path of a pattern, as written and with links resolved.
struct WantedPath<'a> {
    written: &'a Path,
    resolved: Option<std::path::PathBuf>,
}

impl<'a> WantedPath<'a> {
    fn new(written: &'a Path) -> Self {
        Self {
            written,
            resolved: resolve(written).ok(),
        }
    }

    fn is(&self, path: &Path) -> bool {
        path == self.written || self.resolved.as_deref() == Some(path)
    }
}
