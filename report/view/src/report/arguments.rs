//! The table of arguments: the distribution of their values.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr as _;
use usdtrec_analysis::stats::frequency::Frequency;
use usdtrec_analysis::stats::number::Scalar;
use usdtrec_analysis::summary::facts::SummaryFacts;
use usdtrec_analysis::summary::probe::{ArgumentFacts, Spread, StringFacts};
use usdtrec_format::escape::{escape, quote};
use usdtrec_trace::form::Form;

use crate::columns::{folded_from, left};
use crate::cut_apart::cut_apart;
use crate::numbers::percent;
use crate::report::short_names::ShortNames;
use crate::table::{Table, TableCell};
use crate::text::scalar;
use crate::theme::Theme;

/// Columns of a string, in lines of 80 columns.
const TEXT: usize = 32;
/// Maximum number of different values that are listed one by one.
const LISTED: usize = 16;

/// Appends the table of arguments.
pub(crate) fn put(facts: &SummaryFacts, theme: Theme, out: &mut String) {
    let table = table(facts, theme.room(TEXT));
    if table.rows.is_empty() {
        return;
    }
    let heading = table.columns.iter().map(|name| name.as_str().into());
    let mut lines: Vec<Vec<Cow<'_, str>>> = vec![heading.collect()];
    let rows = table.rows.iter();
    lines.extend(rows.map(|row| row.iter().map(TableCell::shown).collect()));
    let width = |column: usize, most: usize| {
        let widths = lines.iter().map(|line| line[column].width());
        widths.filter(|&width| width <= most).max().unwrap_or(0)
    };
    let (first, second) = (width(0, 34), width(1, 9));
    let indent = " ".repeat(first + second + 4);
    out.push('\n');
    for (number, line) in lines.iter().enumerate() {
        let [name, kind, holds] = &line[..] else {
            continue;
        };
        let mut start = format!("{}  {}  ", left(name, first), left(kind, second));
        if number == 0 {
            theme.put_heading(&(start + holds), out);
            continue;
        }
        if start.width() > indent.len() {
            out.extend([start.trim_end(), "\n"]);
            start.clone_from(&indent);
        }
        folded_from(&start, holds, &indent, theme, out);
    }
    if let Some(remark) = remark(facts) {
        out.extend([remark, "\n"]);
    }
}

/// The arguments of probes with events, with their names.
pub fn arguments(facts: &SummaryFacts) -> impl Iterator<Item = (String, &ArgumentFacts)> {
    let names = ShortNames::new(facts);
    let probes = facts.probes.iter().filter(|probe| probe.count > 0);
    let all = probes.flat_map(|probe| probe.arguments.iter().map(move |of| (probe, of)));
    all.map(move |(probe, argument)| {
        let name = format!("{}.{}", names.name(&probe.event), argument.name);
        (name, argument)
    })
}

/// The table of arguments; each string in it has at most `most` columns.
pub fn table(facts: &SummaryFacts, most: usize) -> Table {
    let mut table = Table::new(["Argument", "Type", "What it holds"]);
    for (name, argument) in arguments(facts) {
        let kind = match &argument.unit {
            Some(unit) => format!("{} {unit}", argument.kind),
            None => argument.kind.clone(),
        };
        table.rows.push(vec![
            TableCell::Code(name),
            TableCell::Text(kind),
            TableCell::Text(holds(argument, most)),
        ]);
    }
    table
}

/// The remark below the table, if a number in it is not exact.
pub fn remark(facts: &SummaryFacts) -> Option<&'static str> {
    let mut all = arguments(facts);
    let is_near = all.any(|(_, argument)| {
        let spreads = [&argument.integers, &argument.floats];
        spreads.into_iter().flatten().any(|spread| !spread.exact)
    });
    is_near.then_some("~ means: within 1 %")
}

