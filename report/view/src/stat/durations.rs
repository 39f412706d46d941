//! The durations of spans.

use serde_json::json;
use usdtrec_trace::form::Form;

use super::StatRow;
use super::member::Member;
use super::numbers::{NumberFigure, buckets, is_exact};
use super::parts::{self, SpanParts};
use crate::table::TableCell;

/// How spans are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatSpans {
    /// Whether their histogram is shown.
    pub has_histogram: bool,
    /// Whether it is shown what their time was spent on: the numbers of these parts are before the durations.
    pub has_parts: bool,
}

/// How durations are shown for people.
pub(super) const NANOSECONDS: Form = Form::Time(1);

/// The figures of JSON and CSV, in the order of those of `report --span`.
const FIGURES: [NumberFigure; 7] = [
    NumberFigure::WholeMean,
    NumberFigure::Min,
    NumberFigure::P50,
    NumberFigure::P90,
    NumberFigure::P99,
    NumberFigure::Max,
    NumberFigure::Sum,
];

/// The figures of a table.
const SHOWN: [NumberFigure; 6] = [
    NumberFigure::Min,
    NumberFigure::P50,
    NumberFigure::P90,
    NumberFigure::P99,
    NumberFigure::Max,
    NumberFigure::Sum,
];

/// The figures of a table that is redrawn.
const LIVE: [NumberFigure; 3] = [NumberFigure::P50, NumberFigure::P99, NumberFigure::Max];

/// The same beside what the time was spent on, which has the room of the others.
const SHOWN_WITH_PARTS: [NumberFigure; 3] =
    [NumberFigure::P50, NumberFigure::P99, NumberFigure::Sum];
const LIVE_WITH_PARTS: [NumberFigure; 2] = [NumberFigure::P50, NumberFigure::P99];

impl StatSpans {
    fn shown(self) -> &'static [NumberFigure] {
        if self.has_parts {
            &SHOWN_WITH_PARTS
        } else {
            &SHOWN
        }
    }

    /// The names of the columns of a table.
    pub(super) fn columns(self) -> impl Iterator<Item = &'static str> {
        let parts = self.has_parts.then(parts::columns).into_iter().flatten();
        let figures = self.shown().iter().map(|figure| heading(*figure));
        figures.chain(parts)
    }

    /// The cells of a row of spans.
    pub(super) fn cells(self, row: &StatRow) -> Vec<TableCell> {
        let facts = row.durations();
        let figures = self.shown().iter();
        let figures = figures.map(|figure| figure.cell_in(&NANOSECONDS, facts));
        let parts = self.has_parts.then(|| parts::shares(self.parts(row)));
        figures.chain(parts.into_iter().flatten()).collect()
    }

    /// What the time of spans was spent on; `None` if it is not known, or not asked for.
    pub(super) fn parts(self, row: &StatRow) -> Option<SpanParts> {
        let numbers = self.has_parts.then_some(&row.numbers);
        SpanParts::from_facts(numbers?)
    }

    /// The figures of a table that is redrawn, with their headings.
    pub(super) fn live_figures(self) -> impl Iterator<Item = (&'static str, NumberFigure)> {
        let figures: &[NumberFigure] = if self.has_parts {
            &LIVE_WITH_PARTS
        } else {
            &LIVE
        };
        figures.iter().map(|figure| (heading(*figure), *figure))
    }
}

const fn heading(figure: NumberFigure) -> &'static str {
    match figure {
        NumberFigure::Sum => "Sum",
        figure => figure.name(),
    }
}

