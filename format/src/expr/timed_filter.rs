//! The parts of a filter that are about how long a span lasted, and what on: `span > 100ms`, `span.blocked > 10ms`.
//!
//! Each is one of the parts that `&&` joins. A number without a unit of time is compared with an argument of that name.

use super::ast::ExprError;
use crate::lexer::{Hash, Lexer, Token, TokenKind};
use crate::time_parts::{LeastParts, TimePart};

/// What a span's duration is called.
const SPAN: &str = "span";

/// Units of time, and their lengths, ns.
const UNITS: [(&str, f64); 6] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
];

/// A filter, and the shortest duration that it asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimedFilter {
    /// The duration of the shortest spans that it lets pass, ns; 0 if it does not say.
    pub least: u64,
    /// The least times of its parts.
    pub parts: LeastParts,
    /// What else must be true; `None` if nothing.
    pub rest: Option<String>,
}

impl TimedFilter {
    /// Takes the durations out of a filter. The rest is not checked.
    ///
    /// # Errors
    /// [`ExprError`] if a duration is compared in another way than as one of the parts that `&&` joins, and otherwise than by `>` or `>=`.
    pub fn parse(text: &str) -> Result<Self, ExprError> {
        let tokens: Vec<Token<'_>> = Lexer::new(text, Hash::Odd).collect();
        let Some(first) = (0..tokens.len()).find(|at| comparison(&tokens[*at..]).is_some()) else {
            return Ok(Self {
                rest: Some(text.to_owned()),
                ..Self::default()
            });
        };
        let has_or =
            depths(&tokens).any(|(depth, token)| depth == 0 && token.kind == TokenKind::Mark("||"));
        let mut filter = Self::default();
        for part in parts(&tokens) {
            match limit(part)? {
                Some(limit) if !has_or => filter.limit(limit),
                None if !holds_span(part) => filter.add(source(text, &tokens, part)),
                _ => {
                    let at = tokens.get(first).map_or(0, |token| token.at);
                    let message =
                        "join span > TIME to the rest of the filter with &&, outside of brackets";
                    return Err(ExprError::new(at, message));
                }
            }
        }
        Ok(filter)
    }

    /// Adds a limit.
    fn limit(&mut self, TimeLimit { of, least }: TimeLimit) {
        match of {
            Some(part) => self.parts.ask(part, least),
            None => self.least = self.least.max(least),
        }
    }

    /// Adds a part that must be true, too.
    fn add(&mut self, part: &str) {
        self.rest = Some(match self.rest.take() {
            Some(others) => format!("{others} && {part}"),
            None => part.to_owned(),
        });
    }
}

/// Each token, with the number of brackets that it is in.
fn depths<'t>(tokens: &'t [Token<'t>]) -> impl Iterator<Item = (usize, &'t Token<'t>)> {
    let mut depth = 0_usize;
    tokens.iter().map(move |token| {
        match token.kind {
            TokenKind::Mark("(") => depth += 1,
            TokenKind::Mark(")") => depth = depth.saturating_sub(1),
            _ => {}
        }
        (depth, token)
    })
}

/// The parts that `&&` joins.
fn parts<'t>(tokens: &'t [Token<'t>]) -> Vec<&'t [Token<'t>]> {
    let joins = depths(tokens).enumerate();
    let joins =
        joins.filter(|(_, (depth, token))| *depth == 0 && token.kind == TokenKind::Mark("&&"));
    let mut parts = Vec::new();
    let mut from = 0;
    for (at, _) in joins {
        parts.push(&tokens[from..at]);
        from = at + 1;
    }
    parts.push(&tokens[from..]);
    parts
}

/// The text of a part, up to the token after it.
fn source<'t>(text: &'t str, tokens: &[Token<'_>], part: &[Token<'_>]) -> &'t str {
    let (Some(first), Some(last)) = (part.first(), part.last()) else {
        return "";
    };
    let after = tokens.iter().find(|token| token.at > last.at);
    let end = after.map_or(text.len(), |token| token.at);
    text.get(first.at..end).unwrap_or_default().trim_end()
}

/// The shortest time that a part of a filter asks for.
#[derive(Clone, Copy)]
struct TimeLimit {
    /// Of this part of a span's time; `None` of all of it.
    of: Option<TimePart>,
    /// ns.
    least: u64,
}

/// A comparison with a time.
struct TimeComparison<'t, 'p> {
    of: Option<TimePart>,
    mark: Token<'t>,
    time: Time,
    /// The tokens after the number.
    rest: &'p [Token<'t>],
}

