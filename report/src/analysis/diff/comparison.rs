//! Which figures of two recordings are set side by side.

use usdtrec_format::escape::{escape, quote};

use crate::analysis::diff::hypothesis_test::{of_quantiles, of_rates, of_shares};
use crate::analysis::diff::metric::{Amount, Figure, Kind, Label, Subject};
use crate::analysis::diff::quantiles::Ranked;
use crate::analysis::diff::recording::{ArgumentSide, ProbeSide, Side, SpanSide};
use crate::analysis::diff::significance::Level;
use crate::analysis::diff::similarity::{
    MOST_SHARES, are_counters, counterpart, few, hits, is_address, is_number,
};
use crate::analysis::diff::slices::{Counts, total};
use crate::analysis::diff::texts::{Texts, Words};
use crate::view::text::form::Form;

/// Numbers below which percentiles are not asked for.
const FEWEST: u64 = 10;
/// The least share of hits, in one recording at least, with which a text is compared: one of so many.
const LEAST_SHARE: u64 = 100;

/// A figure, to be worked out when it is known how many there are.
type Asked<'s> = Box<dyn Fn(&Level) -> Figure + 's>;

/// Both recordings side by side.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) a: Side,
    pub(crate) b: Side,
    /// All figures, in the order of subjects.
    pub(crate) figures: Vec<Figure>,
    /// Figures that were tested.
    pub(crate) tested: usize,
    /// What is not compared, with the reason.
    pub(crate) left_out: Vec<(Subject, String)>,
}

impl Comparison {
    /// Compares all that both have: of like recordings, some figure is beyond noise in so many cases (0 to 1) at most.
    pub(crate) fn new(a: Side, b: Side, level: f64) -> Self {
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
    let each = Level::new(level / tested.max(1) as f64);
    let mut figures = pairs.figures;
    figures.extend(pairs.asked.iter().map(|asked| asked(&each)));
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
            if let Some(other) = b.spans.get(name) {
                self.spans(name, one, other);
            }
        }
    }

    fn spans(&mut self, name: &str, a: &'s SpanSide, b: &'s SpanSide) {
        if let (Some(one), Some(other)) = (&a.durations, &b.durations) {
            self.span(&Subject::Span(name.to_owned()), (one, other));
        }
        let group = |group: &str| Subject::Group {
            span: name.to_owned(),
            group: group.to_owned(),
        };
        for (key, one) in &a.groups {
            match b.groups.get(key) {
                Some(other) if one.count() < FEWEST || other.count() < FEWEST => {
                    self.left_out.push((group(key), too_few()));
                }
                Some(other) => self.span(&group(key), (one, other)),
                None => self.left_out.push((group(key), only_in("A", one))),
            }
        }
        let new = b
            .groups
            .iter()
            .filter(|(key, _)| !a.groups.contains_key(*key));
        let new = new.map(|(key, other)| (group(key), only_in("B", other)));
        self.left_out.extend(new);
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
            self.texts(subject.clone(), &a.texts, &b.texts);
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
        } else if are_counters(one, other) {
            let reason = "goes one way all the time, as identifiers do".to_owned();
            self.left_out.push((subject, reason));
        } else if let Some(values) = few(one, other, &b.form) {
            for value in values {
                let label = Label {
                    shown: escape(&b.form.of_number(&value.decimal())).into_owned(),
                    value: crate::view::report::data::json_number(&value.decimal()),
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

    /// Shares of texts; where most texts are seldom, of their shapes.
    fn texts(&mut self, subject: Subject, a: &Texts, b: &Texts) {
        let words = (a.words(), b.words());
        let texts = frequent((a, b), words);
        let covered = |texts: &[&[u8]], words: &Words, all: &Counts| {
            let hits: u64 = texts.iter().map(|text| total(&words.of(text))).sum();
            2 * hits >= total(all)
        };
        if covered(&texts, words.0, &a.all) && covered(&texts, words.1, &b.all) {
            return self.words(&subject, &texts, words, (a.all, b.all));
        }
        let shapes = (a.shapes(), b.shapes());
        let shapes = (&shapes.0, &shapes.1);
        let subject = match subject {
            Subject::Argument { event, name } => Subject::Argument {
                event,
                name: format!("{name}:shape"),
            },
            subject => subject,
        };
        self.words(&subject, &frequent((a, b), shapes), shapes, (a.all, b.all));
    }

    fn words(
        &mut self,
        subject: &Subject,
        texts: &[&[u8]],
        (a, b): (&Words, &Words),
        all: (Counts, Counts),
    ) {
        for text in texts {
            let mut shown = String::new();
            quote(&mut shown, text);
            let label = Label {
                shown,
                value: String::from_utf8_lossy(text).into(),
            };
            self.share(subject, label, (a.of(text), b.of(text)), all);
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
            of_shares((&subject, &kind), &parts, &all, level)
        }));
    }

    fn span(&mut self, subject: &Subject, (a, b): (&'s Ranked, &'s Ranked)) {
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
        self.quantiles(subject, (a, b), &[500, 900, 990], None);
        self.figures.push(Figure {
            subject: subject.clone(),
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
            return self.left_out.push((subject.clone(), too_few()));
        }
        for &at in thousandths {
            let subject = subject.clone();
            self.asked.push(Box::new(move |level| {
                of_quantiles(&subject, at, ((a, b), forms), level)
            }));
        }
    }
}

/// Texts that are frequent in one recording at least, in order.
fn frequent<'t>((a, b): (&Texts, &Texts), words: (&'t Words, &'t Words)) -> Vec<&'t [u8]> {
    let mut texts = words.0.first(MOST_SHARES);
    texts.extend(words.1.first(MOST_SHARES));
    texts.sort_unstable();
    texts.dedup();
    let is_frequent = |words: &Words, texts: &Texts, text: &[u8]| {
        total(&words.of(text)).saturating_mul(LEAST_SHARE) >= total(&texts.all)
    };
    texts.retain(|text| is_frequent(words.0, a, text) || is_frequent(words.1, b, text));
    texts
}

fn only_in(side: &str, spans: &Ranked) -> String {
    format!("only in {side}: {} spans", spans.count())
}

fn too_few() -> String {
    format!("fewer than {FEWEST} numbers")
}
