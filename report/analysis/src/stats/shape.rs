//! The shape of a string: what is left of a statement or a path when its constants and comments are taken out.

use super::shape_lists::{fold_lists, is_name};

/// Minimum length of a hexadecimal number that has no prefix, digits.
const MIN_HEXADECIMAL: usize = 8;
/// Lengths of the parts of a UUID, digits.
const UUID: [usize; 5] = [8, 4, 4, 4, 12];

/// A string with `?` for each constant, without comments, and with one blank for several. Constants are numbers, hexadecimal ones of 8 and more
/// digits, UUIDs, strings in single quotes (`E'…'`, `X'…'`) and in dollars (`$$…$$`). Numbers that belong to a name (`t1`, `$1`) stay; a sign
/// that directly precedes a number and follows no operand goes with it. Lists of constants have one shape, whatever their length.
#[must_use]
pub fn shape(string: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(string.len());
    let mut at = 0;
    // From a place on from which no comment ends, none does.
    let mut may_end = true;
    while let Some(&byte) = string.get(at) {
        let rest = &string[at..];
        if let Some(comment) = comment(rest, out.last().copied(), &mut may_end) {
            put_blank(&mut out);
            at += comment;
            continue;
        }
        if let Some(constant) = constant(rest, &out) {
            out.push(b'?');
            at += constant;
            continue;
        }
        if byte.is_ascii_whitespace() {
            put_blank(&mut out);
        } else {
            out.push(byte);
        }
        at += 1;
    }
    fold_lists(out.trim_ascii_end())
}

/// Appends a blank, unless there is one, or nothing.
fn put_blank(out: &mut Vec<u8>) {
    if out.last().is_some_and(|last| *last != b' ') {
        out.push(b' ');
    }
}

/// Length of the comment that begins here. Paths have `--` and `/*` too, after other bytes, and before `/`. Comments that a server executes
/// (`/*!`, `/*+`) are text.
fn comment(rest: &[u8], last: Option<u8>, may_end: &mut bool) -> Option<usize> {
    let follows = last.is_none_or(|last| b" (),;?".contains(&last));
    match rest {
        [b'-', b'-', ..] if follows => {
            let line = rest.iter().position(|byte| *byte == b'\n');
            Some(line.unwrap_or(rest.len()))
        }
        [b'/', b'*', b'/' | b'!' | b'+', ..] => None,
        [b'/', b'*', ..] => {
            let end = may_end.then(|| after_comment(rest)).flatten();
            *may_end = end.is_some();
            end.or(follows.then_some(rest.len()))
        }
        _ => None,
    }
}

