//! Figures, worked out for both recordings and tested.

use crate::diff::metric::{Estimate, Metric, MetricKind, MetricSubject, NoiseTest, Percentile};
use crate::diff::noise::Mean;
use crate::diff::quantiles::{QuantileInterval, Ranked};
use crate::diff::recording::ProbeSide;
use crate::diff::sides::Sides;
use crate::diff::significance::Level;
use crate::diff::slices::{Counts, SLICES, total};
use crate::stats::ratio::share as part_of;

/// Rates of a probe. What was lost may have been hits at any time: a difference that it could explain does not count.
pub(crate) fn of_rates(
    event: &str,
    probes: Sides<&ProbeSide>,
    slices_per_second: Sides<f64>,
    level: &Level,
) -> Metric {
    let of = |probe: &ProbeSide, speed: f64| {
        let mean = Mean::of_counts(&probe.counts).times(speed);
        let lost = probe.lost as f64 * speed / SLICES as f64;
        let amount = Estimate {
            value: mean.value,
            number: None,
            low: Some((mean.value - mean.reach(level)).max(0.0)),
            high: Some(mean.value + lost + mean.reach(level)),
        };
        (mean, lost, amount)
    };
    let (one, lost_a, amount_a) = of(probes.a, slices_per_second.a);
    let (other, lost_b, amount_b) = of(probes.b, slices_per_second.b);
    let lost = if one.value <= other.value {
        lost_a
    } else {
        lost_b
    };
    Metric {
        subject: MetricSubject::Probe(event.to_owned()),
        kind: MetricKind::Rate,
        a: amount_a,
        b: amount_b,
        test: Some(NoiseTest::of_means(one.noise_of_ratio(other, lost, level))),
    }
}

fn of_share(part: &Counts, all: &Counts, mean: Option<Mean>, level: &Level) -> Estimate {
    let (part, all) = (total(part), total(all));
    let value = part_of(part, all);
    let reach = mean.map(|mean| mean.reach(level));
    Estimate {
        value,
        number: None,
        low: reach.map(|reach| (value - reach).max(0.0)),
        high: reach.map(|reach| (value + reach).min(1.0)),
    }
}

/// Shares of hits with a value.
pub(crate) fn of_shares(
    subject: &MetricSubject,
    kind: &MetricKind,
    parts: &Sides<Counts>,
    all: &Sides<Counts>,
    level: &Level,
) -> Metric {
    let means = Sides {
        a: Mean::of_share(&parts.a, &all.a),
        b: Mean::of_share(&parts.b, &all.b),
    };
    let test = match means.both() {
        Some(Sides { a, b }) => NoiseTest::new(b.value - a.value, a.noise(b, level)),
        None => NoiseTest::UNKNOWN,
    };
    Metric {
        subject: subject.clone(),
        kind: kind.clone(),
        a: of_share(&parts.a, &all.a, means.a, level),
        b: of_share(&parts.b, &all.b, means.b, level),
        test: Some(test),
    }
}

/// Percentiles.
pub(crate) fn of_quantiles(
    subject: &MetricSubject,
    percentile: &Percentile,
    numbers: Sides<&Ranked>,
    level: &Level,
) -> Metric {
    let of = |ranked: &Ranked| {
        let quantile = ranked
            .quantile(percentile.thousandths, level)
            .unwrap_or(QuantileInterval {
                value: ranked.most,
                low: None,
                high: None,
            });
        Estimate::quantile(&quantile)
    };
    let (a, b) = (of(numbers.a), of(numbers.b));
    let is_exact = numbers.a.exact && numbers.b.exact;
    Metric {
        test: Some(NoiseTest::of_quantiles(Sides { a: &a, b: &b }, is_exact)),
        subject: subject.clone(),
        kind: MetricKind::Quantile(percentile.clone()),
        a,
        b,
    }
}
