//! The figures of two recordings that are compared.

use std::collections::BTreeMap;

use usdtrec_format::schema::Unit;
use usdtrec_trace::form::Form;

use crate::diff::hypothesis_test::{of_quantiles, of_rates, of_shares};
use crate::diff::metric::{
    Estimate, Metric, MetricKind, MetricSubject, Percentile, ShareOf, Verdict,
};
use crate::diff::quantiles::Ranked;
use crate::diff::recording::{ArgumentSide, ComparedRecording, ProbeSide, SpanSide};
use crate::diff::sides::Sides;
use crate::diff::significance::Level;
use crate::diff::similarity::{
    MAX_SHARES, are_counters, counterpart, few, hits, is_address, is_number, values,
};
use crate::diff::slices::{Counts, total};
use crate::diff::span_groups::GroupKey;
use crate::diff::spent_change::SpentChange;
use crate::diff::strings::{CountedStrings, SlicedStrings};
use crate::stats::number::Scalar;

/// Numbers below which percentiles are not requested.
pub const MIN_NUMBERS: u64 = 10;
/// The least share of hits, in one recording at least, with which a string is compared: one of so many.
const MIN_SHARE: u64 = 100;

/// Rounds in which levels are corrected.
const MAX_ROUNDS: usize = 8;

/// A test that runs once the corrected significance level is known.
type DeferredTest<'s> = Box<dyn Fn(&Level) -> Metric + 's>;

/// Figures of one kind, which have a significance level together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Family {
    Rates,
    Shares,
    /// In thousandths.
    OfSpans(u32),
    OfGroups(u32),
    OfArguments(u32),
}

/// Both recordings side by side.
#[derive(Debug)]
pub struct Comparison {
    /// The first recording.
    pub a: ComparedRecording,
    /// The second recording.
    pub b: ComparedRecording,
    /// All figures, in the order of subjects.
    pub figures: Vec<Metric>,
    /// Figures that were tested.
    pub tested: usize,
    /// What the time of spans was spent on, where both say it.
    pub spent: Vec<SpentChange>,
    /// The parts that are not compared.
    pub left_out: Vec<LeftOut>,
}

/// Something that is not compared.
#[derive(Clone, Debug, PartialEq)]
pub struct LeftOut {
    /// What is not compared.
    pub subject: MetricSubject,
    /// Why.
    pub reason: LeftOutReason,
}

/// Why something is not compared.
#[derive(Clone, Debug, PartialEq)]
pub enum LeftOutReason {
    /// A probe that only one of both recorded, with its events.
    ProbeOnlyIn(WhichRecording, u64),
    /// Spans that are in one of both only, and how many.
    SpansOnlyIn(WhichRecording, u64),
    /// An argument that only one of both has.
    ArgumentOnlyIn(WhichRecording),
    /// There are fewer numbers than [`MIN_NUMBERS`].
    TooFew,
    /// The units of an argument differ.
    Units(Unit, Unit),
    /// Its numbers are addresses, stamps or hashes.
    Addresses,
    /// Its numbers go one way all the time, as identifiers do.
    Counters,
}

/// One of the two recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhichRecording {
    /// The first one.
    A,
    /// The second one.
    B,
}

impl Comparison {
    /// Compares all that both have: of like recordings, some figure of a kind is beyond noise in so many cases (0 to 1) at most.
    pub(crate) fn new(a: ComparedRecording, b: ComparedRecording, level: f64) -> Self {
        let Pairs {
            deferred,
            mut figures,
            spent,
            left_out,
        } = Pairs::of(Sides { a: &a, b: &b });
        let tested = deferred.values().map(Vec::len).sum();
        figures.extend(deferred.values().flat_map(|tests| run(tests, level)));
        figures.sort_by(|one, other| one.subject.cmp(&other.subject));
        drop(deferred);
        Self {
            a,
            b,
            figures,
            tested,
            spent,
            left_out,
        }
    }

    /// Number of figures that differ beyond noise by more than so many percent of A's; `None` if nothing can be said of any figure.
    pub fn beyond(&self, percent: f64) -> Option<usize> {
        let verdicts = self.figures.iter().filter_map(Metric::verdict);
        if verdicts.filter(|one| *one != Verdict::Unknown).count() == 0 {
            return None;
        }
        let is_one = |figure: &&Metric| {
            let change = figure.change();
            let is_more = change.is_none_or(|change| change.abs() * 100.0 > percent);
            figure.verdict() == Some(Verdict::Beyond) && is_more
        };
        Some(self.figures.iter().filter(is_one).count())
    }

