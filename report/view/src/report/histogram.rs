//! Histograms as text and CSV; `report/FIELDS.md` describes columns.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr as _;
use usdtrec_analysis::histogram::{Bucket, Edge, Histograms};
use usdtrec_analysis::measured_subject::Division;
use usdtrec_format::escape::escape;
use usdtrec_trace::form::Form;

use crate::answer_style::AnswerStyle;
use crate::bars::bar;
use crate::columns::right;
use crate::cut_apart::shortened_apart;
use crate::head;
use crate::subject_names::{ambiguities, form, measured};
use crate::text::quoted::Csv;
use crate::text::scalar::{decimal, shown};
use crate::theme::Theme;

/// Columns of the longest bar.
const BAR: usize = 42;

/// How a histogram is divided, in words.
pub const fn words(division: Division) -> &'static str {
    match division {
        Division::Values => "by value",
        Division::Linear => "buckets of one width",
        Division::Log2 => "log2 buckets",
        Division::Strings => "most frequent strings",
    }
}

/// An edge in decimal, or the string itself.
pub fn edge(edge: &Edge) -> String {
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

/// The labels of the bars of buckets, of different strings different ones; strings have at most so many columns, and a mark if they are cut.
pub fn labels(buckets: &[Bucket], form: &Form, most: usize) -> Vec<String> {
    let whole = buckets.iter().map(|bucket| match &bucket.from {
        Edge::Number(number) => shown(*number, form),
        from => readable(from, form).unwrap_or_else(|| edge(from)),
    });
    let whole: Vec<String> = whole.collect();
    let whole: Vec<&str> = whole.iter().map(String::as_str).collect();
    shortened_apart(&whole, most)
}

/// Histograms as text, a bar for each bucket.
pub(crate) fn text(histograms: &Histograms, style: AnswerStyle) -> String {
    let AnswerStyle {
        human,
        theme,
        hints,
        ..
    } = style;
    let mut out = String::new();
    let remarks = ambiguities(&histograms.ambiguities, hints);
    head::put(&histograms.origin, &remarks, theme, &mut out);
    for histogram in &histograms.all {
        let _ = writeln!(
            out,
            "\n{}, {} values, {}",
            escape(&measured(&histogram.of, human)),
            histogram.count,
            words(histogram.division)
        );
        let form = form(&histogram.of, human);
        put_bars(&histogram.buckets, &form, theme, &mut out);
        if histogram.missing > 0 {
            let _ = writeln!(out, "{} more are not known", histogram.missing);
        }
    }
    out
}

/// Appends a bar for each bucket.
pub(crate) fn put_bars(buckets: &[Bucket], form: &Form, theme: Theme, out: &mut String) {
    let labels = labels(buckets, form, theme.room(LABEL));
    let buckets = || buckets.iter();
    let widest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
    let width = widest(&mut labels.iter().map(|label| label.width()));
    let digits = widest(&mut buckets().map(|bucket| bucket.count.to_string().len()));
    let most = buckets().map(|bucket| bucket.count).max().unwrap_or(0);
    for (bucket, label) in buckets().zip(&labels) {
        let line = format!(
            "{}  {:>digits$}  {}",
            right(label, width),
            bucket.count,
            theme.bar(&bar(bucket.count, most, BAR))
        );
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// A header line, and a line for each bucket.
pub(crate) fn csv(csv: Csv, histograms: &Histograms) -> String {
    let mut out = "of,from,to,count\n".to_owned();
    for histogram in &histograms.all {
        let of = measured(&histogram.of, false);
        let form = form(&histogram.of, false);
        for bucket in &histogram.buckets {
            let from = readable(&bucket.from, &form).unwrap_or_else(|| edge(&bucket.from));
            let _ = writeln!(
                out,
                "{},{},{},{}",
                csv.field(&of),
                csv.field(&from),
                bucket.to.as_ref().map(edge).unwrap_or_default(),
                bucket.count
            );
        }
    }
    out
}
