//! Filters: an expression over the arguments, worked out for each event.

use usdtrec_decode::{Filter, FilterError, SampleField, SampleStrings};
use usdtrec_format::Value;
use usdtrec_format::expr::{Datum, Expr, ExprError};
use usdtrec_format::perf::Sample;

use crate::error::ReportError;
use crate::events::selection::span_filter::{SpanEvents, SplitExpression};
use crate::fields::{process_field_named, process_fields};
use crate::process::EscapedName;
use crate::process::process_field::ProcessValue;
use crate::question_error::QuestionError;
use crate::session::TraceSession;
use crate::session::ids::SampleTarget;
use crate::session::resolver::Resolver;
use crate::symbols::demangle::demangle_value;

/// What must be true of a span.
#[derive(Debug, Default)]
pub(crate) struct SpanExpressions {
    /// Of the hit that begins it.
    pub(crate) begin: Option<Expression>,
    /// Of the hit that ends it.
    pub(crate) end: Option<Expression>,
    /// Arguments that both have, where nothing says which of the two is meant.
    pub(crate) of_both: Vec<String>,
}

/// An expression, with its names found in each event.
#[derive(Clone, Debug)]
pub(crate) struct Expression {
    /// `None` for an event that has not all the names: the expression has no value there.
    of_event: Vec<Option<Filter>>,
}

impl Expression {
    /// Finds the names in the events that `asked` says.
    pub(crate) fn new(
        text: &str,
        session: &TraceSession,
        asked: impl Fn(usize) -> bool,
    ) -> Result<Self, ReportError> {
        Self::bind(text, parse(text)?, session, asked)
    }

    /// What must be true of the hits that begin spans, and of those that end them.
    pub(crate) fn of_spans(
        text: &str,
        session: &TraceSession,
        ends: SpanEvents<'_>,
    ) -> Result<SpanExpressions, ReportError> {
        let sides = SplitExpression::new(parse(text)?, session, ends)
            .map_err(|error| wrong(text, &error))?;
        let bind = |side: Option<Expr>, events: &[usize]| {
            let bound =
                side.map(|side| Self::bind(text, side, session, |event| events.contains(&event)));
            bound.transpose()
        };
        Ok(SpanExpressions {
            begin: bind(sides.begin, ends.starts)?,
            end: bind(sides.end, ends.dones)?,
            of_both: sides.of_both,
        })
    }

    fn bind(
        text: &str,
        parsed: Expr,
        session: &TraceSession,
        asked: impl Fn(usize) -> bool,
    ) -> Result<Self, ReportError> {
        let wrong = |error: ExprError| wrong(text, &error);
        if parsed.needs_process() {
            return Err(QuestionError::FilterReadsMemory {
                text: text.to_owned(),
            }
            .into());
        }
        let (mut unknown, mut wrong_word) = (None, None);
        let fields = fields_of(session);
        let events = session.events().events.iter().enumerate();
        let of_event = events.map(|(at, event)| {
            if event.is_dummy() || !asked(at) {
                return None;
            }
            match Filter::bind(parsed.clone(), &event.name, &event.arguments, &fields) {
                Ok(filter) => {
                    return Some(filter.with_readable(&event.arguments, demangle_value));
                }
                Err(FilterError::Word(error)) => wrong_word.get_or_insert(error),
                Err(FilterError::Name(error)) => unknown.get_or_insert(error),
            };
            None
        });
        let of_event: Vec<_> = of_event.collect();
        // That some events have no such argument is usual; that no event has it is a typing error.
        match wrong_word.or(unknown) {
            Some(error) if of_event.iter().all(Option::is_none) => Err(wrong(error)),
            _ => Ok(Self { of_event }),
        }
    }

    /// Whether it is true of a sample.
    pub(crate) fn is_true(
        &self,
        target: SampleTarget,
        sample: &Sample<'_>,
        resolver: &mut Resolver<'_>,
    ) -> bool {
        let filter = self.of_event.get(target.event as usize);
        let Some(filter) = filter.and_then(Option::as_ref) else {
            return false;
        };
        let session = resolver.session();
        let mut strings = SampleStrings::UNKNOWN;
        for field in filter.fields() {
            match *field {
                SampleField::Comm => {
                    let comm = resolver.name(sample.tid, sample.time);
                    strings.comm = string_of(comm.and_then(|name| session.processes().name(name)));
                }
                SampleField::ProcessString(name) => {
                    let field = process_field_named(name);
                    let found = field.and_then(|field| resolver.process_value(field, sample).ok());
                    let string = found.map_or(Datum::Missing, |found| match found {
                        ProcessValue::String(string) => string_of(Some(string)),
                        ProcessValue::Id(id) => {
                            Datum::String(id.as_str().as_bytes().to_vec().into())
                        }
                        ProcessValue::Number(number) => Datum::Integer(number.into()),
                    });
                    strings.process.push((name, string));
                }
                _ => {}
            }
        }
        let values: &[Value] = match session.site_of(target, sample) {
            Some(site) => resolver.values(site, sample),
            None => &[],
        };
        filter.is_true(sample, values, &strings)
    }
}

/// The fields that a trace has besides arguments.
fn fields_of(session: &TraceSession) -> Vec<SampleField> {
    let has = |name| process_field_named(name).is_none_or(|field| session.has_of_process(field));
    let of_hit = SampleField::OF_HIT.iter().copied();
    let others = process_fields().map(|(_, field)| field.name);
    let others = others.filter(|name| SampleField::of_hit(name).is_none());
    of_hit
        .chain(others.map(SampleField::ProcessString))
        .filter(|field| has(field.name()))
        .collect()
}

fn string_of(name: Option<EscapedName<'_>>) -> Datum<'_> {
    name.map_or(Datum::Missing, |name| {
        Datum::String(name.text.as_bytes().into())
    })
}

fn parse(text: &str) -> Result<Expr, ReportError> {
    Expr::parse(text).map_err(|error| wrong(text, &error))
}

fn wrong(text: &str, error: &ExprError) -> ReportError {
    let (text, error) = (text.to_owned(), error.clone());
    QuestionError::Filter { text, error }.into()
}
