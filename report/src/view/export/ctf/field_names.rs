//! Names of the fields of a structure.

/// Names that are taken.
#[derive(Debug)]
pub(crate) struct FieldNames {
    /// What a letter becomes in a name.
    letter: fn(char) -> char,
    taken: Vec<String>,
}

impl FieldNames {
    /// No names yet.
    pub(crate) const fn new(letter: fn(char) -> char) -> Self {
        Self {
            letter,
            taken: Vec::new(),
        }
    }

    /// The name of a field; one that is taken gets a number.
    pub(crate) fn name(&mut self, name: &str) -> String {
        let name: String = name.chars().map(self.letter).collect();
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
    fn names_differ() {
        let mut names = FieldNames::new(|letter| if letter == '.' { '_' } else { letter });
        for (name, expected) in [
            ("a.b", "a_b"),
            ("a-b", "a-b"),
            ("a_b", "a_b_2"),
            ("a_b_2", "a_b_2_2"),
            ("", ""),
            ("", "_2"),
            ("ü\"};", "ü\"};"),
        ] {
            assert_eq!(names.name(name), expected);
        }
    }
}
