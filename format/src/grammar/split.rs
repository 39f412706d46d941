//! Splitting an argument string into operands.
//!
//! Blanks separate operands, but they also stand inside them: in brackets (`[sp, 132]`), in parentheses
//! (`($8 - $9)`), around the `@` and before the parenthesis of hand-written ones (`-4 @ -20 ( %rbp )`).

/// Bytes that a bracket with blanks in it may span: bounds what a hostile string can cost.
const BRACKET: usize = 256;

/// The operands' texts, without blanks around them.
pub(super) fn arguments(args: &str) -> impl Iterator<Item = &str> {
    let mut rest = args;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        if rest.is_empty() {
            return None;
        }
        let (argument, behind) = rest.split_at(end(rest));
        rest = behind;
        Some(argument.trim_end())
    })
}

/// Where the first operand of `text`, which begins with no blank, ends.
///
/// A bracket that is never closed does not swallow the operands behind it: there the operand ends at
/// the first blank in the bracket.
fn end(text: &str) -> usize {
    let mut depth = 0_u32;
    let mut blank_inside = None;
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            byte if byte.is_ascii_whitespace() => {
                let (before, behind) = text.split_at(at);
                let behind = behind.trim_start();
                if depth == 0 {
                    if !continues(before, behind) {
                        return at;
                    }
                } else if at > BRACKET || begins_with_size(behind) {
                    return blank_inside.unwrap_or(at);
                } else {
                    blank_inside.get_or_insert(at);
                }
                at = text.len() - behind.len();
                continue;
            }
            _ => {}
        }
        if depth == 0 {
            blank_inside = None;
        }
        at += 1;
    }
    blank_inside.unwrap_or(text.len())
}

/// Whether an operand goes on behind a blank.
fn continues(before: &str, behind: &str) -> bool {
    if before.ends_with('@') || behind.starts_with('@') {
        return true;
    }
    // A number alone is a displacement waiting for its base.
    let body = before.rsplit('@').next().unwrap_or(before).trim_start();
    let digits = body.strip_prefix(['-', '+']).unwrap_or(body);
    behind.starts_with('(')
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && digits.starts_with(|first: char| first.is_ascii_digit())
}

/// Whether a text begins with a size and its `@`, well-formed or not, as only an operand does.
fn begins_with_size(text: &str) -> bool {
    let behind = text.trim_start_matches(|size: char| size.is_ascii_digit() || "-f".contains(size));
    behind.starts_with('@') && !text.starts_with(['f', '@'])
}
