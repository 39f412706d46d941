//! `report --hist`: how numbers are spread; `report/FIELDS.md` describes its JSON and CSV.

use std::fmt::Write as _;

use serde_json::{Value, json};
use usdtrec_format::escape::{escape, escape_json};

use crate::analysis::question::{Scale, Subject};
use crate::analysis::span_report as spans;
use crate::analysis::span_report::{NamedSpans, SpanRequest};
use crate::analysis::summary::recount::recount;
use crate::analysis::values::Values;
use crate::error::ReportError;
use crate::events::notices::Notices;
use crate::events::selection::Filter;
use crate::stats::argument::Argument;
use crate::stats::distribution::Distribution;
use crate::stats::log2;
use crate::stats::log2::{Kind, Log2};
use crate::stats::number::{Float, Integer, Number};
use crate::stats::text_counts::Texts;
use crate::trace::session::Session;
use crate::view::bars::bar;
use crate::view::head::Head;
use crate::view::report::ReportOptions;
use crate::view::report::data::json_number;
use crate::view::script::Format;
use crate::view::text::buffer::Text;
use crate::view::text::form::Form;
use crate::view::text::quoted::Csv;
use crate::view::theme::Look;

/// Different values up to which they are shown one by one of their own accord.
const FEW: usize = 16;
/// Buckets of one width.
const LINEAR: usize = 20;
/// Columns of the longest bar.
const BAR: usize = 42;

/// A histogram.
#[derive(Debug)]
struct Histogram {
    of: String,
    /// How it is divided, in words.
    scale: &'static str,
    count: u64,
    exact: bool,
    buckets: Vec<Bucket>,
    missing: u64,
}

#[derive(Debug)]
struct Bucket {
    label: String,
    /// Decimal text, or the value itself.
    from: String,
    /// `None`: the bucket is one value.
    to: Option<String>,
    count: u64,
}

/// Counts, and shows the histograms.
pub(crate) fn report(
    session: &Session,
    filter: &Filter,
    (of, scale): (&Subject, Scale),
    options: &ReportOptions,
) -> Result<(String, Notices), ReportError> {
    let mut notices = Notices::new(session);
    let mut remarks = Vec::new();
    let histograms = match of {
        Subject::Argument(name) => {
            of_argument(session, filter, (name, scale), options.human, &mut notices)?
        }
        Subject::Span(question) => {
            let request = SpanRequest {
                session,
                filter,
                question,
                options,
            };
            let found = spans::named(request, None, &mut notices)?;
            remarks = found.remarks;
            let one = |spans: NamedSpans| {
                let (form, kind) = (Form::Time(1), Kind::Time);
                Histogram::of(
                    spans.name,
                    &spans.durations.distribution,
                    (scale, kind, &form),
                )
            };
            found.named.into_iter().map(one).collect()
        }
    };
    let text = match options.format {
        Format::Text => text(
            &Head::new(session).with(remarks),
            &histograms,
            options.look(),
        ),
        Format::Json => json(&histograms),
        format => csv(format.csv(), &histograms),
    };
    Ok((text, notices))
}

fn of_argument(
    session: &Session,
    filter: &Filter,
    (name, scale): (&str, Scale),
    human: bool,
    notices: &mut Notices,
) -> Result<Vec<Histogram>, ReportError> {
    let otherwise = format!("is no number: --sort {name} counts by it");
    let values = Values::new(session, filter, (name, human), &otherwise)?;
    let none = || vec![Argument::default(); values.rows.rows.len()];
    let (states, outcome) = values.fold(session, filter, none, |held, row, value, _| {
        if let Some(held) = held.get_mut(row) {
            held.add(value);
        }
    });
    notices.add(outcome);
    let mut all = none();
    for state in states {
        for (all, held) in all.iter_mut().zip(state) {
            all.merge(held);
        }
    }
    let mut texts: Vec<&mut Texts> = all.iter_mut().map(|held| &mut held.texts).collect();
    recount(
        session,
        filter,
        &mut texts,
        &values.rows_and_places(),
        notices,
    );
    Ok(all
        .into_iter()
        .enumerate()
        .filter(|(row, _)| values.has(*row))
        .filter_map(|(row, mut held)| {
            held.settle();
            let of = format!(
                "{}.{name}",
                crate::view::report::text::short(&values.rows.rows.get(row)?.name)
            );
            Some(Histogram::of_held(of, &held, scale, &values.form))
        })
        .collect())
}

