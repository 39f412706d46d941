//! A page without the values of arguments that are left out or hashed.
//!
//! The summary is redacted before spans, groups and distributions are chosen by it: so nothing is chosen by an argument that is left out, and numbers
//! that are hashed have no distribution. Values in what is chosen are replaced afterwards.

use std::cmp::Reverse;

use usdtrec_analysis::measured_subject::MeasuredSubject;
use usdtrec_analysis::overview::numbers::NumberOverview;
use usdtrec_analysis::overview::{Overview, SummaryRedaction};
use usdtrec_analysis::span_report::facts::{SlowFacts, SpanGroupFacts, SpanReport};
use usdtrec_analysis::stats::frequency::{Frequency, total};
use usdtrec_analysis::stats::keys::key::Key;
use usdtrec_analysis::stats::keys::value::KeyValue;
use usdtrec_analysis::stats::number::Scalar;
use usdtrec_analysis::summary::facts::SummaryFacts;
use usdtrec_analysis::summary::probe::{ArgumentFacts, Spread, StringFacts};
use usdtrec_format::Value;
use usdtrec_trace::form::Form;

use crate::redaction::{MISSING, RedactedArguments, RedactedAs};

/// The type of hashes, as schemas call it.
const HASH_TYPE: &str = "str";

impl SummaryRedaction for RedactedArguments {
    fn redact(&self, summary: &mut SummaryFacts) {
        if self.is_empty() {
            return;
        }
        for probe in &mut summary.probes {
            let event = &probe.event;
            let arguments = &mut probe.arguments;
            arguments
                .retain(|argument| self.named(event, &argument.name) != Some(RedactedAs::Dropped));
            for argument in arguments {
                if self.named(event, &argument.name) == Some(RedactedAs::Hashed) {
                    hash_argument(self, argument);
                }
            }
        }
    }

    fn replaces(&self, event: &str, argument: &str) -> bool {
        self.named(event, argument).is_some()
    }
}

/// Redacts what is chosen by a summary that is redacted.
pub(crate) fn redact(redacted: &RedactedArguments, overview: &mut Overview) {
    if redacted.is_empty() {
        return;
    }
    for found in &mut overview.spans {
        redact_groups(redacted, &mut found.report);
        for SlowFacts { begin, .. } in found.report.slowest.iter_mut().flatten() {
            let event = &begin.event;
            begin.arguments.retain_mut(|argument| {
                let how = redacted.named(event, &argument.name);
                if let Some(how) = how {
                    argument.value = redacted.value(how, &argument.form, &argument.value);
                    argument.form = Form::Plain;
                }
                how != Some(RedactedAs::Dropped)
            });
        }
    }
    // Events of one argument's name may differ in what is redacted.
    let is_shown = |of: &MeasuredSubject| match of {
        MeasuredSubject::Argument { event, name, .. } => {
            let name = name.strip_prefix("args.").unwrap_or(name);
            redacted.named(event, name).is_none()
        }
        MeasuredSubject::Spans(_) => true,
    };
    for NumberOverview { histograms, heat } in &mut overview.numbers {
        histograms.all.retain(|histogram| is_shown(&histogram.of));
        heat.all.retain(|map| is_shown(&map.of));
    }
}

/// Replaces the values that groups of spans have.
fn redact_groups(redacted: &RedactedArguments, report: &mut SpanReport) {
    for (at, by) in report.by.iter_mut().enumerate() {
        let (Key::Argument(_, places, _) | Key::Shape(_, places)) = &by.key else {
            continue;
        };
        let places = places.iter().enumerate();
        let places = places.filter_map(|(event, place)| Some((event, (*place)?)));
        let how = places.filter_map(|(event, place)| redacted.redacted_as(event, place));
        let Some(how) = how.max() else {
            continue;
        };
        let form = match &mut by.key {
            Key::Argument(_, _, form) => std::mem::take(form),
            _ => Form::Plain,
        };
        for SpanGroupFacts { values, .. } in report.groups.iter_mut().flatten() {
            if let Some(value) = values.get_mut(at) {
                redact_key(redacted, how, &form, value);
            }
        }
        // Of equal groups, the order is that of the values that are shown.
        for groups in &mut report.groups {
            let order = report.order;
            groups.sort_by_cached_key(|group| {
                let value = group.values.get(at).map(|value| format!("{value:?}"));
                (Reverse(group.durations.by(order)), value)
            });
        }
    }
}

