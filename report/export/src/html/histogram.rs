//! A histogram as a table with bars.

use usdtrec_analysis::histogram::{Edge, Histogram};
use usdtrec_view::numbers::percent;
use usdtrec_view::report::histogram::{edge, labels, words};
use usdtrec_view::subject_names::form;
use usdtrec_view::table::TableCell;

use crate::html::markup::{Markup, percent_length};
use crate::html::notes::put_notes;
use crate::html::table::HtmlTable;

/// Maximum size of the rows, bytes.
const MAX_BYTES: usize = 12 << 10;
/// Maximum length of a text, characters.
const MAX_LABEL_CHARACTERS: usize = 60;

/// Appends a histogram.
pub(crate) fn put(histogram: &Histogram, unit: &str, out: &mut Markup) {
    let form = form(&histogram.of, true);
    let mut table = HtmlTable::new("bars", ["From", unit, "Share", ""], MAX_BYTES).in_order();
    let counts = histogram.buckets.iter().map(|bucket| bucket.count);
    let most = counts.max().unwrap_or(0);
    let labels = labels(&histogram.buckets, &form, MAX_LABEL_CHARACTERS);
    for (bucket, label) in histogram.buckets.iter().zip(labels) {
        let cells = [
            match &bucket.from {
                Edge::String(_) => TableCell::Code(label),
                from => TableCell::number(label, edge(from)),
            },
            TableCell::count(bucket.count),
            TableCell::number(percent(bucket.count, histogram.count), bucket.count),
        ];
        table.row(&cells, Some(&bar(bucket.count, most)));
    }
    table.put(out);
    let missing = match histogram.missing {
        0 => String::new(),
        missing => format!("; {missing} more are not known"),
    };
    let remark = format!(
        "{} values, {}{missing}",
        histogram.count,
        words(histogram.division)
    );
    put_notes("note", [remark], out);
}

fn bar(count: u64, most: u64) -> Markup {
    let share = 100.0 * count as f64 / most.max(1) as f64;
    let mut bar = Markup::default();
    bar.tag("<svg class=\"bar\" aria-hidden=\"true\"><rect height=\"100%\"")
        .attribute("width", &percent_length(share))
        .tag("/></svg>");
    bar
}
