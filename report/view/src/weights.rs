//! Sentences about the weight of stacks.

use usdtrec_analysis::stacks::path::StackTable;
use usdtrec_analysis::stacks::weighed::WeightUnit;

use crate::numbers::duration;

/// The hits in a tree, in words: `80 hits of sdt_app:request`.
pub(crate) fn title(table: &StackTable, unit: &WeightUnit) -> String {
    let weight = weight_text(table.weight, unit);
    let StackTable { name, hits, .. } = table;
    match unit {
        WeightUnit::Hits => format!("{hits} hits of {name}"),
        WeightUnit::Sum(argument) => {
            format!("sum of {argument} of {hits} hits of {name}: {weight}")
        }
        WeightUnit::SpanTime => {
            format!("time in {hits} spans {name}: {weight}")
        }
    }
}

/// A weight in its unit.
pub fn weight_text(weight: u64, unit: &WeightUnit) -> String {
    match unit {
        WeightUnit::SpanTime => duration(weight as f64),
        WeightUnit::Hits | WeightUnit::Sum(_) => weight.to_string(),
    }
}

/// What all events have together: the sentence of a single one, or the sums of several.
pub fn title_of_all(tables: &[StackTable], unit: &WeightUnit) -> String {
    if let [one] = tables {
        return title(one, unit);
    }
    let sum = |of: fn(&StackTable) -> u64| tables.iter().map(of).fold(0, u64::saturating_add);
    let all = StackTable {
        name: match unit {
            WeightUnit::SpanTime => format!("of {} names", tables.len()),
            _ => format!("{} events", tables.len()),
        },
        paths: Vec::new(),
        weight: sum(|table| table.weight),
        hits: sum(|table| table.hits),
    };
    title(&all, unit)
}
