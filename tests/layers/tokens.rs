//! Rust source as the tokens that paths and `use` declarations consist of.

use crate::common::test;

/// The tokens of a source outside comments, texts and modules of tests: words, `::` and single characters.
pub(crate) fn tokens(source: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = text(rest) {
            length
        } else if is_word(first) {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            tokens.push(rest[..end].to_owned());
            end
        } else if rest.starts_with("::") {
            tokens.push("::".to_owned());
            2
        } else {
            if !first.is_whitespace() {
                tokens.push(first.to_string());
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    without_tests(tokens)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Length of a text or character that stands first.
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

/// Leaves out `#[cfg(test)] mod NAME { … }` and `#[cfg(test)] mod NAME;`.
fn without_tests(tokens: Vec<String>) -> Vec<String> {
    const MARK: [&str; 8] = ["#", "[", "cfg", "(", "test", ")", "]", "mod"];
    let mut kept = Vec::new();
    let mut rest = &tokens[..];
    while let Some(token) = rest.first() {
        if rest.len() > MARK.len() && rest.iter().zip(MARK).all(|(one, mark)| one == mark) {
            rest = &rest[MARK.len() + 1..];
            let mut depth = 0;
            while let Some(token) = rest.first() {
                rest = &rest[1..];
                depth += i32::from(token == "{") - i32::from(token == "}");
                if depth == 0 && matches!(&**token, "}" | ";") {
                    break;
                }
            }
            continue;
        }
        kept.push(token.clone());
        rest = &rest[1..];
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