    /// Names of the spans that only one of both recordings has, enough of them to be compared: by how much they differ is not known.
    pub fn spans_of_one(&self) -> Vec<&str> {
        let names = self.left_out.iter().filter_map(|left| match left {
            LeftOut {
                subject: MetricSubject::Span(name),
                reason: LeftOutReason::SpansOnlyIn(_, MIN_NUMBERS..),
            } => Some(&**name),
            _ => None,
        });
        names.collect()
    }
}

/// Runs the tests of a family: after those that have found a difference, the level is divided by the number of the others alone (Holm).
fn run(tests: &[DeferredTest<'_>], level: f64) -> Vec<Metric> {
    let mut others = tests.len();
    let mut figures = Vec::new();
    for _ in 0..MAX_ROUNDS {
        let each = Level::new(level / others.max(1) as f64);
        figures = tests.iter().map(|test| test(&each)).collect();
        let is_other = |figure: &&Metric| figure.verdict() != Some(Verdict::Beyond);
        let left = figures.iter().filter(is_other).count();
        if left == others || left == 0 {
            break;
        }
        others = left;
    }
    figures
}

/// Figures as they are gathered.
#[derive(Default)]
struct Pairs<'s> {
    deferred: BTreeMap<Family, Vec<DeferredTest<'s>>>,
    /// The figures that cannot be compared.
    figures: Vec<Metric>,
    spent: Vec<SpentChange>,
    left_out: Vec<LeftOut>,
}

impl<'s> Pairs<'s> {
    fn of(recordings: Sides<&'s ComparedRecording>) -> Self {
        let mut pairs = Self::default();
        let Sides { a, b } = recordings;
        let rates = recordings.map(ComparedRecording::slices_per_second).both();
        for (event, one) in &a.probes {
            match b.probes.get(event) {
                Some(other) => pairs.probe(event, Sides { a: one, b: other }, rates),
                None => pairs.only(event, one, WhichRecording::A),
            }
        }
        for (event, other) in &b.probes {
            if !a.probes.contains_key(event) {
                pairs.only(event, other, WhichRecording::B);
            }
        }
        for (name, one) in &a.spans {
            match b.spans.get(name) {
                Some(other) => pairs.spans(name, one, other),
                None => pairs.only_spans(name, one, WhichRecording::A),
            }
        }
        for (name, other) in &b.spans {
            if !a.spans.contains_key(name) {
                pairs.only_spans(name, other, WhichRecording::B);
            }
        }
        pairs
    }

    fn spans(&mut self, name: &str, a: &'s SpanSide, b: &'s SpanSide) {
        if let (Some(one), Some(other)) = (&a.durations, &b.durations) {
            self.span(
                &MetricSubject::Span(name.to_owned()),
                Sides { a: one, b: other },
            );
        } else {
            self.only_spans(name, a, WhichRecording::A);
            self.only_spans(name, b, WhichRecording::B);
        }
        let group = |group: &GroupKey| MetricSubject::Group {
            span: name.to_owned(),
            group: group.clone(),
        };
        let whole = MetricSubject::Span(name.to_owned());
        let whole = a.spent.zip(b.spent).map(|both| (whole, both));
        let groups = a.spent_by_group.iter().filter_map(|(key, one)| {
            let other = b.spent_by_group.get(key)?;
            Some((group(key), (*one, *other)))
        });
        let spent = whole.into_iter().chain(groups);
        self.spent
            .extend(spent.map(|(subject, (a, b))| SpentChange { subject, a, b }));
        for (key, one) in &a.groups {
            match b.groups.get(key) {
                Some(other) if one.count() < MIN_NUMBERS || other.count() < MIN_NUMBERS => {
                    self.leave_out(group(key), LeftOutReason::TooFew);
                }
                Some(other) => self.span(&group(key), Sides { a: one, b: other }),
                None => self.leave_out(
                    group(key),
                    LeftOutReason::SpansOnlyIn(WhichRecording::A, one.count()),
                ),
            }
        }
        let new = b
            .groups
            .iter()
            .filter(|(key, _)| !a.groups.contains_key(*key));
        for (key, other) in new {
            self.leave_out(
                group(key),
                LeftOutReason::SpansOnlyIn(WhichRecording::B, other.count()),
            );
        }
    }

