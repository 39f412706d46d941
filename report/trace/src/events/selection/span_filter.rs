//! `--filter` of spans: which parts of it are about the hit that begins a span, and which about the one that ends it.

use usdtrec_decode::SampleField;
use usdtrec_format::expr::{BinaryOperator, Expr, ExprError, Name};

use crate::fields::process_field_named;
use crate::session::TraceSession;
use crate::session::events::Event;

/// An expression, in parts that must all be true.
#[derive(Debug, Default)]
pub(crate) struct SplitExpression {
    /// Of what begins a span.
    pub(crate) begin: Option<Expr>,
    /// Of what ends it.
    pub(crate) end: Option<Expr>,
    /// Arguments that both have, where nothing says which of the two is meant.
    pub(crate) of_both: Vec<String>,
}

/// The events that begin spans, and those that end them.
#[derive(Clone, Copy, Debug)]
pub struct SpanEvents<'a> {
    /// Indexes of the events that begin spans.
    pub starts: &'a [usize],
    /// Indexes of the events that end spans.
    pub dones: &'a [usize],
}

/// Whose argument a name is.
#[derive(Clone, Copy, Debug, Default)]
struct Whose {
    begin: bool,
    end: bool,
    /// Whether it is one; else a field that all hits have.
    is_argument: bool,
}

impl Whose {
    /// A field of all hits.
    const BOTH: Self = Self {
        begin: true,
        end: true,
        is_argument: false,
    };
}

impl SplitExpression {
    /// Takes an expression apart at `&&`. A part is of the side that its names say (`request__done.status`), else of the begin if that has
    /// all arguments in it, else of the end.
    pub(crate) fn new(
        parsed: Expr,
        session: &TraceSession,
        ends: SpanEvents<'_>,
    ) -> Result<Self, ExprError> {
        let mut parts = Vec::new();
        take_apart(parsed, &mut parts);
        let mut sides = Self::default();
        for part in parts {
            let mut whose = Whose::BOTH;
            let mut first = None;
            let mut bare = Vec::new();
            let mut has_duration = false;
            let part = part.bind(&mut |name: Name| {
                let text = name.text.clone();
                has_duration |= text == "span";
                let (named, of) = ends.whose(name, session);
                // What is added to both is the same where the one is in the other.
                let is_added = text.contains('.');
                if of.is_argument && of.begin && of.end && named.text == text && !is_added {
                    bare.push(text);
                }
                whose = Whose {
                    begin: whose.begin && of.begin,
                    end: whose.end && of.end,
                    ..whose
                };
                first.get_or_insert(named.at);
                Ok(named)
            })?;
            if whose.begin && whose.end {
                sides.of_both.extend(bare);
            }
            let side = match whose {
                Whose { begin: true, .. } => &mut sides.begin,
                Whose { end: true, .. } => &mut sides.end,
                _ => {
                    let message = match has_duration {
                        true => {
                            "the duration of a span is compared with a time that has its unit, as in span > 5ms"
                        }
                        false => {
                            "neither what begins the span nor what ends it has all arguments of this part: join parts about \
                             one of them with && (EVENT.NAME says which of them is meant)"
                        }
                    };
                    return Err(ExprError {
                        at: first.unwrap_or(0),
                        message: message.to_owned(),
                    });
                }
            };
            *side = Some(match side.take() {
                Some(others) => Expr::Binary(BinaryOperator::And, Box::new(others), Box::new(part)),
                None => part,
            });
        }
        Ok(sides)
    }
}

/// The parts that `&&` joins.
fn take_apart(expression: Expr, parts: &mut Vec<Expr>) {
    match expression {
        Expr::Binary(BinaryOperator::And, left, right) => {
            take_apart(*left, parts);
            take_apart(*right, parts);
        }
        part => parts.push(part),
    }
}

impl SpanEvents<'_> {
    /// Whose argument a name is, and the name without its event.
    fn whose(self, name: Name, session: &TraceSession) -> (Name, Whose) {
        let events = |side: &[usize]| {
            let events = side.iter();
            let events = events.filter_map(|&event| session.events().events.get(event));
            events.collect::<Vec<_>>()
        };
        let (starts, dones) = (events(self.starts), events(self.dones));
        if let Some((event, rest)) = name.text.split_once('.') {
            let begin = starts.iter().any(|known| known.is_called(event));
            let end = !begin && dones.iter().any(|known| known.is_called(event));
            if begin || end {
                let rest = Name {
                    text: rest.to_owned(),
                    at: name.at,
                };
                let is_argument = true;
                return (
                    rest,
                    Whose {
                        begin,
                        end,
                        is_argument,
                    },
                );
            }
        }
        let has = |side: &[&Event]| {
            let mut side = side.iter();
            side.any(|event| event.argument(&name.text).is_some())
        };
        let whose = Whose {
            begin: has(&starts),
            end: has(&dones),
            is_argument: true,
        };
        let mut of_hit = SampleField::OF_HIT.iter();
        let of_hit = of_hit.any(|field| field.name() == name.text)
            || process_field_named(&name.text).is_some();
        match whose {
            Whose {
                begin: false,
                end: false,
                ..
            } if of_hit => (name, Whose::BOTH),
            whose => (name, whose),
        }
    }
}
