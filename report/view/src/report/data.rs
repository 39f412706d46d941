//! The summary of a trace as CSV; `report/FIELDS.md` describes columns.

use usdtrec_analysis::stats::frequency::total;
use usdtrec_analysis::stats::number::Scalar;
use usdtrec_analysis::stats::ratio::{per_second, share};
use usdtrec_analysis::summary::facts::SummaryFacts;
use usdtrec_analysis::summary::probe::{ArgumentFacts, Spread};

use crate::text::quoted::Csv;
use crate::text::scalar;

/// A header line, and a line for each argument, or for each probe without arguments.
pub(crate) fn csv(csv: Csv, facts: &SummaryFacts) -> String {
    let mut lines = vec![
        "event,count,per_second,share,lost,argument,type,numbers,min,p50,p90,p99,max,exact,nan,missing,nulls,estimated_hits"
            .to_owned(),
    ];
    for probe in &facts.probes {
        let rate = per_second(probe.count, facts.duration_of(probe));
        let start = format!(
            "{},{},{},{},{}",
            csv.field(&probe.event),
            probe.count,
            rate.map_or_else(String::new, |rate| rate.to_string()),
            share(probe.count, facts.events),
            facts
                .losses
                .ledger
                .known(probe.lost)
                .map_or_else(String::new, |lost| lost.to_string())
        );
        let hits = probe.estimated_hits();
        let hits = hits.map_or_else(String::new, |hits| hits.to_string());
        if probe.arguments.is_empty() {
            lines.push(format!("{start},,,,,,,,,,,,,{hits}"));
        }
        for argument in &probe.arguments {
            lines.push(format!("{start},{},{hits}", csv_argument(csv, argument)));
        }
    }
    lines.join("\n") + "\n"
}

fn csv_argument(csv: Csv, argument: &ArgumentFacts) -> String {
    let spread = argument.spread();
    let missing = total(&argument.missing);
    let text = |of: fn(&Spread) -> Scalar| {
        spread.map_or_else(String::new, |spread| scalar::decimal(of(spread)))
    };
    format!(
        "{},{},{},{},{},{},{},{},{},{},{missing},{}",
        csv.field(&argument.name),
        csv.field(&argument.kind),
        spread.map_or(0, |spread| spread.count),
        text(|spread| spread.min),
        text(|spread| spread.median),
        text(|spread| spread.p90),
        text(|spread| spread.p99),
        text(|spread| spread.max),
        spread.is_none_or(|spread| spread.exact),
        argument.nan,
        argument.nulls,
    )
}
