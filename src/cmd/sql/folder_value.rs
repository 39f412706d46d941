//! Values in names of folders.

/// The value in the name of a folder, which the engine reads so, too; `None` if it is not UTF-8.
pub(super) fn unescaped(value: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = value;
    while let Some((plain, after)) = rest.split_once('%') {
        bytes.extend_from_slice(plain.as_bytes());
        bytes.push(u8::from_str_radix(after.get(..2)?, 16).ok()?);
        rest = after.get(2..)?;
    }
    bytes.extend_from_slice(rest.as_bytes());
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_folders() {
        for (value, expected) in [
            ("work__start", Some("work__start")),
            ("a%2Fb%20c%C3%B6", Some("a/b cö")),
            ("%C3", None),
            ("a%2", None),
            ("%zz", None),
        ] {
            assert_eq!(unescaped(value).as_deref(), expected, "{value}");
        }
    }
}
