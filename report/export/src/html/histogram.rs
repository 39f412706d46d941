//! A histogram as a table with bars.

use usdtrec_analysis::histogram::Histogram;
use usdtrec_view::numbers::percent;
use usdtrec_view::report::histogram::{HistogramBar, bars, caption, without_bar};
use usdtrec_view::subject_names::form;
use usdtrec_view::table::TableCell;

use crate::html::markup::{Markup, percent_length};
use crate::html::notes::put_notes;
use crate::html::table::HtmlTable;

/// Maximum size of the rows, bytes.
const MAX_BYTES: usize = 12 << 10;
/// Maximum length of a string, characters.
const MAX_LABEL_CHARACTERS: usize = 60;

/// Appends a histogram.
pub(crate) fn put(histogram: &Histogram, unit: &str, out: &mut Markup) {
    let form = form(&histogram.of);
    let mut table = HtmlTable::new("bars", ["From", unit, "Share", ""], MAX_BYTES).in_order();
    let bars = bars(&histogram.buckets, &form, MAX_LABEL_CHARACTERS);
    for HistogramBar { label, count, most } in bars {
        let share = TableCell::number(percent(count, histogram.count), count);
        let cells = [label, TableCell::count(count), share];
        table.row(&cells, Some(&bar(count, most)));
    }
    table.put(out);
    let caption = [caption(histogram)].into_iter();
    let remark: Vec<String> = caption.chain(without_bar(histogram)).collect();
    put_notes("note", [remark.join("; ")], out);
}

fn bar(count: u64, most: u64) -> Markup {
    let share = 100.0 * count as f64 / most.max(1) as f64;
    let mut bar = Markup::default();
    bar.tag("<svg class=\"bar\" aria-hidden=\"true\"><rect height=\"100%\"")
        .attribute("width", &percent_length(share))
        .tag("/></svg>");
    bar
}