    fn defer(&mut self, family: Family, test: impl Fn(&Level) -> Metric + 's) {
        self.deferred
            .entry(family)
            .or_default()
            .push(Box::new(test));
    }

    fn leave_out(&mut self, subject: MetricSubject, reason: LeftOutReason) {
        self.left_out.push(LeftOut { subject, reason });
    }

    fn only(&mut self, event: &str, probe: &ProbeSide, which: WhichRecording) {
        let reason = LeftOutReason::ProbeOnlyIn(which, total(&probe.counts));
        self.leave_out(MetricSubject::Probe(event.to_owned()), reason);
    }

    /// Spans that the other recording has none of.
    fn only_spans(&mut self, name: &str, spans: &SpanSide, which: WhichRecording) {
        if let Some(durations) = &spans.durations {
            let reason = LeftOutReason::SpansOnlyIn(which, durations.count());
            self.leave_out(MetricSubject::Span(name.to_owned()), reason);
        }
    }

    fn probe(
        &mut self,
        event: &'s str,
        probes: Sides<&'s ProbeSide>,
        slices_per_second: Option<Sides<f64>>,
    ) {
        let Sides { a, b } = probes;
        if total(&a.counts) + total(&b.counts) == 0 {
            return;
        }
        let is_recorded = !probes.any(|probe| probe.recorded_part() == 0.0);
        if let Some(slices_per_second) = slices_per_second.filter(|_| is_recorded) {
            self.defer(Family::Rates, move |level| {
                of_rates(event, probes, slices_per_second, level)
            });
        }
        if total(&a.counts) > 0 && total(&b.counts) > 0 {
            self.arguments(event, &a.arguments, &b.arguments);
        }
    }

    fn arguments(&mut self, event: &'s str, a: &'s [ArgumentSide], b: &'s [ArgumentSide]) {
        let mut used = vec![false; b.len()];
        for (at, one) in a.iter().enumerate() {
            let Some(place) = counterpart(at, a, b) else {
                self.lacking(event, &one.known.name, WhichRecording::A);
                continue;
            };
            used[place] = true;
            let other = &b[place];
            // One recording may know its name, where the other has only its number.
            let name = if is_number(&other.known.name, place) {
                &one.known.name
            } else {
                &other.known.name
            };
            let subject = MetricSubject::Argument {
                event: event.to_owned(),
                name: name.clone(),
            };
            self.argument(subject, one, other);
        }
        for (other, _) in b.iter().zip(used).filter(|(_, used)| !used) {
            self.lacking(event, &other.known.name, WhichRecording::B);
        }
    }

    fn lacking(&mut self, event: &str, name: &str, which: WhichRecording) {
        let subject = MetricSubject::Argument {
            event: event.to_owned(),
            name: name.to_owned(),
        };
        self.leave_out(subject, LeftOutReason::ArgumentOnlyIn(which));
    }

    fn argument(&mut self, subject: MetricSubject, a: &'s ArgumentSide, b: &'s ArgumentSide) {
        if let (Some(one), Some(other)) = (&a.known.unit, &b.known.unit)
            && one != other
        {
            let reason = LeftOutReason::Units(one.clone(), other.clone());
            return self.leave_out(subject, reason);
        }
        let with_value = Sides { a, b }.map(values);
        if total(&a.strings.all) > 0 && total(&b.strings.all) > 0 {
            let strings = Sides {
                a: &a.strings,
                b: &b.strings,
            };
            self.strings(subject.clone(), strings, with_value, &b.form);
        }
        if total(&a.missing) + total(&b.missing) > 0 {
            let parts = Sides {
                a: a.missing,
                b: b.missing,
            };
            let all = Sides {
                a: hits(a),
                b: hits(b),
            };
            self.share(&subject, ShareOf::Missing, parts, all);
        }
        let (Some(one), Some(other)) = (&a.numbers, &b.numbers) else {
            return;
        };
        let numbers = Sides { a: one, b: other };
        if is_address(a, one) || is_address(b, other) {
            self.leave_out(subject, LeftOutReason::Addresses);
        } else if are_counters(one, other) {
            self.leave_out(subject, LeftOutReason::Counters);
        } else if let Some(values) = few(one, other, &b.form) {
            for value in values {
                let label = ShareOf::Number {
                    number: value,
                    form: b.form.clone(),
                };
                let parts = numbers.map(|numbers| numbers.counts(value));
                self.share(&subject, label, parts, with_value);
            }
        } else {
            let forms = [a.form.clone(), b.form.clone()];
            self.quantiles(&subject, numbers, &[500, 990], Some(forms));
        }
    }

