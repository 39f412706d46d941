//! Metrics of the values of arguments.

use std::collections::BTreeMap;

use usdtrec_analysis::counted_numbers::CountedNumbers;
use usdtrec_format::schema::{Argument, Unit};

use super::family::{Family, MetricKind, put_label};
use super::names::ValueOf;

/// The bounds of histograms are 2^0 - 1 to 2^this - 1, in the unit of the argument: of times in ns a minute, of bytes 64 GiB. They are always the same, so that
/// histograms can be added up.
const BOUNDS: u32 = 36;

/// The metrics of values, by name.
#[derive(Default)]
pub(super) struct ValueFamilies(BTreeMap<String, OfPlace>);

/// A metric of a measured argument.
struct OfPlace {
    /// The place of the argument.
    place: usize,
    family: Family,
}

impl ValueFamilies {
    /// Adds the values of a probe or group with these labels.
    pub(super) fn put(&mut self, value: ValueOf<'_>, numbers: &CountedNumbers, labels: &str) {
        let scale = Scale::new(value.argument);
        let kind = match numbers.histogram {
            Some(_) => MetricKind::Histogram,
            None => MetricKind::Summary,
        };
        put_numbers(self.family("value", value, kind), &scale, numbers, labels);
        if let Some(ends) = numbers.ends {
            let least = self.family("minimum", value, MetricKind::Gauge);
            least.put("", labels, &scale.shown(ends.min));
            let most = self.family("maximum", value, MetricKind::Gauge);
            most.put("", labels, &scale.shown(ends.max));
        }
    }

    fn family(&mut self, what: &str, value: ValueOf<'_>, kind: MetricKind) -> &mut Family {
        let place = value.place;
        let first = value.metric(what);
        let mut name = first.clone();
        // Names of two arguments may be the same words.
        for number in 2.. {
            if self.0.get(&name).is_none_or(|known| known.place == place) {
                break;
            }
            name = format!("{first}_{number}");
        }
        let metric = self.0.entry(name.clone()).or_insert_with(|| OfPlace {
            place,
            family: Family::new(name, kind, &help(what, value)),
        });
        &mut metric.family
    }

    /// The lines of all metrics.
    pub(super) fn into_lines(self) -> String {
        self.0
            .into_values()
            .map(|metric| metric.family.into_lines())
            .collect()
    }
}

/// Appends the samples of a histogram, or of a sum and a count. Buckets are read after the count, so that they may have further numbers: the count is that of
/// all buckets then.
pub(super) fn put_numbers(
    family: &mut Family,
    scale: &Scale,
    numbers: &CountedNumbers,
    labels: &str,
) {
    let mut count = numbers.count;
    if let Some(buckets) = &numbers.histogram {
        count = count.max(buckets.iter().map(|(_, count)| count).sum());
        for end in (0..=BOUNDS).map(|power| 1_i128 << power) {
            let within = buckets.iter().filter(|(bucket, _)| bucket.to() <= end);
            let within: u64 = within.map(|(_, count)| count).sum();
            let mut labels = labels.to_owned();
            put_label("le", &scale.shown(end - 1), &mut labels);
            family.put("_bucket", &labels, &within.to_string());
        }
        let mut labels = labels.to_owned();
        put_label("le", "+Inf", &mut labels);
        family.put("_bucket", &labels, &count.to_string());
    }
    family.put("_sum", labels, &scale.shown(numbers.sum));
    family.put("_count", labels, &count.to_string());
}

fn help(what: &str, value: ValueOf<'_>) -> String {
    let ValueOf {
        provider,
        probe,
        argument,
        place: _,
    } = value;
    let of = format!("{} of {provider}:{probe}", argument.name);
    let of = match &argument.description {
        Some(description) => format!("{of}: {description}"),
        None => of,
    };
    match what {
        "value" => of,
        _ => format!("The {what} of {of}"),
    }
}

/// What values are multiplied with so that they are in a base unit: seconds, bytes.
pub(super) struct Scale {
    factor: u64,
    divisor: u64,
}

impl Scale {
    /// That of durations.
    pub(super) const NANOSECONDS: Self = Self {
        factor: 1,
        divisor: 1_000_000_000,
    };

    fn new(argument: &Argument) -> Self {
        const SECOND: u64 = 1_000_000_000;
        let unit = argument.unit.as_ref();
        if let Some(factor) = unit.and_then(Unit::nanoseconds) {
            let divisor = SECOND;
            return Self { factor, divisor };
        }
        Self {
            factor: unit.and_then(Unit::bytes).unwrap_or(1),
            divisor: 1,
        }
    }

    pub(super) fn shown(&self, value: i128) -> String {
        if self.divisor == 1
            && let Some(value) = value.checked_mul(self.factor.into())
        {
            return value.to_string();
        }
        (value as f64 * self.factor as f64 / self.divisor as f64).to_string()
    }
}
