//! Heat maps as text, JSON and CSV; `report/FIELDS.md` describes members and columns.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};
use unicode_width::UnicodeWidthStr as _;
use usdtrec_analysis::heatmap::{HeatMap, HeatMaps, INTERVALS};
use usdtrec_analysis::stats::timeline::Timeline;
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

/// A row of a heat map as it is shown.
#[derive(Debug)]
pub struct ShadeRow<'a> {
    /// What its counts are of, or where its values begin.
    pub label: String,
    /// Where its values end, if the label says where they begin.
    pub until: Option<String>,
    /// In each interval.
    pub counts: &'a [u64],
}

/// The rows of a heat map, the greatest values on top.
pub fn rows(map: &HeatMap) -> Vec<ShadeRow<'_>> {
    let form = form(&map.of);
    let rows = map.buckets.iter().rev().map(|bucket| ShadeRow {
        label: scalar::shown(bucket.from, &form),
        until: bucket.to.map(|to| scalar::shown(to, &form)),
        counts: &bucket.counts,
    });
    rows.collect()
}

/// When the intervals begin and end.
pub fn ends(timeline: Timeline, times: &ShownTimes) -> [String; 2] {
    let end = timeline.begin(timeline.intervals as u64);
    [timeline.from, end].map(|time| times.shown(time.saturating_add(HALF_MS), 3))
}

/// Heat maps as text: a column for each interval, a line for each bucket.
pub(crate) fn text(maps: &HeatMaps, style: AnswerStyle, times: &ShownTimes) -> String {
    let AnswerStyle { theme, hints, .. } = style;
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
            escape(&measured(&map.of, true)),
            duration(timeline.interval as f64),
            map.most,
            map.count
        );
        let rows = rows(map);
        let lengths = rows.iter().map(|row| row.label.width());
        let width = lengths.max().unwrap_or(0);
        for row in rows {
            let cells = row.counts.iter().map(|&count| shade(count, map.most));
            let cells: String = cells.collect();
            let _ = writeln!(out, "{} │{}", right(&row.label, width), cells.trim_end());
        }
        let [from, to] = ends(timeline, times);
        let room = INTERVALS.saturating_sub(from.len() + to.len());
        let _ = writeln!(out, "{:width$} └{}", "", "─".repeat(INTERVALS));
        let _ = writeln!(out, "{:width$}  {from}{:room$}{to}", "", "");
    }
    out
}

/// An object for each heat map.
pub(crate) fn json(maps: &HeatMaps) -> Json {
    let all = maps.all.iter().map(|map| {
        let buckets = map.buckets.iter().map(|bucket| {
            let [from, to] = [Some(bucket.from), bucket.to].map(|end| end.map(scalar::json));
            json!({"from": from, "to": to, "counts": bucket.counts})
        });
        json!({
            "of": measured(&map.of, false),
            "from_ns": maps.timeline.from,
            "interval_ns": maps.timeline.interval,
            "buckets": buckets.collect::<Json>(),
        })
    });
    all.collect()
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
