//! Histograms as text, JSON and CSV; `report/FIELDS.md` describes members and columns.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};
use unicode_width::UnicodeWidthStr as _;
use usdtrec_analysis::histogram::{Bucket, Edge, Histogram, Histograms};
use usdtrec_analysis::measured_subject::Division;
use usdtrec_format::escape::escape;
use usdtrec_trace::form::Form;

use crate::answer_style::AnswerStyle;
use crate::bars::bar;
use crate::cells::EMPTY;
use crate::columns::right;
use crate::cut_apart::shortened_apart;
use crate::head;
use crate::subject_names::{ambiguities, form, measured};
use crate::table::TableCell;
use crate::text::quoted::Csv;
use crate::text::scalar::{self, decimal, shown};
use crate::theme::Theme;

/// Columns of the longest bar.
const BAR: usize = 42;

/// How a histogram is divided, in words.
pub(crate) const fn words(division: Division) -> &'static str {
    match division {
        Division::Values => "by value",
        Division::Linear => "buckets of one width",
        Division::Log2 => "log2 buckets",
        Division::Strings => "most frequent strings",
    }
}

/// An edge in decimal, or the string itself.
pub(crate) fn edge(edge: &Edge) -> String {
    match edge {
        Edge::Number(number) => decimal(*number),
        Edge::String(string) => String::from_utf8_lossy(string).into_owned(),
    }
}

/// The readable form of a string that is a mangled name.
pub(crate) fn readable(edge: &Edge, form: &Form) -> Option<String> {
    match edge {
        Edge::String(string) => form.readable_string(string),
        _ => None,
    }
}

/// Columns of the label of a string's bar, in lines of 80 columns.
const LABEL: usize = 30;

/// A bucket as it is shown.
#[derive(Debug)]
pub struct HistogramBar {
    /// Where it begins.
    pub label: TableCell,
    /// Number of values in it.
    pub count: u64,
    /// Number of values in the greatest bucket.
    pub most: u64,
}

/// How many values a histogram has, how it is divided, and how exact that is.
pub fn caption(histogram: &Histogram) -> String {
    let exactness = match (histogram.exact, histogram.division) {
        (false, Division::Linear | Division::Log2) => {
            "; those within 0.4 % of an edge may be in the next one"
        }
        _ => "",
    };
    let division = words(histogram.division);
    format!("{} values, {division}{exactness}", histogram.count)
}

/// How many values have no bar, and why.
pub fn without_bar(histogram: &Histogram) -> impl Iterator<Item = String> {
    let of = |count: u64, what: &str| (count > 0).then(|| format!("{count} {what}"));
    let all = [
        of(histogram.others, "are other strings"),
        of(histogram.nan, "more are NaN"),
        of(histogram.nulls, "more are null"),
        of(histogram.missing, "more are not known"),
    ];
    all.into_iter().flatten()
}

/// The bars of buckets. Labels of different strings are different; strings have at most so many columns, and a mark if they are cut.
pub fn bars(buckets: &[Bucket], form: &Form, columns: usize) -> Vec<HistogramBar> {
    let whole = buckets.iter().map(|bucket| match &bucket.from {
        Edge::Number(number) => shown(*number, form),
        Edge::String(string) if string.is_empty() => EMPTY.to_owned(),
        from => readable(from, form).unwrap_or_else(|| edge(from)),
    });
    let whole: Vec<String> = whole.collect();
    let whole: Vec<&str> = whole.iter().map(String::as_str).collect();
    let most = buckets.iter().map(|bucket| bucket.count).max().unwrap_or(0);
    let labels = shortened_apart(&whole, columns);
    let bars = buckets.iter().zip(labels);
    let bars = bars.map(|(bucket, label)| HistogramBar {
        label: match &bucket.from {
            Edge::String(_) => TableCell::Code(label),
            from => TableCell::number(label, edge(from)),
        },
        count: bucket.count,
        most,
    });
    bars.collect()
}

/// Histograms as text, a bar for each bucket.
pub(crate) fn text(histograms: &Histograms, style: AnswerStyle) -> String {
    let AnswerStyle { theme, hints, .. } = style;
    let mut out = String::new();
    let remarks = ambiguities(&histograms.ambiguities, hints);
    head::put(&histograms.origin, &remarks, theme, &mut out);
    for histogram in &histograms.all {
        let _ = writeln!(
            out,
            "\n{}, {}",
            escape(&measured(&histogram.of, true)),
            caption(histogram)
        );
        let form = form(&histogram.of);
        put_bars(&histogram.buckets, &form, theme, &mut out);
        out.extend(without_bar(histogram).map(|line| line + "\n"));
    }
    out
}

/// Appends a bar for each bucket.
pub(crate) fn put_bars(buckets: &[Bucket], form: &Form, theme: Theme, out: &mut String) {
    let bars = bars(buckets, form, theme.room(LABEL));
    let widths = bars.iter().map(|bar| bar.label.shown().width());
    let width = widths.max().unwrap_or(0);
    let digits = bars.first().map_or(0, |bar| bar.most.to_string().len());
    for HistogramBar { label, count, most } in &bars {
        let line = format!(
            "{}  {count:>digits$}  {}",
            right(&label.shown(), width),
            theme.bar(&bar(*count, *most, BAR))
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// An object for each histogram.
pub(crate) fn json(histograms: &Histograms) -> Json {
    let all = histograms.all.iter().map(|histogram| {
        let form = form(&histogram.of).plain();
        json!({
            "of": measured(&histogram.of, false),
            "count": histogram.count,
            "exact": histogram.exact,
            "buckets": json_buckets(&histogram.buckets, &form),
            "missing": histogram.missing,
            "nan": histogram.nan,
            "nulls": histogram.nulls,
            "others": histogram.others,
        })
    });
    all.collect()
}

/// An object for each bucket of an argument's numbers or strings.
pub(crate) fn json_buckets(buckets: &[Bucket], form: &Form) -> Json {
    let json_edge = |of: &Edge| match of {
        Edge::Number(number) => scalar::json(*number),
        Edge::String(_) => edge(of).into(),
    };
    let all = buckets.iter().map(|Bucket { from, to, count }| {
        let to = to.as_ref().map(json_edge);
        let mut bucket = json!({"from": json_edge(from), "to": to, "count": count});
        if let Some(name) = readable(from, form) {
            bucket["demangled"] = name.into();
        }
        bucket
    });
    all.collect()
}

/// A header line, and a line for each bucket.
pub(crate) fn csv(csv: Csv, histograms: &Histograms) -> String {
    let mut out = "of,from,to,count\n".to_owned();
    for histogram in &histograms.all {
        let of = measured(&histogram.of, false);
        let form = form(&histogram.of).plain();
        for bucket in &histogram.buckets {
            let from = readable(&bucket.from, &form).unwrap_or_else(|| edge(&bucket.from));
            let _ = writeln!(
                out,
                "{},{},{},{}",
                csv.field(&of),
                csv.string(&from),
                bucket.to.as_ref().map(edge).unwrap_or_default(),
                bucket.count
            );
        }
    }
    out
}