/// Replaces the value of a key.
fn redact_key(redacted: &RedactedArguments, how: RedactedAs, form: &Form, value: &mut KeyValue) {
    let hashed = match (how, &*value) {
        (RedactedAs::Hashed, KeyValue::Argument(known)) => redacted.value(how, form, known),
        (RedactedAs::Hashed, KeyValue::OtherStrings) | (_, KeyValue::Absent) => return,
        _ => return *value = KeyValue::Missing(MISSING.to_owned()),
    };
    *value = match hashed {
        Value::String(_) => KeyValue::Argument(hashed),
        _ => KeyValue::Missing(MISSING.to_owned()),
    };
}

/// Makes an argument one that has strings: the hashes of its values.
fn hash_argument(redacted: &RedactedArguments, argument: &mut ArgumentFacts) {
    let mut missing = total(&argument.missing) + argument.nulls;
    let mut hashes = Hashes {
        redacted,
        values: Vec::new(),
        count: 0,
        different: 0,
        exact: true,
    };
    let spreads = [argument.integers.take(), argument.floats.take()];
    for spread in spreads.into_iter().flatten() {
        match argument.form.is_string() {
            // Addresses of strings that were not captured.
            true => missing += spread.count,
            false => hashes.add_numbers(&spread),
        }
    }
    if argument.nan > 0 {
        hashes.add(b"NaN", argument.nan);
        hashes.count += argument.nan;
        hashes.different += 1;
    }
    if let Some(strings) = argument.strings.take() {
        hashes.add_strings(&strings);
    }
    *argument = ArgumentFacts {
        name: std::mem::take(&mut argument.name),
        kind: HASH_TYPE.to_owned(),
        unit: None,
        form: Form::Plain,
        integers: None,
        floats: None,
        both: None,
        strings: hashes.into_strings(),
        nan: 0,
        nulls: 0,
        missing: match missing {
            0 => Vec::new(),
            missing => vec![Frequency::new(MISSING.to_owned(), missing)],
        },
    };
}

/// Hashes with their counts.
struct Hashes<'r> {
    redacted: &'r RedactedArguments,
    values: Vec<Frequency<Vec<u8>>>,
    /// Number of values.
    count: u64,
    /// Different ones; at least so many if not `exact`.
    different: usize,
    exact: bool,
}

impl Hashes<'_> {
    fn add(&mut self, value: &[u8], count: u64) {
        let digits = self.redacted.digits(value).into_bytes();
        self.values.push(Frequency::new(digits, count));
    }

    /// Adds numbers. Those that are too many to be listed are only counted.
    fn add_numbers(&mut self, spread: &Spread) {
        self.count += spread.count;
        let Some(values) = &spread.values else {
            self.different += Spread::MAX_VALUES;
            self.exact = false;
            return;
        };
        self.different += values.len();
        for number in values {
            let text = match number.value {
                Scalar::Integer(integer) => integer.0.to_string(),
                Scalar::Float(float) if float.is_single() => (float.value() as f32).to_string(),
                Scalar::Float(float) => float.value().to_string(),
            };
            self.add(text.as_bytes(), number.count);
        }
    }

    fn add_strings(&mut self, strings: &StringFacts) {
        self.count += strings.count;
        self.different += strings.different;
        self.exact &= strings.exact;
        for string in &strings.values {
            self.add(&string.value, string.count);
        }
    }

    /// The strings, the most frequent first; `None` without values.
    fn into_strings(mut self) -> Option<StringFacts> {
        self.values
            .sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.value.cmp(&b.value)));
        self.values.truncate(StringFacts::MAX_STRINGS);
        (self.count > 0).then_some(StringFacts {
            count: self.count,
            values: self.values,
            different: self.different,
            exact: self.exact,
            cut: 0,
        })
    }
}
