//! Texts and names in TSDL, the language of the metadata.

use std::fmt::Write;

/// A text with its quotes.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            // Three octal digits: what follows may be one, too. A text cannot have a NUL.
            '\0' => quoted.push('\u{fffd}'),
            '\u{1}'..='\u{1f}' | '\u{7f}' => {
                let _ = write!(quoted, "\\{:03o}", u32::from(letter));
            }
            _ => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// Names of the fields of a structure.
#[derive(Debug, Default)]
pub(crate) struct FieldNames {
    taken: Vec<String>,
}

impl FieldNames {
    /// The name of a field: with an underscore before it, which readers drop, so that none is a reserved word. What no name can have becomes an
    /// underscore; a name that is taken gets a number.
    pub(crate) fn name(&mut self, name: &str) -> String {
        let letters = name.chars();
        let letters = letters.map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
        let name: String = std::iter::once('_').chain(letters).collect();
        let mut free = name.clone();
        for number in 2.. {
            if !self.taken.contains(&free) {
                break;
            }
            free = format!("{name}_{number}");
        }
        self.taken.push(free.clone());
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_where_they_should() {
        assert_eq!(quoted("a\"b\\c\n\x1b[7é"), "\"a\\\"b\\\\c\\n\\033[7é\"");
    }

    #[test]
    fn names_are_names_and_differ() {
        let mut names = FieldNames::default();
        for (name, expected) in [
            ("event", "_event"),
            ("a.b", "_a_b"),
            ("a-b", "_a_b_2"),
            ("_x", "__x"),
            ("ü\"};", "_____"),
            ("", "_"),
            ("a_b", "_a_b_3"),
        ] {
            assert_eq!(names.name(name), expected);
        }
    }
}
