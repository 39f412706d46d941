//! What is between the files of a trace that is made of several, in sentences.

use std::collections::HashSet;

use usdtrec_format::escape::shown;
use usdtrec_format::trace::TimeRange;
use usdtrec_format::{clock_seconds, counted};
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::list::list;
use usdtrec_trace::session::joined_files::{JoinedFile, JoinedFiles};

use crate::numbers;

/// Gaps, and differences of probes, that have a sentence each.
const MAX_EACH: usize = 5;

/// A sentence for each gap between files and for each file with other probes; of very many, for the longest and the first.
pub(crate) fn sentences(notices: &Notices) -> Vec<String> {
    let files = &notices.files;
    let mut sentences = Vec::new();
    let mut gaps: Vec<(&JoinedFile, TimeRange)> = files
        .iter()
        .filter_map(|file| Some((file, file.gap?)))
        .collect();
    let more = gaps.len().saturating_sub(MAX_EACH);
    if more > 0 {
        gaps.sort_by_key(|(_, gap)| std::cmp::Reverse(length(*gap)));
        gaps.truncate(MAX_EACH);
        gaps.sort_by_key(|(_, gap)| gap.first);
    }
    sentences.extend(gaps.iter().map(|(file, gap)| of_gap(files, file, *gap)));
    if more > 0 {
        let all = files.gaps();
        let sum = all.clone().map(length).fold(0, u64::saturating_add);
        sentences.push(format!(
            "{} more between files, in which nothing was recorded; all gaps together: {}",
            counted(more as u64, "gap"),
            numbers::duration(sum as f64)
        ));
    }
    let mut differing = files.iter().filter_map(of_probes);
    sentences.extend(differing.by_ref().take(MAX_EACH));
    let more = differing.count() as u64;
    if more > 0 {
        let files = counted(more, "more file");
        sentences.push(format!(
            "{files} with probes that differ from the files before"
        ));
    }
    sentences.extend(of_left_out(notices));
    sentences
}

/// A line about the files that a trace is made of; `None` of a single one.
pub(crate) fn line(files: &JoinedFiles) -> Option<String> {
    let count = files.iter().count() as u64;
    if count == 0 {
        return None;
    }
    let gaps = files.gaps();
    let between = match gaps.clone().count() as u64 {
        0 => String::new(),
        gaps_between => {
            let sum = gaps.map(length).fold(0, u64::saturating_add);
            let gaps = counted(gaps_between, "gap");
            format!(
                ", with {gaps} between them: nothing was recorded for {}",
                numbers::duration(sum as f64)
            )
        }
    };
    Some(format!("{}{between}", counted(count, "file")))
}

fn length(gap: TimeRange) -> u64 {
    gap.last.saturating_sub(gap.first)
}

fn of_gap(files: &JoinedFiles, file: &JoinedFile, gap: TimeRange) -> String {
    let before = file.before(files).map(|path| shown(path).to_string());
    format!(
        "nothing was recorded for {}, from {} to {} s, between {} and {}: spans and waits over this time may be wrong",
        numbers::duration(length(gap) as f64),
        clock_seconds(gap.first),
        clock_seconds(gap.last),
        before.unwrap_or_default(),
        shown(&file.path)
    )
}

fn of_probes(file: &JoinedFile) -> Option<String> {
    // What has the same name is of another build, or at another place.
    let lacking: HashSet<&String> = file.probes.lacking.iter().collect();
    let added = file.probes.added.iter();
    let (changed, new): (Vec<_>, Vec<_>) = added.partition(|name| lacking.contains(name));
    let known: HashSet<&String> = changed.iter().copied().collect();
    let lacking = file.probes.lacking.iter();
    let lacking: Vec<_> = lacking.filter(|name| !known.contains(name)).collect();
    let has = |what: &str, names: &[&String]| {
        let listed = || list(names.iter().map(|name| name.as_str()));
        (!names.is_empty()).then(|| format!("{what} {}", listed()))
    };
    let differences = [
        has("lacks", &lacking),
        has("adds", &new),
        has("has another definition of", &changed),
    ];
    let differences: Vec<String> = differences.into_iter().flatten().collect();
    (!differences.is_empty()).then(|| {
        format!(
            "{} does not have the probes of the files before: it {}",
            shown(&file.path),
            differences.join(", and ")
        )
    })
}

fn of_left_out(notices: &Notices) -> Option<String> {
    let paths = notices.left_out.iter();
    let paths: Vec<String> = paths.map(|path| path.display().to_string()).collect();
    let are = match paths.len() {
        0 => return None,
        1 => "1 file is left out, which is empty, no trace, or *.old",
        _ => "files are left out, which are empty, no traces, or *.old",
    };
    Some(format!("{are}: {}", list(paths.iter().map(String::as_str))))
}
