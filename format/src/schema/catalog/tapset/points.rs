//! Parses probe points: `ALIAS = process("…").provider("…").mark("…"), …`.

use crate::lexer::{Token, TokenKind};

/// A probe point.
#[derive(Debug, Default)]
pub(super) struct Point {
    /// Offset in the text, bytes.
    pub(super) at: usize,
    process: Option<String>,
    pub(super) provider: Option<String>,
    pub(super) mark: Option<String>,
}

impl Point {
    /// The program's file name, without `lib` and what follows a dot.
    pub(super) fn program(&self) -> Option<String> {
        let file = self.process.as_deref()?.rsplit('/').next()?;
        let stem = file.split('.').next().unwrap_or(file);
        let stem = if file.contains(".so") {
            stem.strip_prefix("lib").unwrap_or(stem)
        } else {
            stem
        };
        crate::schema::words::is_name(stem).then(|| stem.to_owned())
    }
}

/// Parses the alias, if there is one, and the points.
pub(super) fn parse(head: &[Token<'_>]) -> (Option<String>, Vec<Point>) {
    let equals = head
        .iter()
        .position(|token| matches!(token.kind, TokenKind::Mark("=")));
    let (alias, rest) = match equals {
        Some(at) => {
            let (alias, rest) = head.split_at(at);
            (Some(alias), rest.get(1..).unwrap_or_default())
        }
        None => (None, head),
    };
    let alias = alias.map(|words| {
        let words = words.iter().map(|token| match token.kind {
            TokenKind::Name(word) | TokenKind::Mark(word) | TokenKind::Number(word) => word,
            _ => "",
        });
        // `+=` adds to an alias.
        words.collect::<String>().trim_end_matches('+').to_owned()
    });
    // Points are separated by commas, and by the branches of `%( … %? … %: … %)`, all of which are read.
    let points = rest.split(|token| matches!(token.kind, TokenKind::Mark("," | "?" | ":")));
    let points = points.filter(|words| words.windows(2).any(calls));
    (alias, points.map(point).collect())
}

/// Whether a name precedes a bracket, as in a point; a condition has none.
fn calls(words: &[Token<'_>]) -> bool {
    matches!(words, [name, open] if matches!(name.kind, TokenKind::Name(_)) && open.kind == TokenKind::Mark("("))
}

fn point(words: &[Token<'_>]) -> Point {
    let mut point = Point {
        at: words.first().map_or(0, |token| token.at),
        ..Point::default()
    };
    for window in words.windows(3) {
        let [name, open, value] = window else {
            continue;
        };
        let (TokenKind::Name(name), TokenKind::Mark("("), TokenKind::Text(value)) =
            (name.kind, open.kind, value.kind)
        else {
            continue;
        };
        let value = value.to_owned();
        match name {
            "process" => point.process = Some(value),
            // In a point of a library, this is the program.
            "library" => point.process = Some(value),
            "provider" if !value.contains(['*', '?', '[']) => point.provider = Some(value),
            "mark" if !value.contains(['*', '?', '[', '{', '\\']) => point.mark = Some(value),
            _ => {}
        }
    }
    point.provider = point.provider.filter(|provider| !provider.is_empty());
    point.mark = point.mark.filter(|mark| !mark.is_empty());
    point
}