impl Histogram {
    /// Of what an argument held: numbers, else texts.
    fn of_held(of: String, held: &Argument, scale: Scale, form: &Form) -> Self {
        let missing = held.missing.in_words().iter().map(|(_, count)| count).sum();
        let histogram = if held.floats.count() > held.integers.count() {
            Self::of(of, &held.floats, (scale, Kind::Float, form))
        } else if held.integers.count() > 0 || held.texts.count() == 0 {
            Self::of(of, &held.integers, (scale, Kind::Integer, form))
        } else {
            Self::of_texts(of, held)
        };
        Self {
            missing,
            ..histogram
        }
    }

    fn of<N: Number + Log2 + Linear>(
        of: String,
        numbers: &Distribution<N>,
        (scale, kind, form): (Scale, Kind, &Form),
    ) -> Self {
        let values = numbers.values();
        let few = values.as_ref().is_some_and(|values| values.len() <= FEW);
        let scale = match scale {
            Scale::Auto if few && kind != Kind::Time => Scale::Value,
            Scale::Auto => Scale::Log2,
            Scale::Value if values.is_none() => Scale::Log2,
            asked => asked,
        };
        let (words, buckets) = match (scale, values) {
            (Scale::Value, Some(values)) => ("by value", by_value(&values, form)),
            (Scale::Linear, _) => ("buckets of one width", linear(numbers, form)),
            _ => ("log2 buckets", by_power(&numbers.counts(), kind, form)),
        };
        Self {
            of,
            scale: words,
            count: numbers.count(),
            exact: numbers.values().is_some(),
            buckets,
            missing: 0,
        }
    }

    fn of_texts(of: String, held: &Argument) -> Self {
        const MOST: usize = 50;
        const LONGEST: usize = 30;
        let texts = held.texts.by_count();
        let bucket = |(text, count): &(&[u8], u64)| {
            let whole = String::from_utf8_lossy(text).into_owned();
            let mut label: String = escape(&whole).chars().take(LONGEST).collect();
            if label.chars().count() == LONGEST {
                label.push('…');
            }
            Bucket {
                label,
                from: whole,
                to: None,
                count: *count,
            }
        };
        Self {
            of,
            scale: "most frequent texts",
            count: held.texts.count(),
            exact: held.texts.others() == 0,
            buckets: texts.iter().take(MOST).map(bucket).collect(),
            missing: 0,
        }
    }
}

fn by_value<N: Number>(values: &[(N, u64)], form: &Form) -> Vec<Bucket> {
    let bucket = |&(number, count): &(N, u64)| {
        let from = number.decimal();
        Bucket {
            label: form.of_number(&from),
            from,
            to: None,
            count,
        }
    };
    values.iter().map(bucket).collect()
}

fn by_power<N: Log2 + Copy>(counts: &[(N, u64)], kind: Kind, form: &Form) -> Vec<Bucket> {
    let mut buckets: Vec<(i32, u64)> = Vec::new();
    for &(number, count) in counts {
        let index = number.index(kind);
        match buckets.last_mut() {
            Some((last, sum)) if *last == index => *sum += count,
            Some((last, _)) => {
                // Empty ones between show that there is nothing; of floats there may be very many.
                let gap = if index - *last <= 64 {
                    *last + 1..index
                } else {
                    0..0
                };
                buckets.extend(gap.map(|index| (index, 0)));
                buckets.push((index, count));
            }
            None => buckets.push((index, count)),
        }
    }
    let bucket = |(index, count): (i32, u64)| Bucket {
        label: log2::label(index, kind, form),
        from: log2::from(index, kind),
        to: Some(log2::from(index + 1, kind)),
        count,
    };
    buckets.into_iter().map(bucket).collect()
}

