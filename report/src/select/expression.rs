//! `--filter`: an expression over the arguments, worked out for each event.

use usdtrec_format::Value;
use usdtrec_format::expr::{Binary, Datum, Expr, ExprError, Name};
use usdtrec_format::perf::Sample;
use usdtrec_format::schema::Labels;

use crate::error::ReportError;
use crate::session::{Event, Resolver, Session, Target};

/// What a name stands for.
#[derive(Clone, Debug, PartialEq)]
enum Meaning {
    /// An argument, by its place, and the words for its numbers.
    Argument(usize, Option<Labels>),
    Comm,
    Pid,
    Tid,
    Cpu,
}

/// An expression, with its names found in each event.
#[derive(Clone, Debug)]
pub(super) struct Expression {
    /// `None` for an event that has not all the names: the expression has no value there.
    of_event: Vec<Option<Expr<Meaning>>>,
}

impl Expression {
    /// Finds the names in the events that `asked` says.
    pub(super) fn new(
        text: &str,
        session: &Session,
        asked: impl Fn(usize) -> bool,
    ) -> Result<Self, ReportError> {
        let wrong = |error: ExprError| ReportError::Ask(format!("filter {text:?}: {error}"));
        let parsed = Expr::parse(text).map_err(wrong)?;
        let (mut unknown, mut wrong_word) = (None, None);
        let events = session.events().events.iter().enumerate();
        let of_event = events.map(|(at, event)| {
            if event.is_dummy() || !asked(at) {
                return None;
            }
            match parsed.clone().bind(&mut |name| meaning(&name, event)) {
                Ok(bound) => words(bound)
                    .map_err(|error| wrong_word.get_or_insert(error))
                    .ok(),
                Err(error) => {
                    unknown.get_or_insert(error);
                    None
                }
            }
        });
        let of_event: Vec<_> = of_event.collect();
        // That some events have no such argument is usual; that none has is a slip of the pen.
        match wrong_word.or(unknown) {
            Some(error) if of_event.iter().all(Option::is_none) => Err(wrong(error)),
            _ => Ok(Self { of_event }),
        }
    }

    /// Whether it is true of a sample.
    pub(super) fn is_true(
        &self,
        target: Target,
        sample: &Sample<'_>,
        resolver: &mut Resolver<'_>,
    ) -> bool {
        let expression = self.of_event.get(target.event as usize);
        let Some(expression) = expression.and_then(Option::as_ref) else {
            return false;
        };
        let session = resolver.session();
        let comm = resolver.name(sample.tid, sample.time);
        let comm = comm.and_then(|name| session.processes().name(name));
        let comm = comm.map_or(Datum::Missing, |name| {
            Datum::Text(name.text.as_bytes().into())
        });
        let values: &[Value] = match session.site_of(target, sample) {
            Some(site) => resolver.values(site, sample),
            None => &[],
        };
        let value = |meaning: &Meaning| match meaning {
            Meaning::Argument(place, _) => values.get(*place).map_or(Datum::Missing, Datum::of),
            Meaning::Comm => comm.clone(),
            Meaning::Pid => Datum::Integer(sample.pid.into()),
            Meaning::Tid => Datum::Integer(sample.tid.into()),
            Meaning::Cpu => Datum::Integer(sample.cpu.into()),
        };
        expression.evaluate(&value).truth() == Some(true)
    }
}

fn meaning(name: &Name, event: &Event) -> Result<Meaning, ExprError> {
    let arguments = &event.arguments;
    let named = arguments.iter().position(|known| known.name == name.text);
    let numbered = || {
        let number: usize = name.text.strip_prefix("arg")?.parse().ok()?;
        number
            .checked_sub(1)
            .filter(|place| *place < arguments.len())
    };
    if let Some(place) = named.or_else(numbered) {
        let labels = arguments.get(place).and_then(|known| known.labels.clone());
        return Ok(Meaning::Argument(place, labels));
    }
    match &*name.text {
        "comm" => Ok(Meaning::Comm),
        "pid" => Ok(Meaning::Pid),
        "tid" => Ok(Meaning::Tid),
        "cpu" => Ok(Meaning::Cpu),
        _ => {
            let known = arguments.iter().map(|known| known.name.as_str());
            let known: Vec<&str> = known.chain(["comm", "pid", "tid", "cpu"]).collect();
            Err(ExprError {
                at: name.at,
                message: format!(
                    "{} has no argument {name}; it has {}",
                    event.name,
                    known.join(", ")
                ),
            })
        }
    }
}

/// Makes texts that stand beside an argument with words the numbers of these words.
fn words(expression: Expr<Meaning>) -> Result<Expr<Meaning>, ExprError> {
    let boxed = |inner: Box<Expr<Meaning>>| words(*inner).map(Box::new);
    Ok(match expression {
        Expr::Binary(Binary::Glob, left, right) => Expr::Binary(Binary::Glob, left, right),
        Expr::Binary(operator, left, right) => {
            let (left, right) = (boxed(left)?, boxed(right)?);
            let (left, right) = match (labels(&left), labels(&right)) {
                (Some(labels), None) => {
                    let right = number(labels, *right)?;
                    (left, Box::new(right))
                }
                (None, Some(labels)) => {
                    let left = number(labels, *left)?;
                    (Box::new(left), right)
                }
                _ => (left, right),
            };
            Expr::Binary(operator, left, right)
        }
        Expr::Unary(operator, inner) => Expr::Unary(operator, boxed(inner)?),
        Expr::Cast(word, inner) => Expr::Cast(word, boxed(inner)?),
        other => other,
    })
}

const fn labels(expression: &Expr<Meaning>) -> Option<&Labels> {
    match expression {
        Expr::Name(Meaning::Argument(_, Some(labels))) => Some(labels),
        _ => None,
    }
}

fn number(labels: &Labels, expression: Expr<Meaning>) -> Result<Expr<Meaning>, ExprError> {
    let Expr::Text(word) = &expression else {
        return Ok(expression);
    };
    let word = String::from_utf8_lossy(word);
    match labels.number(&word) {
        Some(number) => Ok(Expr::Integer(number.into())),
        None => {
            let known: Vec<&str> = labels.words().values().map(String::as_str).collect();
            Err(ExprError {
                at: 0,
                message: format!("{word:?} is none of its words: {}", known.join(", ")),
            })
        }
    }
}
