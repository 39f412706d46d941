//! Names of the fields of a structure.

/// Names that are taken.
#[derive(Debug, Default)]
pub(crate) struct FieldNames(Vec<String>);

impl FieldNames {
    /// The name of a field: what no name can have becomes an underscore, and one that is taken gets a number.
    pub(crate) fn name(&mut self, name: &str) -> String {
        let plain = |letter: char| match letter.is_ascii_alphanumeric() {
            true => letter,
            false => '_',
        };
        let name: String = name.chars().map(plain).collect();
        let mut free = name.clone();
        for number in 2.. {
            if !self.0.contains(&free) {
                break;
            }
            free = format!("{name}_{number}");
        }
        self.0.push(free.clone());
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_names_and_differ() {
        let mut names = FieldNames::default();
        for (name, expected) in [
            ("event", "event"),
            ("a.b", "a_b"),
            ("a-b", "a_b_2"),
            ("_x", "_x"),
            ("ü\"};", "____"),
            ("", ""),
            ("", "_2"),
            ("a_b", "a_b_3"),
            ("a_b_2", "a_b_2_2"),
        ] {
            assert_eq!(names.name(name), expected);
        }
    }
}
