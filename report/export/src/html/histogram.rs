//! A histogram as a table with bars.

use usdtrec_analysis::histogram::{Bucket, Edge, Histogram};
use usdtrec_view::measured::form;
use usdtrec_view::numbers::percent;
use usdtrec_view::report::histogram::{edge, label, words};

use crate::html::markup::{Markup, percent_length};
use crate::html::table::{HtmlCell, HtmlColumn, HtmlTable};

/// Room for the rows, bytes.
const ROOM: usize = 12 << 10;

/// Appends a histogram.
pub(crate) fn put(histogram: &Histogram, unit: &str, out: &mut Markup) {
    let form = form(&histogram.of, true);
    let mut columns = HtmlColumn::all(&["From", "", "Share", ""], 0);
    for (at, column) in columns.iter_mut().enumerate() {
        column.is_number = at < 3;
        if at == 1 {
            unit.clone_into(&mut column.name);
        }
    }
    let mut table = HtmlTable::new("bars", columns, ROOM).in_order();
    let counts = histogram.buckets.iter().map(|bucket| bucket.count);
    let most = counts.max().unwrap_or(0);
    for bucket in &histogram.buckets {
        table.row(&[
            first_cell(bucket, label(&bucket.from, &form)),
            HtmlCell::count(bucket.count),
            HtmlCell::number(percent(bucket.count, histogram.count), bucket.count),
            HtmlCell::Part(bar(bucket.count, most)),
        ]);
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
    out.tag("<p class=\"note\">").text(&remark).tag("</p>\n");
}

fn first_cell(bucket: &Bucket, label: String) -> HtmlCell {
    match &bucket.from {
        Edge::Text(_) => HtmlCell::Code(label),
        from => HtmlCell::number(label, edge(from)),
    }
}

fn bar(count: u64, most: u64) -> Markup {
    let share = 100.0 * count as f64 / most.max(1) as f64;
    let mut bar = Markup::default();
    bar.tag("<svg class=\"bar\" aria-hidden=\"true\"><rect height=\"100%\"")
        .attribute("width", &percent_length(share))
        .tag("/></svg>");
    bar
}
