//! Names of columns, and of folders: `KEY=VALUE`, as Hive has them.

use foldhash::{HashMap, HashSet};
use sha2::{Digest, Sha256};

use crate::parquet::argument::SUFFIXES;
use crate::parquet::column::ColumnSpec;

/// Characters of a name, at most.
const MAX_CHARACTERS: usize = 120;

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
    /// The names that columns have besides these.
    pub(crate) fn new(fixed: &[ColumnSpec]) -> Self {
        let fixed = fixed.iter().map(|spec| &*spec.name);
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

/// Bytes of an escaped value, at most: names of files have 255, with the key.
const MAX_VALUE_BYTES: usize = 200;
/// How much of a longer value is kept.
const KEPT: usize = 160;
/// Stands for no value.
const NO_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

/// The name of a folder. All but ASCII letters, digits, `_`, `-` and `.` is escaped as `%XX`: values come from traced programs. So is the
/// first letter of what engines take for no value: [`NO_VALUE`], and `NULL` in any case (DuckDB).
pub(crate) fn folder_name(key: &str, value: Option<&str>) -> String {
    let Some(value) = value.filter(|value| !value.is_empty()) else {
        return format!("{key}={NO_VALUE}");
    };
    let mut escaped = String::new();
    // Where it can be cut without cutting an escape.
    let mut boundary = 0;
    let means_nothing = value == NO_VALUE || value.eq_ignore_ascii_case("NULL");
    for (at, &byte) in value.as_bytes().iter().enumerate() {
        match byte {
            _ if at == 0 && means_nothing => escaped.push_str(&format!("%{byte:02X}")),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' => {
                escaped.push(byte.into());
            }
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
        if escaped.len() <= KEPT {
            boundary = escaped.len();
        }
        if escaped.len() > MAX_VALUE_BYTES {
            escaped.truncate(boundary);
            let hash = Sha256::digest(value);
            let hash = hash.iter().take(8).map(|byte| format!("{byte:02x}"));
            return format!("{key}={escaped}_{}", hash.collect::<String>());
        }
    }
    format!("{key}={escaped}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset_table::ColumnType;

    #[test]
    fn no_two_columns_have_a_name() {
        let mut names =
            ColumnNames::new(&["pid", "cpu"].map(|name| ColumnSpec::new(name, ColumnType::Int64)));
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

    #[test]
    fn values_cannot_leave_their_folder() {
        let name = |value| folder_name("probe", Some(value));
        assert_eq!(name("work__start"), "probe=work__start");
        assert_eq!(name("../../etc/a b"), "probe=..%2F..%2Fetc%2Fa%20b");
        assert_eq!(name("ö\n\0="), "probe=%C3%B6%0A%00%3D");
        assert_eq!(name(""), "probe=__HIVE_DEFAULT_PARTITION__");
        assert_eq!(folder_name("host", None), "host=__HIVE_DEFAULT_PARTITION__");
        assert_eq!(name(NO_VALUE), "probe=%5F_HIVE_DEFAULT_PARTITION__");
        assert_eq!(name("Null"), "probe=%4Eull");
        let [long, longer] = [1000, 1001].map(|count| "/".repeat(count));
        assert!(name(&long).len() < 200, "{}", name(&long));
        assert_ne!(name(&long), name(&longer));
    }
}
