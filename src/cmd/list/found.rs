//! The probes to list.

use usdtrec_buildid_cache::{Indexed, select};
use usdtrec_format::{Pattern, Probe};

/// A probe to list, and its file.
pub(super) type Found<'a> = (&'a Indexed, &'a Probe);

/// The probes that match any of the patterns (all probes without patterns), in the order of `perf list`.
pub(super) fn choose<'a>(binaries: &'a [Indexed], patterns: &[Pattern]) -> Vec<Found<'a>> {
    let mut found: Vec<Found<'a>> = if patterns.is_empty() {
        let all = binaries.iter();
        all.flat_map(|indexed| {
            indexed
                .binary
                .probes
                .iter()
                .map(move |probe| (indexed, probe))
        })
        .collect()
    } else {
        patterns
            .iter()
            .flat_map(|pattern| select(binaries, pattern))
            .collect()
    };
    // perf sorts the text EVENT@BUILD-ID.
    found.sort_by_cached_key(|(indexed, probe)| {
        let build_id = indexed.binary.build_id;
        let id = build_id.map_or_else(String::new, |id| id.to_string());
        format!("{}@{id}", probe.event())
    });
    found.dedup_by(|a, b| std::ptr::eq(a.1, b.1));
    found
}
