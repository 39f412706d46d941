//! Figures, worked out for both recordings and tested.

use crate::diff::difference::{Difference, DifferenceScale};
use crate::diff::metric::{Estimate, Metric, MetricKind, MetricSubject, NoiseTest, Percentile};
use crate::diff::noise::{Mean, SlicedCounts};
use crate::diff::quantiles::{Ranked, RankedPercentile, uncertain};
use crate::diff::recording::ProbeSide;
use crate::diff::sides::Sides;
use crate::diff::significance::Level;
use crate::diff::slices::{Counts, SLICES, total};
use crate::stats::ratio::share as part_of;

/// Numbers that are not exact are within 1/256 of themselves: what is less than this part is no difference of two.
const COARSE: f64 = 1.0 / 128.0;

/// Rates of a probe. What was lost may have been hits at any time: a difference that it could explain does not count.
pub(crate) fn of_rates(
    event: &str,
    probes: Sides<&ProbeSide>,
    slices_per_second: Sides<f64>,
    level: &Level,
) -> Metric {
    let counts = probes.map(|probe| SlicedCounts::new(&probe.counts, &probe.recorded));
    let means = Mean::of_counts(counts);
    let of = |mean: Mean, probe: &ProbeSide, speed: f64| {
        let mean = mean.times(speed);
        let lost = probe.lost as f64 * speed / (SLICES as f64 * probe.recorded_part());
        let amount = Estimate {
            value: mean.value,
            number: None,
            low: Some((mean.value - mean.reach(level)).max(0.0)),
            high: Some(mean.value + lost + mean.reach(level)),
        };
        (mean, lost, amount)
    };
    let (one, lost_a, a) = of(means.a, probes.a, slices_per_second.a);
    let (other, lost_b, b) = of(means.b, probes.b, slices_per_second.b);
    let lost = Sides {
        a: lost_a,
        b: lost_b,
    };
    let difference = one.difference_of_rates(other, lost, level);
    let test = NoiseTest::new(&difference, one.value);
    Metric {
        subject: MetricSubject::Probe(event.to_owned()),
        kind: MetricKind::Rate,
        test: Some(test.within(-one.value, f64::INFINITY)),
        a,
        b,
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
    let means = Mean::of_shares(parts.each(), all.each());
    let test = means.map_or(NoiseTest::UNKNOWN, |Sides { a, b }| {
        let test = NoiseTest::new(&a.difference(b, level), a.value);
        test.within(-a.value, 1.0 - a.value)
    });
    Metric {
        subject: subject.clone(),
        kind: kind.clone(),
        a: of_share(&parts.a, &all.a, means.map(|means| means.a), level),
        b: of_share(&parts.b, &all.b, means.map(|means| means.b), level),
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
    let found = numbers.map(|numbers| numbers.percentile(percentile.thousandths));
    let plain = |numbers: &Ranked, found: &Option<RankedPercentile<'_>>| {
        Estimate::plain(found.as_ref().map_or(numbers.most, |found| found.value))
    };
    let mut metric = Metric {
        a: plain(numbers.a, &found.a),
        b: plain(numbers.b, &found.b),
        test: Some(NoiseTest::UNKNOWN),
        subject: subject.clone(),
        kind: MetricKind::Quantile(percentile.clone()),
    };
    if let Some(found) = found.both() {
        test_percentiles(&mut metric, found.each(), numbers, level);
    }
    metric
}

/// Sets the limits of both percentiles, and of their difference.
fn test_percentiles(
    metric: &mut Metric,
    found: Sides<&RankedPercentile<'_>>,
    numbers: Sides<&Ranked>,
    level: &Level,
) {
    let is_any = numbers.any(|numbers| !numbers.are_positive());
    let scale = if is_any {
        DifferenceScale::Linear
    } else {
        DifferenceScale::Ratio
    };
    let figures = uncertain(found, scale, level);
    for (estimate, figure) in [(&mut metric.a, figures.a), (&mut metric.b, figures.b)] {
        let limit = |at: f64| scale.figure(at);
        estimate.low = figure.below.map(|below| limit(figure.value - below));
        estimate.high = figure.above.map(|above| limit(figure.value + above));
    }
    let size = match scale {
        DifferenceScale::Linear => metric.a.value.abs().max(metric.b.value.abs()),
        DifferenceScale::Ratio => 1.0,
    };
    let is_exact = numbers.a.exact && numbers.b.exact;
    let least = if is_exact { 0.0 } else { COARSE * size };
    let difference = Difference::recovered(figures, scale, least);
    metric.test = Some(NoiseTest::new(&difference, metric.a.value));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::metric::Verdict;
    use crate::stats::distribution::Distribution;
    use crate::stats::number::Integer;

    /// Marsaglia's xorshift.
    struct Random(u64);

    impl Random {
        fn uniform(&mut self) -> f64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        }

        fn exponential(&mut self) -> f64 {
            -self.uniform().ln()
        }

        fn normal(&mut self) -> f64 {
            (2.0 * self.exponential()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
        }

        /// Latencies with this mean, each in a slice at random; load makes their logarithms an autoregressive series, too, from slice to slice.
        fn latencies(&mut self, count: usize, mean: f64, load: f64) -> Ranked {
            let mut slices = vec![Distribution::<Integer>::default(); SLICES];
            let mut state = self.normal();
            let loads: [f64; SLICES] = std::array::from_fn(|_| {
                state = 0.7 * state + (1.0f64 - 0.49).sqrt() * self.normal();
                (load * state).exp()
            });
            for _ in 0..count {
                let slice = (self.uniform() * SLICES as f64) as usize;
                let latency = self.exponential() * mean * loads[slice];
                slices[slice].add(Integer(latency as i128 + 1));
            }
            Ranked::new(slices).unwrap()
        }

        /// A probe with a Poisson process of hits.
        fn hits(&mut self, count: f64) -> ProbeSide {
            let mut counts = [0; SLICES];
            let mut time = self.exponential() / count;
            while time < 1.0 {
                counts[(time * SLICES as f64) as usize] += 1;
                time += self.exponential() / count;
            }
            ProbeSide {
                counts,
                lost: 0,
                recorded: [1.0; SLICES],
                arguments: Vec::new(),
            }
        }
    }

    fn compared(numbers: Sides<&Ranked>, thousandths: u32) -> Metric {
        let percentile = Percentile {
            thousandths,
            forms: None,
        };
        let subject = MetricSubject::Span("app:request".to_owned());
        of_quantiles(&subject, &percentile, numbers, &Level::new(0.01))
    }

    fn is_beyond(metric: &Metric) -> bool {
        metric.verdict() == Some(Verdict::Beyond)
    }

    /// In how many pairs p50, p90 and p99 of latencies differ.
    fn found(pairs: usize, count: usize, factor: f64, load: f64) -> [usize; 3] {
        let mut random = Random(88_172_645_463_325_252);
        let mut found = [0; 3];
        for _ in 0..pairs {
            let a = random.latencies(count, 1e5, load);
            let b = random.latencies(count, factor * 1e5, load);
            for (found, thousandths) in found.iter_mut().zip([500, 900, 990]) {
                let metric = compared(Sides { a: &a, b: &b }, thousandths);
                *found += usize::from(is_beyond(&metric));
            }
        }
        found
    }

    #[test]
    fn like_latencies_seldom_differ() {
        // Two of a hundred, and what may be chance.
        for load in [0.0, 0.05, 0.2, 0.4] {
            let found = found(300, 1500, 1.0, load);
            assert!(
                found.iter().all(|found| *found <= 6 + 3),
                "{load} {found:?}"
            );
        }
    }

    #[test]
    fn slower_latencies_are_found() {
        let [p50, ..] = found(300, 1500, 1.2, 0.0);
        assert!(p50 >= 210, "{p50}");
        let [p50, ..] = found(100, 8000, 1.1, 0.0);
        assert!(p50 >= 85, "{p50}");
        let all = found(100, 8000, 1.5, 0.0);
        assert!(all.iter().all(|found| *found >= 99), "{all:?}");
        // Also under load.
        let [p50, ..] = found(100, 8000, 2.0, 0.1);
        assert!(p50 >= 95, "{p50}");
    }

    #[test]
    fn rates_that_differ_by_a_fifth_are_found() {
        let mut random = Random(362_436_069);
        let mut found = |more: f64| {
            let pairs = (0..300).filter(|_| {
                let (a, b) = (random.hits(1500.0), random.hits(1500.0 * more));
                let probes = Sides { a: &a, b: &b };
                let speeds = Sides { a: 2.0, b: 2.0 };
                is_beyond(&of_rates("app:hit", probes, speeds, &Level::new(0.01)))
            });
            pairs.count()
        };
        assert!(found(1.2) >= 285);
        assert!(found(1.0) <= 9);
    }

    /// With more numbers there is a verdict wherever there was one with fewer.
    #[test]
    fn more_numbers_never_make_a_verdict_unknown() {
        let mut random = Random(521_288_629);
        for thousandths in [500, 900, 990] {
            let mut is_known = false;
            for count in (1..60).map(|step: usize| step.pow(3)) {
                let numbers = random.latencies(count, 1e5, 0.3);
                let metric = compared(
                    Sides {
                        a: &numbers,
                        b: &numbers,
                    },
                    thousandths,
                );
                let known = metric.test.is_some_and(|test| test.score.is_some());
                assert!(known || !is_known, "{thousandths} {count}");
                is_known = known;
            }
            assert!(is_known);
        }
    }

    /// A narrow distribution with a tail, whose slices differ by a hundredth, is half as slow again in the other recording.
    #[test]
    fn a_narrow_distribution_has_narrow_limits() {
        let mut random = Random(77);
        let mut latencies = |microseconds: f64| {
            let mut slices = vec![Distribution::<Integer>::default(); SLICES];
            for (at, slice) in slices.iter_mut().enumerate() {
                let busy = (at * 7 % SLICES) as f64 / SLICES as f64;
                for _ in 0..1300 {
                    let is_late = random.uniform() < 0.02 + 0.16 * busy;
                    let tail = if is_late {
                        400.0 * random.exponential()
                    } else {
                        0.0
                    };
                    let latency = microseconds + 2.0 * busy + 10.0 * random.uniform() + tail;
                    slice.add(Integer((latency * 1e3) as i128));
                }
            }
            Ranked::new(slices).unwrap()
        };
        let (a, b) = (latencies(100.0), latencies(150.0));
        let metric = compared(Sides { a: &a, b: &b }, 500);
        assert!(is_beyond(&metric));
        let change = |limit: Option<f64>| limit.unwrap() / metric.a.value;
        let test = metric.test.unwrap();
        assert!(
            change(test.low) > 0.4 && change(test.high) < 0.55,
            "{test:?}"
        );
    }
}