/// Numbers that can be divided into buckets of one width.
trait Linear {
    /// An edge, as near as there is one.
    fn edge(at: f64) -> String;
    /// Width of a bucket, of so many between two numbers.
    fn width(from: f64, to: f64) -> f64;
}

impl Linear for Integer {
    fn edge(at: f64) -> String {
        format!("{at:.0}")
    }
    fn width(from: f64, to: f64) -> f64 {
        ((to - from + 1.0) / LINEAR as f64).ceil().max(1.0)
    }
}

impl Linear for Float {
    fn edge(at: f64) -> String {
        let mut text = Text::default();
        text.float32(at as f32);
        text.into_string()
    }
    fn width(from: f64, to: f64) -> f64 {
        (to - from) / LINEAR as f64
    }
}

fn linear<N: Number + Linear>(numbers: &Distribution<N>, form: &Form) -> Vec<Bucket> {
    let Some((from, to)) = numbers.ends() else {
        return Vec::new();
    };
    let (from, to) = (from.approximate(), to.approximate());
    let width = N::width(from, to);
    let mut counts = [0; LINEAR];
    for (number, count) in numbers.counts() {
        let place = (number.approximate() - from) / width;
        // Infinities leave no width.
        let place = if place.is_finite() { place as usize } else { 0 };
        counts[place.min(LINEAR - 1)] += count;
    }
    let last = counts.iter().rposition(|&count| count > 0).unwrap_or(0);
    let bucket = |(at, &count): (usize, &u64)| {
        let edge = |at: usize| N::edge(from + width * at as f64);
        Bucket {
            label: form.of_number(&edge(at)),
            from: edge(at),
            to: Some(edge(at + 1)),
            count,
        }
    };
    counts[..=last].iter().enumerate().map(bucket).collect()
}

fn text(head: &Head, histograms: &[Histogram], look: Look) -> String {
    let mut out = String::new();
    head.put(look, &mut out);
    for histogram in histograms {
        let _ = writeln!(
            out,
            "\n{}, {} values, {}",
            escape(&histogram.of),
            histogram.count,
            histogram.scale
        );
        let buckets = || histogram.buckets.iter();
        let widest = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
        let label = widest(&mut buckets().map(|bucket| bucket.label.chars().count()));
        let digits = widest(&mut buckets().map(|bucket| bucket.count.to_string().len()));
        let most = buckets().map(|bucket| bucket.count).max().unwrap_or(0);
        for bucket in buckets() {
            let line = format!(
                "{:>label$}  {:>digits$}  {}",
                bucket.label,
                bucket.count,
                look.bar(&bar(bucket.count, most, BAR))
            );
            let _ = writeln!(out, "{}", line.trim_end());
        }
        if histogram.missing > 0 {
            let _ = writeln!(out, "{} more are not known", histogram.missing);
        }
    }
    out
}

fn json(histograms: &[Histogram]) -> String {
    let mut out = String::new();
    for histogram in histograms {
        let one = |bucket: &Bucket| {
            json!({
                "from": json_number(&bucket.from),
                "to": bucket.to.as_deref().map_or(Value::Null, json_number),
                "count": bucket.count,
            })
        };
        let line = json!({
            "of": histogram.of,
            "count": histogram.count,
            "exact": histogram.exact,
            "buckets": histogram.buckets.iter().map(one).collect::<Vec<_>>(),
            "missing": histogram.missing,
        });
        out.push_str(&escape_json(&line.to_string()));
        out.push('\n');
    }
    out
}

fn csv(csv: Csv, histograms: &[Histogram]) -> String {
    let mut out = "of,from,to,count\n".to_owned();
    for histogram in histograms {
        for bucket in &histogram.buckets {
            let _ = writeln!(
                out,
                "{},{},{},{}",
                csv.field(&histogram.of),
                csv.field(&bucket.from),
                bucket.to.as_deref().unwrap_or(""),
                bucket.count
            );
        }
    }
    out
}
