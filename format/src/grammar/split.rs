//! Splitting an argument string into operands.
//!
//! Blanks separate operands, but can also occur inside them: in brackets (`[sp, 132]`), in parentheses
//! (`($8 - $9)`), around the `@` and before the parenthesis of hand-written ones (`-4 @ -20 ( %rbp )`).

/// Maximum length of a bracket with blanks, bytes, which limits the work for a hostile string.
const BRACKET: usize = 256;

/// The operands' texts, without blanks around them.
pub(super) fn arguments(args: &str) -> impl Iterator<Item = &str> {
    let mut rest = args;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        if rest.is_empty() {
            return None;
        }
        let (argument, after) = rest.split_at(end(rest));
        rest = after;
        Some(argument.trim_end())
    })
}

/// The end of the first operand of `text`, which does not start with a blank.
///
/// If a bracket is not closed, the operand ends at
/// the first blank in the bracket.
fn end(text: &str) -> usize {
    let mut depth = 0_u32;
    let mut opened = 0;
    let mut blank_inside = None;
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        if byte.is_ascii_whitespace() {
            let (before, after) = text.split_at(at);
            let after = after.trim_start();
            if depth == 0 {
                if !continues(before, after) {
                    return at;
                }
            } else if at - opened > BRACKET || begins_with_size(after) {
                return blank_inside.unwrap_or(at);
            } else {
                blank_inside.get_or_insert(at);
            }
            at = text.len() - after.len();
            continue;
        }
        match byte {
            b'(' | b'[' => {
                if depth == 0 {
                    opened = at;
                    blank_inside = None;
                }
                depth += 1;
            }
            b')' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    blank_inside.filter(|_| depth > 0).unwrap_or(text.len())
}

/// Whether the operand `before` continues after a blank.
fn continues(before: &str, after: &str) -> bool {
    if begins_with_size(after) {
        return false;
    }
    let Some((size, body)) = before.split_once('@') else {
        return after.starts_with('@') && is_size(before) || is_waiting(before, after);
    };
    is_size(size.trim_end()) && body.is_empty() || is_waiting(body.trim_start(), after)
}

/// Whether a body is a number, and the text after it can be its base.
fn is_waiting(body: &str, after: &str) -> bool {
    let digits = body.strip_prefix(['-', '+']).unwrap_or(body);
    after.starts_with('(')
        && digits.starts_with(|first: char| first.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Whether a text starts with a size and `@`, as only an operand does, also with a broken one (`4x@`, `+4@`): an operand without a body
/// does not take the next one.
fn begins_with_size(text: &str) -> bool {
    let word = text.trim_start_matches(|char: char| !char.is_whitespace() && char != '@');
    let size = &text[..text.len() - word.len()];
    word.trim_start().starts_with('@') && (is_size(size) || is_broken_size(size))
}

/// Whether a text before an `@` is no size, but no symbol either, because that does not begin with a digit.
fn is_broken_size(text: &str) -> bool {
    let digits = text.trim_start_matches(['-', '+']);
    digits.starts_with(|first: char| first.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Whether a text is a size, well-formed or not.
fn is_size(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('f') && text.chars().all(is_size_char)
}

fn is_size_char(char: char) -> bool {
    char.is_ascii_digit() || matches!(char, '-' | 'f')
}
