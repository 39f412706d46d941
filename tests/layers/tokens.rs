//! Rust source as the tokens that paths and `use` declarations consist of.

use std::collections::VecDeque;

use crate::common::test;

/// A token of a source outside comments and modules of tests.
pub(crate) struct Token {
    /// A word, `::`, a single character, or a literal with its quotes.
    pub(crate) text: String,
    /// Whether it is a text or a character.
    pub(crate) is_literal: bool,
}

/// The tokens of a source outside comments, texts and modules of tests: words, `::` and single characters.
pub(crate) fn tokens(source: &str) -> Vec<String> {
    let tokens = all_tokens(source).into_iter();
    let tokens = tokens.filter(|token| !token.is_literal);
    tokens.map(|token| token.text).collect()
}

/// The tokens of a source outside comments and modules of tests.
pub(crate) fn all_tokens(source: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let mut add = |length: usize, is_literal| {
            tokens.push(Token {
                text: rest[..length].to_owned(),
                is_literal,
            });
            length
        };
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = text(rest) {
            add(length, true)
        } else if is_word(first) {
            add(rest.find(|c| !is_word(c)).unwrap_or(rest.len()), false)
        } else if rest.starts_with("::") {
            add(2, false)
        } else if first.is_whitespace() {
            first.len_utf8()
        } else {
            add(first.len_utf8(), false)
        };
        rest = &rest[length..];
    }
    without_tests(tokens)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Length of a text or character at the start.
fn text(rest: &str) -> Option<usize> {
    let bare = rest.trim_start_matches(['b', 'r', 'c']);
    let prefix = rest.len() - bare.len();
    if prefix > 2 {
        return None;
    }
    let hashes = bare.len() - bare.trim_start_matches('#').len();
    if hashes > 0 && prefix > 0 && bare[hashes..].starts_with('"') {
        let end = format!("\"{}", "#".repeat(hashes));
        let inner = &bare[hashes + 1..];
        let length = inner.find(&end)?;
        return Some(prefix + hashes + 1 + length + end.len());
    }
    let quote = bare.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let mut chars = bare.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            _ if c == quote => return Some(prefix + at + 1),
            // A lifetime is no character.
            _ if quote == '\'' && at > 1 && !bare[1..].starts_with('\\') => return None,
            _ => {}
        }
    }
    None
}

/// Leaves out `#[cfg(test)] mod NAME { … }` and `#[cfg(test)] mod NAME;`, also with `pub`.
fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut rest = tokens.into_iter().collect::<VecDeque<_>>();
    while let Some(token) = rest.pop_front() {
        let following = rest.iter().map(|token| &*token.text);
        let is_mark =
            token.text == MARK[0] && following.clone().take(6).eq(MARK[1..].iter().copied());
        let of_item = following.skip(MARK.len() - 1).find(|word| *word != "pub");
        if !is_mark || of_item != Some("mod") {
            kept.push(token);
            continue;
        }
        let mut depth = 0;
        rest.drain(..MARK.len() - 1);
        while let Some(token) = rest.pop_front() {
            depth += i32::from(token.text == "{") - i32::from(token.text == "}");
            if depth == 0 && matches!(&*token.text, "}" | ";") {
                break;
            }
        }
    }
    kept
}

#[test]
fn texts_comments_and_tests_are_left_out() {
    let source = r##"
        use a::b; // use c::d;
        fn f<'x>(c: &'x str) -> char { /* use e; */ "use g::h"; r#"use " i"#; b'\''; 'k' }
        #[cfg(test)]
        mod tests { use l::m; fn n() {} }
        #[cfg(test)] pub mod made_up { use p::q; }
        use o;
    "##;
    let words: Vec<String> = tokens(source);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    assert!(words.starts_with(&["use", "a", "::", "b", ";", "fn", "f", "<", "'", "x"]));
    assert!(
        words.ends_with(&[";", ";", ";", "}", "use", "o", ";"]),
        "{words:?}"
    );
}