/// Where the comment ends that begins here: comments of PostgreSQL nest, those of other servers do not.
fn after_comment(rest: &[u8]) -> Option<usize> {
    let mut open = 0_usize;
    let mut first = None;
    let mut at = 0;
    while let Some(pair) = rest.get(at..at + 2) {
        match pair {
            b"/*" => open += 1,
            b"*/" => {
                open -= 1;
                first = first.or(Some(at + 2));
                if open == 0 {
                    return Some(at + 2);
                }
            }
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
    }
    first
}

/// Length of the constant that begins here.
fn constant(rest: &[u8], before: &[u8]) -> Option<usize> {
    let &[byte, ..] = rest else { return None };
    let next = |at: usize| rest.get(at).copied().unwrap_or(0);
    if byte == b'\'' {
        return Some(after_quote(rest, 1, false));
    }
    if before.last().is_some_and(|&last| is_name(last)) {
        return None;
    }
    match byte {
        b'e' | b'E' | b'b' | b'B' | b'x' | b'X' | b'n' | b'N' if next(1) == b'\'' => {
            Some(after_quote(rest, 2, byte.eq_ignore_ascii_case(&b'e')))
        }
        b'u' | b'U' if next(1) == b'&' && next(2) == b'\'' => Some(after_quote(rest, 3, false)),
        b'$' => dollar_quoted(rest),
        b'-' | b'+' if is_sign(before) => {
            let number = next(1).is_ascii_digit() || next(1) == b'.' && next(2).is_ascii_digit();
            number.then(|| after_number(rest, 1))
        }
        b'.' if next(1).is_ascii_digit() => Some(after_number(rest, 0)),
        b'0'..=b'9' => Some(uuid(rest).unwrap_or_else(|| after_number(rest, 0))),
        _ => uuid(rest).or_else(|| hexadecimal(rest)),
    }
}

/// Whether what follows is in the place of an operand.
fn is_sign(before: &[u8]) -> bool {
    let last = before.iter().rev().find(|byte| **byte != b' ');
    last.is_none_or(|last| b"(,=<>+-*/%|[".contains(last))
}

/// Where a quoted string ends that begins here. A quote that is there twice is one of the string.
fn after_quote(string: &[u8], mut at: usize, backslashes: bool) -> usize {
    while let Some(&byte) = string.get(at) {
        let doubled = string.get(at + 1) == Some(&b'\'');
        match byte {
            b'\\' if backslashes => at += 2,
            b'\'' if doubled => at += 2,
            b'\'' => return at + 1,
            _ => at += 1,
        }
    }
    string.len()
}

/// Length of a string between two equal `$tag$`; what is cut off ends with the text.
fn dollar_quoted(rest: &[u8]) -> Option<usize> {
    let tag = 1 + rest.iter().skip(1).position(|byte| *byte == b'$')?;
    let (delimiter, text) = rest.split_at(tag + 1);
    let is_tag = |(at, byte): (usize, &u8)| is_name(*byte) && !(at == 0 && byte.is_ascii_digit());
    let name = &delimiter[1..tag];
    if !name.iter().enumerate().all(is_tag) {
        return None;
    }
    let end = memchr::memmem::find(text, delimiter);
    Some(end.map_or(rest.len(), |end| 2 * delimiter.len() + end))
}

/// Number of hexadecimal digits at the beginning.
fn hexadecimal_digits(text: &[u8]) -> usize {
    let end = text.iter().position(|byte| !byte.is_ascii_hexdigit());
    end.unwrap_or(text.len())
}

/// Length of the UUID that begins here.
fn uuid(rest: &[u8]) -> Option<usize> {
    let mut at = 0;
    for (part, digits) in UUID.into_iter().enumerate() {
        if part != 0 {
            (rest.get(at) == Some(&b'-')).then_some(())?;
            at += 1;
        }
        (hexadecimal_digits(&rest[at..]) == digits).then_some(())?;
        at += digits;
    }
    ends_word(rest, at).then_some(at)
}

/// Length of a hexadecimal number without a prefix that begins here.
fn hexadecimal(rest: &[u8]) -> Option<usize> {
    let digits = hexadecimal_digits(rest);
    (digits >= MIN_HEXADECIMAL && ends_word(rest, digits)).then_some(digits)
}

fn ends_word(text: &[u8], at: usize) -> bool {
    text.get(at).is_none_or(|byte| !is_name(*byte))
}

/// Where a number ends that begins here: digits, also hexadecimal ones and in groups (`1_000`), a fraction, an exponent.
fn after_number(string: &[u8], from: usize) -> usize {
    let rest = string.get(from..).unwrap_or_default();
    let digits = rest.iter().enumerate().skip(1).position(|(at, &byte)| {
        let signed = matches!(byte, b'+' | b'-') && matches!(rest[at - 1], b'e' | b'E');
        let hexadecimal = rest.get(1).is_some_and(|x| matches!(x, b'x' | b'X'));
        let groups = byte == b'_' && rest.get(at + 1).is_some_and(u8::is_ascii_hexdigit);
        !(byte.is_ascii_alphanumeric() || byte == b'.' || groups || signed && !hexadecimal)
    });
    digits.map_or(string.len(), |digits| from + 1 + digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_quoted_strings_are_taken_out() {
        for (string, expected) in [
            (
                "UPDATE t1 SET b = b + -2935 WHERE tid = 9;",
                "UPDATE t1 SET b = b + ? WHERE tid = ?;",
            ),
            (
                "SELECT 'it''s', $1, 1.5e-3,-7 -8, 0xff",
                "SELECT ?, $1, ?,? -?, ?",
            ),
            ("  a\n\tb", "a b"),
            ("/api/users/123/x?id=9", "/api/users/?/x?id=?"),
            ("'cut off", "?"),
            ("größe2", "größe2"),
            ("0x1f-2", "?-?"),
            ("3 - 4", "? - ?"),
            ("", ""),
            ("1", "?"),
            (".25, -.5, 1_000, 0xdead_beef", "?, ?, ?, ?"),
            (
                "x = E'it\\'s', N'a', U&'b', X'1F', te'x'",
                "x = ?, ?, ?, ?, te?",
            ),
            ("$$a 'b' 1$$, $x$ $$ $x$, $1$2", "?, ?, $1$2"),
            ("$f$ cut off 5", "?"),
            ("u = 6ba7b810-9dad-11d1-80b4-00C04FD430C8", "u = ?"),
            ("/x/6ba7b810-9dad-11d1-80b4-00c04fd430c8/y", "/x/?/y"),
            (
                "/o/deadbeef/a1b2c3d4e5/t_deadbeef/deadbeefs/defaced",
                "/o/?/?/t_deadbeef/deadbeefs/defaced",
            ),
            ("a -- b 'c\nd --", "a d"),
            ("/*a*/ SELECT /* x /* 1 */ 'y */ 1 /* cut", "SELECT ?"),
            ("SELECT /* x /* y */ 1", "SELECT ?"),
            ("/a--b/*/c/*", "/a--b/*/c/*"),
            ("SELECT /*+ Leading(a) */ 1", "SELECT /*+ Leading(a) */ ?"),
        ] {
            let found = shape(string.as_bytes());
            assert_eq!(String::from_utf8_lossy(&found), expected, "{string}");
        }
    }

    #[test]
    fn lists_of_any_length_have_one_shape() {
        for (strings, expected) in [
            (
                &[
                    "b IN (1)",
                    "b IN ( 1,2 )",
                    "b IN ($1, $2, $3)",
                    "b IN (?, null)",
                    "b IN('a',TRUE)",
                ][..],
                "b IN (?…)",
            ),
            (&["b IN (1, 2", "b IN (1, ", "b IN (1"], "b IN (?…"),
            (
                &[
                    "INSERT INTO t VALUES (1,'x'),(2,'y')",
                    "INSERT INTO t VALUES(3, 'z') , (DEFAULT, NULL)",
                ],
                "INSERT INTO t VALUES (?…)…",
            ),
            (
                &[
                    "VALUES (1, now(), 2)",
                    "VALUES (1, now(), 2), (3, now(), 4) RETURNING x",
                ][..1],
                "VALUES (?, now(), ?…)…",
            ),
            (
                &["(a, b) in ((1, 2), (3, 4))", "(a, b) in ((5, 6))"],
                "(a, b) in ((?…)…)",
            ),
            (
                &[
                    "x IN (SELECT y FROM z WHERE q in (1, 2))",
                    "x IN (SELECT y FROM z WHERE q in (3))",
                ],
                "x IN (SELECT y FROM z WHERE q in (?…))",
            ),
            (
                &["= ANY(ARRAY[1, 2]::int[])", "= ANY(ARRAY[3]::int[])"],
                "= ANY(ARRAY[?…]::int[])",
            ),
            (&["f(1, 2)"], "f(?, ?)"),
            (&["UPDATE a = VALUES(a)"], "UPDATE a = VALUES (a)"),
            (&["begin (1), main (2)"], "begin (?), main (?)"),
            (&["IN", "IN ", "in"][..1], "IN"),
            (&["IN ("], "IN ("),
        ] {
            for string in strings {
                let found = shape(string.as_bytes());
                assert_eq!(String::from_utf8_lossy(&found), expected, "{string}");
            }
        }
    }

    #[test]
    fn brackets_without_end_take_no_time() {
        for pair in ["IN (", "VALUES ((", "((", "IN ((1),", "ARRAY[IN ("] {
            let text = pair.repeat(50_000);
            assert!(!shape(text.as_bytes()).is_empty());
        }
    }

    #[test]
    fn comments_without_end_and_long_words_take_no_time() {
        for text in ["x/*", "x/**", "x/*/y/*", "xyz"] {
            let text = text.repeat(1_000_000);
            assert_eq!(shape(text.as_bytes()), text.as_bytes());
        }
    }
}
