//! Splitting an argument string into operands.
//!
//! Blanks separate operands, but they also stand inside them: in brackets (`[sp, 132]`), in parentheses
//! (`($8 - $9)`), around the `@` and before the parenthesis of hand-written ones (`-4 @ -20 ( %rbp )`).

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
fn end(text: &str) -> usize {
    let mut depth = 0_u32;
    let mut first_blank = None;
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            byte if byte.is_ascii_whitespace() => {
                let (before, behind) = text.split_at(at);
                let behind = behind.trim_start();
                if depth == 0 && !continues(before, behind) {
                    return at;
                }
                if depth > 0 && begins_with_size(behind) {
                    return at;
                }
                if depth > 0 {
                    first_blank.get_or_insert(at);
                }
                at = text.len() - behind.len();
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    // A bracket that is never closed does not swallow the operands behind it.
    match first_blank {
        Some(blank) if depth > 0 => blank,
        _ => text.len(),
    }
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

/// Whether a text begins with a size and its `@`, as only an operand does.
fn begins_with_size(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let behind = text.trim_start_matches(|digit: char| digit.is_ascii_digit());
    behind.len() < text.len() && behind.strip_prefix('f').unwrap_or(behind).starts_with('@')
}
