//! Names of folders: `KEY=VALUE`, as Hive has them.

use sha2::{Digest, Sha256};

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