/// What JSON and CSV have of a row of spans.
pub(super) fn members(spans: StatSpans, row: &StatRow) -> Vec<Member> {
    let facts = row.durations();
    let figures = FIGURES.iter();
    let figures = figures
        .map(|figure| Member::new(format!("{}_ns", figure.name()), Some(figure.json(facts))));
    let mut all: Vec<Member> = figures.collect();
    all.push(Member::new("exact", Some(json!(facts.map(is_exact)))));
    if spans.has_parts {
        all.extend(parts::members(spans.parts(row), row.count));
    }
    if spans.has_histogram {
        let buckets = buckets(facts, &NANOSECONDS);
        all.push(Member::new("buckets", Some(buckets)).column_if(false));
    }
    all
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::Value;
    use usdtrec_analysis::counted_numbers::{CountedNumbers, NumberFacts};
    use usdtrec_format::NumberBucket;
    use usdtrec_format::NumberEnds;

    use super::super::{SpanFates, StatCounts, StatKey, StatRow, StatView};
    use super::*;
    use crate::format::Format;

    /// A span with a group of two, and what became of others.
    fn counts() -> StatCounts {
        let bucket = NumberBucket::from_number;
        let durations = CountedNumbers {
            count: 2,
            sum: 2_503_001,
            ends: Some(NumberEnds {
                min: 3001,
                max: 2_500_000,
            }),
            histogram: Some(
                [(bucket(2976), 1), (bucket(2_490_368), 1)]
                    .into_iter()
                    .collect(),
            ),
            unbucketed: 0,
        };
        let row = |keys, count, numbers: Option<NumberFacts>, fates| StatRow {
            event: "app:request".to_owned(),
            is_span: true,
            keys,
            count,
            lost: 0,
            numbers: vec![numbers],
            fates,
        };
        let fates = SpanFates {
            open: 4,
            unfinished: 1,
            unmatched: 2,
            short: 7,
            ..SpanFates::default()
        };
        StatCounts {
            elapsed: Duration::from_secs(1),
            interval: Duration::from_secs(1),
            rows: vec![
                row(
                    Some(vec![StatKey::Number(7)]),
                    2,
                    Some(durations.facts()),
                    None,
                ),
                row(None, 0, None, Some(fates)),
            ],
        }
    }

    fn shown(format: Format, has_histogram: bool) -> String {
        let view = StatView::new(format, false, vec!["pid".to_owned()], Vec::new());
        let mut view = view.with_spans(Some(StatSpans {
            has_histogram,
            has_parts: false,
        }));
        view.show(&counts())
    }

    #[test]
    fn text_has_durations_and_what_became_of_others() {
        let text = shown(Format::Text, false);
        assert_eq!(
            text,
            "# 1.0 s: 2 spans in 1.00 s, 0 lost\n\
             Span         pid  Count    /s  min  p50    p90    p99    max    Sum  Open\n\
             app:request    7      2  2.00  3us  3us  2.5ms  2.5ms  2.5ms  2.5ms\n"
                .to_owned()
                + text.split_once("2.5ms\n").map_or("", |(_, rest)| rest),
            "{text}"
        );
        for remark in [
            "  begins without an end: app:request 1\n",
            "  ends without a beginning: app:request 2\n",
            "  shorter ones, which are not added up: app:request 7\n",
            "  percentiles of spans are within 1.6 %\n",
        ] {
            assert!(text.contains(remark), "{remark}{text}");
        }
        let bars = shown(Format::Text, true);
        assert!(
            bars.contains("app:request  7: 2 spans, log2 buckets\n"),
            "{bars}"
        );
    }

    #[test]
    fn json_and_csv_have_the_words_of_reports() {
        let json = shown(Format::Json, true);
        let lines: Vec<Value> = json
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        assert_eq!(lines[0]["span"], "app:request");
        assert_eq!(lines[0]["event"], Value::Null);
        assert_eq!(lines[0]["mean_ns"], 1_251_500);
        assert_eq!(lines[0]["max_ns"], 2_500_000);
        assert_eq!(lines[0]["open"], Value::Null, "of a group it is not known");
        assert_eq!(lines[0]["buckets"][0]["from"], 2048);
        // As in reports, unfinished ones are among the open ones.
        assert_eq!(lines[1]["open"], 5);
        assert_eq!(
            (&lines[1]["short"], &lines[1]["lost"]),
            (&json!(7), &json!(0))
        );
        let csv = shown(Format::Csv, false);
        let lines: Vec<&str> = csv.lines().collect();
        let heading = "elapsed_ns,interval_ns,event,span,pid,others,count,per_second,lost,open,unfinished,unmatched,unkeyed,short,unkept,\
                       mean_ns,min_ns,p50_ns,p90_ns,p99_ns,max_ns,sum_ns,exact";
        assert_eq!(lines[0], heading);
        assert_eq!(
            lines[1],
            "1000000000,1000000000,,app:request,7,,2,2,,,,,,,,1251500,3001,3001,2500000,2500000,2500000,2503001,false"
        );
        assert_eq!(
            lines[2],
            "1000000000,1000000000,,app:request,,true,0,0,0,5,1,2,0,7,0,,,,,,,,"
        );
    }
}
