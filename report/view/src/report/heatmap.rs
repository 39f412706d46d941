//! Heat maps as text and CSV; `report/FIELDS.md` describes columns.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;
use usdtrec_analysis::heatmap::{HeatMaps, INTERVALS};
use usdtrec_format::escape::escape;

use crate::answer_style::AnswerStyle;
use crate::bars::shade;
use crate::columns::right;
use crate::head;
use crate::numbers::duration;
use crate::report::shown_times::ShownTimes;
use crate::subject_names::{ambiguities, form, measured};
use crate::text::quoted::Csv;
use crate::text::scalar;

/// Half a millisecond, ns: moments are rounded to milliseconds.
const HALF_MS: u64 = 500_000;

/// Heat maps as text: a column for each interval, a line for each bucket.
pub(crate) fn text(maps: &HeatMaps, style: AnswerStyle, times: &ShownTimes) -> String {
    let AnswerStyle {
        human,
        theme,
        hints,
        ..
    } = style;
    let timeline = maps.timeline;
    let mut out = String::new();
    let remarks = ambiguities(&maps.ambiguities, hints);
    head::put(&maps.origin, &remarks, theme, &mut out);
    if maps.all.is_empty() {
        out.push_str("\nNo numbers.\n");
    }
    for map in &maps.all {
        let _ = writeln!(
            out,
            "\n{}: {} a column, darkest {} ({} values)",
            escape(&measured(&map.of, human)),
            duration(timeline.interval as f64),
            map.most,
            map.count
        );
        let form = form(&map.of, human);
        let labels = map.buckets.iter().rev();
        let labels = labels.map(|bucket| scalar::shown(bucket.from, &form));
        let labels: Vec<String> = labels.collect();
        let lengths = labels.iter().map(|label| label.width());
        let width = lengths.max().unwrap_or(0);
        for (bucket, label) in map.buckets.iter().rev().zip(labels) {
            let cells = bucket.counts.iter().map(|&count| shade(count, map.most));
            let cells: String = cells.collect();
            let _ = writeln!(out, "{} │{}", right(&label, width), cells.trim_end());
        }
        let end = timeline.begin(timeline.intervals as u64);
        let moment = |time: u64| times.shown(time.saturating_add(HALF_MS), 3);
        let (from, to) = (moment(timeline.from), moment(end));
        let room = INTERVALS.saturating_sub(from.len() + to.len());
        let _ = writeln!(out, "{:width$} └{}", "", "─".repeat(INTERVALS));
        let _ = writeln!(out, "{:width$}  {from}{:room$}{to}", "", "");
    }
    out
}

/// A header line, and a line for each cell that is not empty.
pub(crate) fn csv(csv: Csv, maps: &HeatMaps) -> String {
    let mut out = "of,time_ns,from,to,count\n".to_owned();
    for map in &maps.all {
        let of = measured(&map.of, false);
        for column in 0..maps.timeline.intervals {
            for bucket in &map.buckets {
                let count = bucket.counts.get(column).copied().unwrap_or(0);
                if count > 0 {
                    let _ = writeln!(
                        out,
                        "{},{},{},{},{count}",
                        csv.field(&of),
                        maps.timeline.begin(column as u64),
                        scalar::decimal(bucket.from),
                        bucket.to.map(scalar::decimal).unwrap_or_default()
                    );
                }
            }
        }
    }
    out
}
