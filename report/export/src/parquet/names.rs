//! Names of columns.

use foldhash::{HashMap, HashSet};

/// Characters of a name, at most.
const MAX_CHARACTERS: usize = 120;

/// The columns that a column of an argument may have next to it.
pub(crate) const SUFFIXES: [&str; 7] = [
    "",
    "__missing",
    "__cut",
    "__bytes",
    "__text",
    "__number",
    "__demangled",
];

/// What is a column of all tables by the names of folders.
const FOLDERS: [&str; 6] = ["table", "host", "date", "provider", "probe", "span"];

/// The names of columns of a table: engines do not distinguish cases.
#[derive(Debug, Default)]
pub(crate) struct ColumnNames {
    /// In lower case.
    taken: HashSet<String>,
    /// Of each name that was taken, the number that the next one gets.
    numbers: HashMap<String, usize>,
}

impl ColumnNames {
    pub(crate) fn new<'n>(fixed: impl Iterator<Item = &'n str>) -> Self {
        let taken = fixed.chain(FOLDERS).map(str::to_lowercase);
        Self {
            taken: taken.collect(),
            numbers: HashMap::default(),
        }
    }

    /// A name for the columns of an argument: `NAME`, `arg_NAME` if a column of all probes is called so, `NAME_2` if another argument is.
    pub(crate) fn take(&mut self, argument: &str) -> String {
        let plain = plain(argument);
        let mut name = plain.clone();
        if !self.is_free(&name) {
            name = format!("arg_{plain}");
        }
        while !self.is_free(&name) {
            let number = self.numbers.entry(plain.to_lowercase()).or_insert(2);
            name = format!("{plain}_{number}");
            *number += 1;
        }
        for suffix in SUFFIXES {
            self.taken.insert(with(&name, suffix));
        }
        name
    }

    fn is_free(&self, name: &str) -> bool {
        let mut all = SUFFIXES.iter().map(|suffix| with(name, suffix));
        all.all(|name| !self.taken.contains(&name))
    }
}

fn with(name: &str, suffix: &str) -> String {
    format!("{name}{suffix}").to_lowercase()
}

/// A name of letters, digits and `_`.
fn plain(name: &str) -> String {
    let name = name.chars().take(MAX_CHARACTERS);
    let plain: String = name
        .map(|char| if char.is_alphanumeric() { char } else { '_' })
        .collect();
    match plain.is_empty() {
        true => "_".to_owned(),
        false => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_columns_have_a_name() {
        let mut names = ColumnNames::new(["pid", "cpu"].into_iter());
        let mut take = |name| names.take(name);
        assert_eq!(take("rows"), "rows");
        assert_eq!(take("PID"), "arg_PID");
        assert_eq!(take("pid"), "pid_2");
        assert_eq!(take("Rows"), "arg_Rows");
        assert_eq!(take("rows"), "rows_2");
        assert_eq!(take("rows__missing"), "rows__missing_2");
        assert_eq!(take("a.b[0]\n"), "a_b_0__");
        assert_eq!(take(""), "_");
        assert_eq!(take("host"), "arg_host");
    }
}
