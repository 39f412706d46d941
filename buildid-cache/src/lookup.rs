//! Selects probes by pattern, and suggests similar names.

use std::path::Path;

use usdtrec_format::{Binary, Pattern, Probe};

use crate::entry::Indexed;
use crate::find_file::resolve;

/// Minimum similarity (0 to 1) of a suggested name.
const MIN_SIMILARITY: f64 = 0.5;
/// Maximum length of names that are compared, bytes. Time and memory grow with the product of both lengths.
const MAX_LENGTH: usize = 256;

/// A probe in an index.
#[derive(Clone, Copy, Debug)]
pub struct IndexedProbe<'a> {
    /// The file.
    pub indexed: &'a Indexed,
    /// The probe.
    pub probe: &'a Probe,
}

impl<'a> IndexedProbe<'a> {
    /// All probes, in the order of the binaries.
    pub fn all(binaries: &'a [Indexed]) -> impl Iterator<Item = Self> {
        binaries.iter().flat_map(Self::all_of)
    }

    fn all_of(indexed: &'a Indexed) -> impl Iterator<Item = Self> {
        let probes = indexed.binary.probes.iter();
        probes.map(move |probe| Self { indexed, probe })
    }
}

/// The probes that match a pattern, in the order of the binaries.
#[must_use]
pub fn select<'a>(binaries: &'a [Indexed], pattern: &Pattern) -> Vec<IndexedProbe<'a>> {
    let wanted = pattern.path().map(WantedPath::new);
    let fits = |indexed: &&Indexed| {
        wanted
            .as_ref()
            .is_none_or(|wanted| wanted.is(&indexed.binary.path))
    };
    binaries
        .iter()
        .filter(fits)
        .flat_map(IndexedProbe::all_of)
        .filter(|found| pattern.matches(&found.probe.provider, &found.probe.name))
        .collect()
}

/// Up to `count` events (`sdt_PROVIDER:NAME`) with names similar to the pattern, the most similar first.
#[must_use]
pub fn suggest<'a>(
    binaries: impl IntoIterator<Item = &'a Binary>,
    pattern: &Pattern,
    count: usize,
) -> Vec<String> {
    let text = pattern.text();
    let wanted = text.split('@').next().unwrap_or(text);
    let wanted = wanted.strip_prefix("sdt_").unwrap_or(wanted);
    if wanted.len() > MAX_LENGTH {
        return Vec::new();
    }
    let names_only = !wanted.contains(':');
    let mut near: Vec<(f64, String)> = binaries
        .into_iter()
        .flat_map(|binary| &binary.probes)
        .map(|probe| {
            let found = format!("{}:{}", probe.provider, probe.name);
            let similarity_to = |found: &str| {
                if found.len() > MAX_LENGTH {
                    return 0.0;
                }
                strsim::normalized_damerau_levenshtein(wanted, found)
            };
            let similarity = if names_only {
                similarity_to(&probe.name).max(similarity_to(&probe.provider))
            } else {
                similarity_to(&found)
            };
            (similarity, probe.event())
        })
        .filter(|(similarity, _)| *similarity >= MIN_SIMILARITY)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    near.dedup_by(|a, b| a.1 == b.1);
    near.truncate(count);
    near.into_iter().map(|(_, event)| event).collect()
}

/// The path of a pattern, as written and with links resolved.
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