/// What tokens begin with, if that is `span` or a part of it, a comparison and a time.
fn comparison<'t, 'p>(tokens: &'p [Token<'t>]) -> Option<TimeComparison<'t, 'p>> {
    let (of, compared) = match tokens {
        [span, dot, part, rest @ ..] if dot.kind == TokenKind::Mark(".") => {
            let TokenKind::Name(name) = part.kind else {
                return None;
            };
            let of = TimePart::named(name).filter(|_| span.kind == TokenKind::Name(SPAN))?;
            (Some(of), rest)
        }
        [span, rest @ ..] if span.kind == TokenKind::Name(SPAN) => (None, rest),
        _ => return None,
    };
    let [mark, number, rest @ ..] = compared else {
        return None;
    };
    let compares = matches!(
        mark.kind,
        TokenKind::Mark(">" | ">=" | "<" | "<=" | "==" | "!=")
    );
    Some(TimeComparison {
        of,
        mark: *mark,
        time: time(*number, rest).filter(|_| compares)?,
        rest,
    })
}

/// Whether a duration is compared anywhere in a part.
fn holds_span(part: &[Token<'_>]) -> bool {
    (0..part.len()).any(|at| comparison(&part[at..]).is_some())
}

/// The shortest time that a part asks for; `None` if it is about something else.
fn limit(part: &[Token<'_>]) -> Result<Option<TimeLimit>, ExprError> {
    let Some(TimeComparison {
        of,
        mark,
        time: Time { ns, tokens },
        rest,
    }) = comparison(part)
    else {
        return Ok(None);
    };
    if rest.len() + 1 > tokens {
        return Ok(None);
    }
    match mark.kind {
        TokenKind::Mark(">") => Ok(Some(TimeLimit {
            of,
            least: ns.saturating_add(1),
        })),
        TokenKind::Mark(">=") => Ok(Some(TimeLimit { of, least: ns })),
        _ => Err(ExprError::new(
            mark.at,
            "only slow spans can be chosen: expected span > TIME or span >= TIME",
        )),
    }
}

/// A time as written.
struct Time {
    ns: u64,
    /// Number of its tokens.
    tokens: usize,
}

/// The time that a number is, with its unit in it or after it.
fn time(number: Token<'_>, rest: &[Token<'_>]) -> Option<Time> {
    let TokenKind::Number(written) = number.kind else {
        return None;
    };
    let digits = written.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let (unit, tokens) = match (&written[digits.len()..], rest.first().map(|next| next.kind)) {
        ("", Some(TokenKind::Name(unit))) => (unit, 2),
        (unit, _) => (unit, 1),
    };
    let (_, length) = UNITS.iter().find(|(name, _)| *name == unit)?;
    let number: f64 = digits.parse().ok()?;
    Some(Time {
        ns: (number * length) as u64,
        tokens,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (u64, Option<String>) {
        let TimedFilter { least, parts, rest } = TimedFilter::parse(text).unwrap();
        assert_eq!(parts, LeastParts::default(), "{text}");
        (least, rest)
    }

    #[test]
    fn durations_are_taken_out_of_filters() {
        assert_eq!(parsed("span > 100ms"), (100_000_001, None));
        assert_eq!(parsed("span >= 1.5 s"), (1_500_000_000, None));
        assert_eq!(parsed("span>=20us&&span>=10us"), (20_000, None));
        let rest = |text: &str| Some(text.to_owned());
        assert_eq!(
            parsed("a == \"x && span > 1s\" && span >= 1ns && (b || c)"),
            (1, rest("a == \"x && span > 1s\" && (b || c)"))
        );
        assert_eq!(
            parsed("span >= 2h && a > 1"),
            (7_200_000_000_000, rest("a > 1"))
        );
    }

    #[test]
    fn parts_of_the_time_are_taken_out_of_filters() {
        let text = "span.blocked > 10ms && a == 1 && span.oncpu>=5us && span >= 1ms";
        let filter = TimedFilter::parse(text).unwrap();
        let mut parts = LeastParts::default();
        parts.ask(TimePart::Blocked, 10_000_001);
        parts.ask(TimePart::OnCpu, 5000);
        let expected = TimedFilter {
            least: 1_000_000,
            parts,
            rest: Some("a == 1".to_owned()),
        };
        assert_eq!(filter, expected);
        let refused = TimedFilter::parse("span.iowait < 1ms").unwrap_err();
        assert!(refused.message.contains("expected span > TIME"));
        assert_eq!(refused.at, 12);
    }

    #[test]
    fn other_filters_stay_as_they_are() {
        for text in [
            "span.else > 100ms",
            "span.blocked > 100",
            "a > 5 || b",
            "span > 100",
            "spans >= 100ms",
            "span == 5 && (a",
            "",
        ] {
            assert_eq!(parsed(text), (0, Some(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn durations_that_cannot_be_limits_are_refused() {
        for (text, at, expected) in [
            ("span < 100ms", 5, "expected span > TIME"),
            ("a && span == 1s", 10, "expected span > TIME"),
            ("span > 1s || a", 0, "with &&"),
            ("a && (span > 1s)", 6, "with &&"),
            ("!span > 1s", 1, "with &&"),
            ("span > 1s + 2", 0, "with &&"),
        ] {
            let error = TimedFilter::parse(text).unwrap_err();
            assert!(error.message.contains(expected), "{text}: {error}");
            assert_eq!(error.at, at, "{text}");
        }
    }
}
