//! The shape of a string: what is left of a statement or a path when its numbers and quoted strings are taken out.

/// A string with `?` for each number and each string in single quotes, and one blank for several. Numbers that belong to a name (`t1`, `$1`)
/// stay; a sign that directly precedes a number and follows no operand goes with it.
#[must_use]
pub fn shape(string: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(string.len());
    let mut at = 0;
    while let Some(&byte) = string.get(at) {
        let next = string.get(at + 1).copied().unwrap_or(0);
        let in_name = out.last().is_some_and(|&last| is_name(last));
        match byte {
            b'\'' => {
                at = after_quote(string, at + 1);
                out.push(b'?');
                continue;
            }
            b'0'..=b'9' if !in_name => {
                at = after_number(string, at);
                out.push(b'?');
                continue;
            }
            b'-' | b'+' if next.is_ascii_digit() && is_sign(&out) => {}
            _ if byte.is_ascii_whitespace() => {
                if out.last() != Some(&b' ') {
                    out.push(b' ');
                }
            }
            _ => out.push(byte),
        }
        at += 1;
    }
    out
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || !byte.is_ascii()
}

/// Whether what follows is in the place of an operand.
fn is_sign(before: &[u8]) -> bool {
    let last = before.iter().rev().find(|byte| **byte != b' ');
    last.is_none_or(|last| b"(,=<>+-*/%|".contains(last))
}

/// Where a quoted string ends that begins here. A quote that is there twice is one of the string.
fn after_quote(string: &[u8], mut at: usize) -> usize {
    while let Some(&byte) = string.get(at) {
        let doubled = string.get(at + 1) == Some(&b'\'');
        match byte {
            b'\'' if doubled => at += 2,
            b'\'' => return at + 1,
            _ => at += 1,
        }
    }
    at
}

/// Where a number ends that begins here: digits, also hexadecimal ones, a fraction, an exponent.
fn after_number(string: &[u8], from: usize) -> usize {
    let rest = string.get(from..).unwrap_or_default();
    let digits = rest.iter().enumerate().skip(1).position(|(at, &byte)| {
        let signed = matches!(byte, b'+' | b'-') && matches!(rest[at - 1], b'e' | b'E');
        let hexadecimal = rest.get(1).is_some_and(|x| matches!(x, b'x' | b'X'));
        !(byte.is_ascii_alphanumeric() || byte == b'.' || signed && !hexadecimal)
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
            ("  a\n\tb", " a b"),
            ("/api/users/123/x?id=9", "/api/users/?/x?id=?"),
            ("'cut off", "?"),
            ("größe2", "größe2"),
            ("0x1f-2", "?-?"),
            ("3 - 4", "? - ?"),
            ("", ""),
            ("1", "?"),
        ] {
            let found = shape(string.as_bytes());
            assert_eq!(String::from_utf8_lossy(&found), expected, "{string}");
        }
    }
}
