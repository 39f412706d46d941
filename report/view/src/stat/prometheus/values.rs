//! Metrics of the values of arguments.

use std::collections::BTreeMap;

use usdtrec_format::schema::{Argument, Unit};

use super::super::figures::StatFigures;
use super::family::{Family, MetricKind, put_label};
use super::names::ValueOf;

/// The bounds of histograms are 2^0 - 1 to 2^this - 1, in the unit of the argument: of times in ns a minute, of bytes 64 GiB. They are always the same, so that
/// histograms can be added up.
const BOUNDS: u32 = 36;

/// The metrics of values, by name.
#[derive(Default)]
pub(super) struct ValueFamilies(BTreeMap<String, Family>);

impl ValueFamilies {
    /// Adds the values of a probe or group with these labels.
    pub(super) fn put(&mut self, value: ValueOf<'_>, figures: &StatFigures, labels: &str) {
        let scale = Scale::new(value.argument);
        let has_buckets = !figures.buckets.is_empty();
        let kind = match has_buckets {
            true => MetricKind::Histogram,
            false => MetricKind::Summary,
        };
        let family = self.family("value", value, kind);
        if has_buckets {
            for bound in (0..=BOUNDS).map(|power| (1_i128 << power) - 1) {
                let within = figures.buckets.iter();
                let within = within.filter(|bucket| bucket.values.most <= bound);
                let count: u64 = within.map(|bucket| bucket.count).sum();
                let mut labels = labels.to_owned();
                put_label("le", &scale.shown(bound), &mut labels);
                family.put("_bucket", &labels, &count.to_string());
            }
            let mut labels = labels.to_owned();
            put_label("le", "+Inf", &mut labels);
            family.put("_bucket", &labels, &figures.count.to_string());
        }
        family.put("_sum", labels, &scale.shown(figures.sum));
        family.put("_count", labels, &figures.count.to_string());
        if let Some(range) = figures.range {
            let least = self.family("minimum", value, MetricKind::Gauge);
            least.put("", labels, &scale.shown(range.least));
            let most = self.family("maximum", value, MetricKind::Gauge);
            most.put("", labels, &scale.shown(range.most));
        }
    }

    fn family(&mut self, what: &str, value: ValueOf<'_>, kind: MetricKind) -> &mut Family {
        let name = value.metric(what);
        let family = self.0.entry(name.clone());
        family.or_insert_with(|| Family::new(name, kind, &help(what, value)))
    }

    /// The lines of all metrics.
    pub(super) fn into_lines(self) -> String {
        self.0.into_values().map(Family::into_lines).collect()
    }
}

fn help(what: &str, value: ValueOf<'_>) -> String {
    let ValueOf {
        provider,
        probe,
        argument,
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
struct Scale {
    factor: u64,
    divisor: u64,
}

impl Scale {
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

    fn shown(&self, value: i128) -> String {
        if self.divisor == 1
            && let Some(value) = value.checked_mul(self.factor.into())
        {
            return value.to_string();
        }
        (value as f64 * self.factor as f64 / self.divisor as f64).to_string()
    }
}