    /// Shares of strings; where most strings are seldom, of their shapes.
    fn strings(
        &mut self,
        subject: MetricSubject,
        sides: Sides<&SlicedStrings>,
        with_value: Sides<Counts>,
        form: &Form,
    ) {
        let words = sides.map(SlicedStrings::words);
        let all = sides.map(|strings| strings.all);
        let strings = frequent(&all, words);
        let covered = |strings: &[&[u8]], words: &CountedStrings, all: &Counts| {
            let hits: u64 = strings
                .iter()
                .map(|string| total(&words.counts(string)))
                .sum();
            2 * hits >= total(all)
        };
        if covered(&strings, words.a, &all.a) && covered(&strings, words.b, &all.b) {
            return self.words(&subject, &strings, form, words, with_value);
        }
        let shapes = sides.map(SlicedStrings::shapes);
        let shapes = Sides {
            a: &shapes.a,
            b: &shapes.b,
        };
        let subject = match subject {
            MetricSubject::Argument { event, name } => MetricSubject::Argument {
                event,
                name: format!("{name}:shape"),
            },
            subject => subject,
        };
        let strings = frequent(&all, shapes);
        self.words(&subject, &strings, &Form::Plain, shapes, with_value);
    }

    fn words(
        &mut self,
        subject: &MetricSubject,
        strings: &[&[u8]],
        form: &Form,
        words: Sides<&CountedStrings>,
        all: Sides<Counts>,
    ) {
        for string in strings {
            let label = ShareOf::String {
                string: string.to_vec(),
                form: form.clone(),
            };
            let parts = words.map(|words| words.counts(string));
            self.share(subject, label, parts, all);
        }
    }

    fn share(
        &mut self,
        subject: &MetricSubject,
        label: ShareOf,
        parts: Sides<Counts>,
        all: Sides<Counts>,
    ) {
        let (subject, kind) = (subject.clone(), MetricKind::Share(label));
        self.defer(Family::Shares, move |level| {
            of_shares(&subject, &kind, &parts, &all, level)
        });
    }

    fn span(&mut self, subject: &MetricSubject, durations: Sides<&'s Ranked>) {
        let Sides { a, b } = durations;
        let count = |of: &Ranked| Estimate::plain(Scalar::integer(of.count()));
        self.figures.push(Metric {
            subject: subject.clone(),
            kind: MetricKind::Count,
            a: count(a),
            b: count(b),
            test: None,
        });
        self.quantiles(subject, durations, &[500, 900, 990], None);
        self.figures.push(Metric {
            subject: subject.clone(),
            kind: MetricKind::Max,
            a: Estimate::plain(a.most),
            b: Estimate::plain(b.most),
            test: None,
        });
    }

    /// Percentiles; of times, if there are no forms.
    fn quantiles(
        &mut self,
        subject: &MetricSubject,
        numbers: Sides<&'s Ranked>,
        thousandths: &[u32],
        forms: Option<[Form; 2]>,
    ) {
        if numbers.any(|numbers| numbers.count() < MIN_NUMBERS) {
            return self.leave_out(subject.clone(), LeftOutReason::TooFew);
        }
        for &thousandths in thousandths {
            let subject = subject.clone();
            let forms = forms.clone();
            let percentile = Percentile { thousandths, forms };
            let family = match subject {
                MetricSubject::Group { .. } => Family::OfGroups(thousandths),
                MetricSubject::Argument { .. } => Family::OfArguments(thousandths),
                MetricSubject::Probe(_) | MetricSubject::Span(_) => Family::OfSpans(thousandths),
            };
            self.defer(family, move |level| {
                of_quantiles(&subject, &percentile, numbers, level)
            });
        }
    }
}

/// Strings that are frequent in one recording at least, in order.
fn frequent<'t>(all: &Sides<Counts>, words: Sides<&'t CountedStrings>) -> Vec<&'t [u8]> {
    let mut strings = words.a.first(MAX_SHARES);
    strings.extend(words.b.first(MAX_SHARES));
    strings.sort_unstable();
    strings.dedup();
    let is_frequent = |words: &CountedStrings, all: &Counts, string: &[u8]| {
        total(&words.counts(string)).saturating_mul(MIN_SHARE) >= total(all)
    };
    strings.retain(|string| {
        is_frequent(words.a, &all.a, string) || is_frequent(words.b, &all.b, string)
    });
    strings
}