/// The values of an argument, in words, with at most so many columns for a string.
fn holds(argument: &ArgumentFacts, most: usize) -> String {
    let form = &argument.form;
    let spreads = [&argument.integers, &argument.floats];
    let spreads = spreads.into_iter().flatten();
    let counts = spreads.clone().map(|numbers| numbers.count);
    // What is not declared to be a string may be a string in some hits and a number in others.
    let count = counts.sum::<u64>() + argument.strings.as_ref().map_or(0, |strings| strings.count);
    let mut parts: Vec<String> = spreads
        .map(|numbers| spread(numbers, count, form))
        .collect();
    let all = argument.strings.as_ref();
    parts.extend(all.map(|all| strings(all, count, form, most)));
    if argument.nan > 0 {
        parts.push(format!("NaN {} times", argument.nan));
    }
    match argument.nulls {
        0 => {}
        1 => parts.push("NULL once".to_owned()),
        _ if parts.is_empty() && argument.missing.is_empty() => {
            parts.push("always NULL".to_owned())
        }
        nulls => parts.push(format!("NULL {nulls} times")),
    }
    for reason in &argument.missing {
        let words = escape(&reason.value);
        parts.push(format!("{} missing: {words}", reason.count));
    }
    if parts.is_empty() {
        parts.push("nothing".to_owned());
    }
    parts.join("; ")
}

/// The numbers among so many values.
fn spread(spread: &Spread, count: u64, form: &Form) -> String {
    let shown = |number: Scalar| scalar::shown(number, form);
    match &spread.values {
        Some(values) if values.len() == 1 => only(&shown(spread.min), spread.count, count),
        Some(values) if values.len() <= LISTED => {
            let listed: Vec<String> = values
                .iter()
                .map(|number| {
                    let share = percent(number.count, count);
                    format!("{share} {}", shown(number.value))
                })
                .collect();
            format!("{} values: {}", values.len(), listed.join(", "))
        }
        values if form.is_address() => match values {
            Some(values) => format!("{} addresses", values.len()),
            None => "many addresses".to_owned(),
        },
        _ => {
            let quantile = |number| match spread.exact {
                true => shown(number),
                false => scalar::near(number, spread.min..=spread.max, form),
            };
            format!(
                "min {}, median {}, p99 {}, max {}",
                shown(spread.min),
                quantile(spread.median),
                quantile(spread.p99),
                shown(spread.max)
            )
        }
    }
}

/// The only number or string among so many values, of which so many are that kind of value.
fn only(value: &str, of_kind: u64, count: u64) -> String {
    if of_kind == count {
        return format!("always {value}");
    }
    format!("{} {value}", percent(of_kind, count))
}

/// The most frequent strings among so many values, each in at most so many columns.
fn strings(strings: &StringFacts, count: u64, form: &Form, most: usize) -> String {
    const MAX_VALUES: usize = 4;
    let shown = |string: &Frequency<Vec<u8>>| {
        let mut quoted = String::new();
        match form.readable_string(&string.value) {
            Some(name) => quote(&mut quoted, name.as_bytes()),
            None => quote(&mut quoted, &string.value),
        }
        // The quote at the end is not cut off.
        quoted.pop();
        quoted
    };
    let values = || strings.values.iter().take(MAX_VALUES);
    let quoted: Vec<String> = values().map(shown).collect();
    let quoted: Vec<&str> = quoted.iter().map(String::as_str).collect();
    let cut = cut_apart(&quoted, most - 1).into_iter();
    let shown = cut
        .zip(values())
        .map(|(string, value)| Frequency::new(string + "\"", value.count));
    match shown.collect::<Vec<_>>().as_slice() {
        [string] if strings.exact => only(&string.value, strings.count, count),
        // Hashes of numbers that were not counted one by one.
        [] => format!("more than {} values", strings.different),
        values => {
            let listed: Vec<String> = values
                .iter()
                .map(|string| format!("{} {}", percent(string.count, count), string.value))
                .collect();
            let at_least = if strings.exact { "" } else { "more than " };
            let rest = if strings.different > values.len() {
                ", …"
            } else {
                ""
            };
            format!(
                "{at_least}{} values: {}{rest}",
                strings.different,
                listed.join(", ")
            )
        }
    }
}
