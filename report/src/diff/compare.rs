//! Which figures of two recordings are set side by side.

use usdtrec_format::escape::{escape, quote};

use super::figure::{Amount, Figure, Kind, Label, Subject, Test};
use super::noise::Mean;
use super::ranked::{Quantile, Ranked, Scalar};
use super::side::{ArgumentSide, ProbeSide, Side};
use super::slices::{Counts, add, total};
use super::texts::Texts;
use crate::report::numbers::{percent, rate};
use crate::text::Form;

/// Numbers below which percentiles are not asked for.
const FEWEST: u64 = 10;
/// Different numbers up to which their shares are compared and not percentiles.
const FEW_VALUES: usize = 8;
/// Values of each recording whose shares are compared.
const MOST_SHARES: usize = 8;
/// The least share of hits, in one recording at least, with which a text is compared: one of so many.
const LEAST_SHARE: u64 = 100;
/// Numbers from here on, where nothing says what they are, are addresses, stamps or hashes.
const LEAST_ADDRESS: f64 = 4_294_967_296.0;

/// The correlation with time from which on numbers of both recordings are counters. By chance, 20 slices of one in a hundred thousand have it.
const DRIFT: f64 = 0.9;

/// A figure, to be worked out when it is known how many there are: for so many false alarms of it alone (0 to 1).
type Asked<'s> = Box<dyn Fn(f64) -> Figure + 's>;

/// Both recordings side by side.
#[derive(Debug)]
pub(super) struct Comparison {
    pub(super) a: Side,
    pub(super) b: Side,
    /// All figures, in the order of subjects.
    pub(super) figures: Vec<Figure>,
    /// Figures that were tested.
    pub(super) tested: usize,
    /// What is not compared, with the reason.
    pub(super) left_out: Vec<(Subject, String)>,
}

impl Comparison {
    /// Compares all that both have: of like recordings, some figure is beyond noise in so many cases (0 to 1) at most.
    pub(super) fn new(a: Side, b: Side, level: f64) -> Self {
        let (figures, tested, left_out) = gather(&a, &b, level);
        Self {
            a,
            b,
            figures,
            tested,
            left_out,
        }
    }
}

type Gathered = (Vec<Figure>, usize, Vec<(Subject, String)>);

fn gather(a: &Side, b: &Side, level: f64) -> Gathered {
    let mut pairs = Pairs {
        asked: Vec::new(),
        figures: Vec::new(),
        left_out: Vec::new(),
    };
    pairs.all(a, b);
    let tested = pairs.asked.len();
    // Bonferroni's inequality.
    let each = level / tested.max(1) as f64;
    let mut figures = pairs.figures;
    figures.extend(pairs.asked.iter().map(|asked| asked(each)));
    figures.sort_by(|one, other| one.subject.cmp(&other.subject));
    (figures, tested, pairs.left_out)
}

/// Figures as they are gathered.
struct Pairs<'s> {
    asked: Vec<Asked<'s>>,
    /// Those of which nothing can be said.
    figures: Vec<Figure>,
    left_out: Vec<(Subject, String)>,
}

impl<'s> Pairs<'s> {
    fn all(&mut self, a: &'s Side, b: &'s Side) {
        for (event, one) in &a.probes {
            match b.probes.get(event) {
                Some(other) => self.probe(event, (one, other), (a, b)),
                None => self.only(event, one, "A"),
            }
        }
        for (event, other) in &b.probes {
            if !a.probes.contains_key(event) {
                self.only(event, other, "B");
            }
        }
        for (name, one) in &a.spans {
            let durations = |side: &'s super::side::SpanSide| side.durations.as_ref();
            let both = durations(one).zip(b.spans.get(name).and_then(durations));
            if let Some(both) = both {
                self.span(name, both);
            }
        }
    }

    fn only(&mut self, event: &str, probe: &ProbeSide, side: &str) {
        let reason = format!("recorded only in {side}: {} events", total(&probe.counts));
        self.left_out
            .push((Subject::Probe(event.to_owned()), reason));
    }

    fn probe(
        &mut self,
        event: &'s str,
        (a, b): (&'s ProbeSide, &'s ProbeSide),
        sides: (&'s Side, &'s Side),
    ) {
        if total(&a.counts) + total(&b.counts) == 0 {
            return;
        }
        let speeds = sides.0.slices_per_second().zip(sides.1.slices_per_second());
        if let Some(speeds) = speeds {
            self.asked.push(Box::new(move |level| {
                of_rates(event, (a, b), (sides, speeds), level)
            }));
        }
        if total(&a.counts) > 0 && total(&b.counts) > 0 {
            self.arguments(event, &a.arguments, &b.arguments);
        }
    }

