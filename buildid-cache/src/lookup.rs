//! Selects probes by pattern, and suggests similar names.

use std::path::{Path, PathBuf};

use usdtrec_format::{Binary, BuildId, Pattern, Probe};

use crate::builds::{BuildError, chosen_build};
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
///
/// # Errors
/// [`BuildError`]: the pattern does not name one build.
pub fn select<'a>(
    binaries: &'a [Indexed],
    pattern: &Pattern,
) -> Result<Vec<IndexedProbe<'a>>, BuildError> {
    let all = binaries.iter().map(|indexed| &indexed.binary);
    let wanted = WantedFile::new(pattern, all)?;
    let found = binaries
        .iter()
        .filter(|indexed| wanted.is(&indexed.binary))
        .flat_map(IndexedProbe::all_of)
        .filter(|found| pattern.matches(&found.probe.provider, &found.probe.name));
    Ok(found.collect())
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

/// The file that a pattern names, if it names one.
#[derive(Clone, Debug)]
pub struct WantedFile<'a> {
    /// Its path, as written and with links resolved.
    written: Option<&'a Path>,
    resolved: Option<PathBuf>,
    build: Option<BuildId>,
}

impl<'a> WantedFile<'a> {
    /// The file of a pattern, among these.
    ///
    /// # Errors
    /// [`BuildError`]: the pattern does not name one build.
    pub fn new<'b>(
        pattern: &'a Pattern,
        binaries: impl Iterator<Item = &'b Binary>,
    ) -> Result<Self, BuildError> {
        let written = pattern.path();
        Ok(Self {
            written,
            resolved: written.and_then(|path| resolve(path).ok()),
            build: chosen_build(pattern, binaries)?,
        })
    }

    /// Whether it is this one.
    #[must_use]
    pub fn is(&self, binary: &Binary) -> bool {
        let path = binary.path.as_path();
        let is_path = |written| path == written || self.resolved.as_deref() == Some(path);
        self.written.is_none_or(is_path) && (self.build.is_none() || self.build == binary.build_id)
    }
}
