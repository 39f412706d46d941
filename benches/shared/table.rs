//! Medians and Markdown tables.

/// The median; of an even number of values, the upper of the middle two.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Prints a table's head.
pub(crate) fn head(columns: &[&str]) {
    println!("| {} |", columns.join(" | "));
    let rules: Vec<&str> = columns
        .iter()
        .enumerate()
        .map(|(index, _)| if index == 0 { "---" } else { "---:" })
        .collect();
    println!("| {} |", rules.join(" | "));
}

/// Prints a row.
pub(crate) fn row(cells: &[String]) {
    println!("| {} |", cells.join(" | "));
}

/// A ratio as people read it.
pub(crate) fn ratio(ours: f64, theirs: f64) -> String {
    let ratio = ours / theirs;
    match ratio {
        0.1..10.0 => format!("{ratio:.2}"),
        _ => format!("{ratio:.3}"),
    }
}

/// How many times faster.
pub(crate) fn times(ours: f64, theirs: f64) -> String {
    format!("{:.1} ×", ours / theirs)
}