    fn arguments(&mut self, event: &'s str, a: &'s [ArgumentSide], b: &'s [ArgumentSide]) {
        let mut used = vec![false; b.len()];
        for (at, one) in a.iter().enumerate() {
            let Some(place) = counterpart(at, a, b) else {
                self.lacking(event, &one.known.name, "A");
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
            let subject = Subject::Argument {
                event: event.to_owned(),
                name: name.clone(),
            };
            self.argument(subject, one, other);
        }
        for (other, _) in b.iter().zip(used).filter(|(_, used)| !used) {
            self.lacking(event, &other.known.name, "B");
        }
    }

    fn lacking(&mut self, event: &str, name: &str, side: &str) {
        let subject = Subject::Argument {
            event: event.to_owned(),
            name: name.to_owned(),
        };
        self.left_out.push((subject, format!("only in {side}")));
    }

    fn argument(&mut self, subject: Subject, a: &'s ArgumentSide, b: &'s ArgumentSide) {
        if let (Some(one), Some(other)) = (&a.known.unit, &b.known.unit)
            && one != other
        {
            let reason = format!("{one} in A, {other} in B");
            return self.left_out.push((subject, reason));
        }
        if total(&a.texts.all) > 0 && total(&b.texts.all) > 0 {
            self.texts(&subject, &a.texts, &b.texts);
        }
        if total(&a.missing) + total(&b.missing) > 0 {
            let label = Label {
                shown: "<missing>".to_owned(),
                value: serde_json::Value::Null,
            };
            let parts = (a.missing, b.missing);
            self.share(&subject, label, parts, (hits(a), hits(b)));
        }
        let (Some(one), Some(other)) = (&a.numbers, &b.numbers) else {
            return;
        };
        if is_address(a, one) || is_address(b, other) {
            let reason = "holds addresses, stamps or hashes".to_owned();
            self.left_out.push((subject, reason));
        } else if one.drift() * other.drift() > DRIFT * DRIFT {
            let reason = "goes one way all the time, as identifiers do".to_owned();
            self.left_out.push((subject, reason));
        } else if let Some(values) = few(one, other, &b.form) {
            for value in values {
                let label = Label {
                    shown: escape(&b.form.of_number(&value.decimal())).into_owned(),
                    value: super::data::json_number(&value.decimal()),
                };
                let parts = (one.of(value), other.of(value));
                self.share(&subject, label, parts, (one.all, other.all));
            }
        } else {
            self.quantiles(
                &subject,
                (one, other),
                &[500, 990],
                Some((&a.form, &b.form)),
            );
        }
    }

    fn texts(&mut self, subject: &Subject, a: &Texts, b: &Texts) {
        let mut texts = a.first(MOST_SHARES);
        texts.extend(b.first(MOST_SHARES));
        texts.sort_unstable();
        texts.dedup();
        let frequent = |texts: &Texts, text: &[u8]| {
            total(&texts.of(text)).saturating_mul(LEAST_SHARE) >= total(&texts.all)
        };
        texts.retain(|text| frequent(a, text) || frequent(b, text));
        for text in texts {
            let mut shown = String::new();
            quote(&mut shown, text);
            let label = Label {
                shown,
                value: String::from_utf8_lossy(text).into(),
            };
            self.share(subject, label, (a.of(text), b.of(text)), (a.all, b.all));
        }
    }

    fn share(
        &mut self,
        subject: &Subject,
        label: Label,
        parts: (Counts, Counts),
        all: (Counts, Counts),
    ) {
        let (subject, kind) = (subject.clone(), Kind::Share(label));
        self.asked.push(Box::new(move |level| {
            let means = (
                Mean::of_share(&parts.0, &all.0),
                Mean::of_share(&parts.1, &all.1),
            );
            let test = match means {
                (Some(a), Some(b)) => Test::new(b.value - a.value, a.noise(b, level)),
                _ => Test::UNKNOWN,
            };
            Figure {
                subject: subject.clone(),
                kind: kind.clone(),
                a: of_share(&parts.0, &all.0, means.0, level),
                b: of_share(&parts.1, &all.1, means.1, level),
                test: Some(test),
            }
        }));
    }

    fn span(&mut self, name: &str, (a, b): (&'s Ranked, &'s Ranked)) {
        let subject = Subject::Span(name.to_owned());
        let count = |of: &Ranked| {
            let count = of.count();
            Amount::plain(count as f64, count.to_string(), count.to_string())
        };
        self.figures.push(Figure {
            subject: subject.clone(),
            kind: Kind::Count,
            a: count(a),
            b: count(b),
            test: None,
        });
        self.quantiles(&subject, (a, b), &[500, 900, 990], None);
        self.figures.push(Figure {
            subject,
            kind: Kind::Max,
            a: Amount::time(a.most.value()),
            b: Amount::time(b.most.value()),
            test: None,
        });
    }

    /// Percentiles; of times, if there are no forms.
    fn quantiles(
        &mut self,
        subject: &Subject,
        (a, b): (&'s Ranked, &'s Ranked),
        thousandths: &[u32],
        forms: Option<(&'s Form, &'s Form)>,
    ) {
        if a.count() < FEWEST || b.count() < FEWEST {
            let reason = format!("fewer than {FEWEST} numbers");
            return self.left_out.push((subject.clone(), reason));
        }
        for &at in thousandths {
            let subject = subject.clone();
            self.asked.push(Box::new(move |level| {
                let of = |ranked: &Ranked, form: Option<&Form>| {
                    let quantile = ranked.quantile(at, level).unwrap_or(Quantile {
                        value: ranked.most,
                        low: None,
                        high: None,
                    });
                    Amount::quantile(&quantile, form)
                };
                let (one, other) = (
                    of(a, forms.map(|forms| forms.0)),
                    of(b, forms.map(|forms| forms.1)),
                );
                Figure {
                    test: Some(Test::of_quantiles((&one, &other), (a, b))),
                    subject: subject.clone(),
                    kind: Kind::Quantile(at),
                    a: one,
                    b: other,
                }
            }));
        }
    }
}

/// Rates of a probe. What was lost may have been hits at any time: a difference that it could explain is none.
fn of_rates(
    event: &str,
    (a, b): (&ProbeSide, &ProbeSide),
    ((side_a, side_b), speeds): ((&Side, &Side), (f64, f64)),
    level: f64,
) -> Figure {
    let of = |probe: &ProbeSide, side: &Side, speed: f64| {
        let mean = Mean::of_counts(&probe.counts).times(speed);
        let lost = probe.lost as f64 * speed / super::slices::SLICES as f64;
        let shown = rate(total(&probe.counts), side.duration());
        let amount = Amount {
            value: mean.value,
            decimal: mean.value.to_string(),
            shown,
            low: Some((mean.value - mean.reach(level)).max(0.0)),
            high: Some(mean.value + lost + mean.reach(level)),
        };
        (mean, lost, amount)
    };
    let (one, lost_a, amount_a) = of(a, side_a, speeds.0);
    let (other, lost_b, amount_b) = of(b, side_b, speeds.1);
    let lost = if one.value <= other.value {
        lost_a
    } else {
        lost_b
    };
    Figure {
        subject: Subject::Probe(event.to_owned()),
        kind: Kind::Rate,
        a: amount_a,
        b: amount_b,
        test: Some(Test::new(
            other.value - one.value,
            one.noise_of_ratio(other, level) + lost,
        )),
    }
}

fn of_share(part: &Counts, all: &Counts, mean: Option<Mean>, level: f64) -> Amount {
    let (part, all) = (total(part), total(all));
    let value = crate::report::numbers::share(part, all);
    let reach = mean.map(|mean| mean.reach(level));
    Amount {
        value,
        decimal: value.to_string(),
        shown: percent(part, all),
        low: reach.map(|reach| (value - reach).max(0.0)),
        high: reach.map(|reach| (value + reach).min(1.0)),
    }
}

/// Where B has an argument of A's: by its name, else at its place if one of both has no name of its own.
fn counterpart(at: usize, a: &[ArgumentSide], b: &[ArgumentSide]) -> Option<usize> {
    let name = &a.get(at)?.known.name;
    let named = b.iter().position(|other| other.known.name == *name);
    named.or_else(|| {
        let other = &b.get(at)?.known.name;
        let free = !a.iter().any(|one| one.known.name == *other);
        (free && (is_number(name, at) || is_number(other, at))).then_some(at)
    })
}

/// Whether an argument has no name but its number.
fn is_number(name: &str, at: usize) -> bool {
    name.strip_prefix("arg") == Some(&(at + 1).to_string())
}

/// Hits with and without a value.
fn hits(side: &ArgumentSide) -> Counts {
    let mut all = side.missing;
    add(&mut all, &side.texts.all);
    if let Some(numbers) = &side.numbers {
        add(&mut all, &numbers.all);
    }
    all
}

/// Whether it is of no use to compare numbers: they are addresses, or may be.
fn is_address(side: &ArgumentSide, numbers: &Ranked) -> bool {
    let known = &side.known;
    let untold = known.kind.is_none() && known.unit.is_none() && known.labels.is_none();
    let least = numbers.numbers.iter().map(|(number, _)| number.value());
    let least = least.filter(|number| *number != 0.0).reduce(f64::min);
    side.form.is_address() || untold && least.is_some_and(|least| least >= LEAST_ADDRESS)
}

/// The numbers of both, if they are words or few.
fn few(a: &Ranked, b: &Ranked, form: &Form) -> Option<Vec<Scalar>> {
    if !a.exact || !b.exact {
        return None;
    }
    let is_word = matches!(
        form,
        Form::Enum(_) | Form::Flags(_) | Form::Bool | Form::Char
    );
    let mut counts: Vec<(Scalar, u64)> = a.numbers.iter().map(|(number, _)| (*number, 0)).collect();
    let new = b.numbers.iter().map(|(number, _)| (*number, 0));
    counts.extend(new.filter(|(number, _)| a.of(*number) == [0; super::slices::SLICES]));
    for (number, count) in &mut counts {
        *count = total(&a.of(*number)).saturating_add(total(&b.of(*number)));
    }
    if is_word {
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts.truncate(MOST_SHARES);
    }
    let values = counts.into_iter().map(|(number, _)| number);
    let values: Vec<Scalar> = values.collect();
    (values.len() <= FEW_VALUES).then_some(values)
}
