//! The probes to list.

use usdtrec_buildid_cache::{BuildError, Indexed, IndexedProbe, select};
use usdtrec_format::Pattern;

/// The probes that match any of the patterns (all probes without patterns), in the order of `perf list`.
///
/// # Errors
/// [`BuildError`]: a pattern does not name one build.
pub(super) fn choose<'a>(
    binaries: &'a [Indexed],
    patterns: &[Pattern],
) -> Result<Vec<IndexedProbe<'a>>, BuildError> {
    let mut found: Vec<IndexedProbe<'a>> = if patterns.is_empty() {
        IndexedProbe::all(binaries).collect()
    } else {
        let mut found = Vec::new();
        for pattern in patterns {
            found.extend(select(binaries, pattern)?);
        }
        found
    };
    // perf sorts the text EVENT@BUILD-ID.
    found.sort_by_cached_key(|found| {
        let build_id = found.indexed.binary.build_id;
        let id = build_id.map_or_else(String::new, |id| id.to_string());
        format!("{}@{id}", found.probe.event())
    });
    found.dedup_by(|a, b| std::ptr::eq(a.probe, b.probe));
    Ok(found)
}
