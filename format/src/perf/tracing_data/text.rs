//! The text of tracefs' `format` files.
//!
//! ```text
//! name: loop1
//! ID: 2326
//! format:
//!     field:unsigned short common_type;    offset:0;    size:2;    signed:0;
//!     …
//!     field:s32 arg1;    offset:16;    size:4;    signed:1;
//!
//! print fmt: "(%lx) arg1=%d", REC->__probe_ip, REC->arg1
//! ```

use super::{TracepointField, TracepointFormat};

/// Parses the text of a format; `None` without a name and an id that fits into `common_type`. Lines that cannot be parsed
/// are skipped.
pub(super) fn tracepoint(system: &str, text: &[u8]) -> Option<TracepointFormat> {
    let text = String::from_utf8_lossy(text);
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
    let (print, print_arguments) = value("print fmt:").map(print).unwrap_or_default();
    Some(TracepointFormat {
        system: system.to_owned(),
        name: value("name:")?.trim().to_owned(),
        id: value("ID:")?.trim().parse().ok()?,
        fields: text
            .lines()
            .filter_map(field)
            .filter(|field| !field.name().starts_with("common_"))
            .collect(),
        print,
        print_arguments,
    })
}

/// `field:TYPE NAME; offset:N; size:N; signed:N;`
fn field(line: &str) -> Option<TracepointField> {
    let mut parts = line.trim().strip_prefix("field:")?.split(';');
    let declaration = parts.next()?.trim().to_owned();
    let mut field = TracepointField {
        declaration,
        offset: 0,
        size: 0,
        signed: false,
    };
    for part in parts {
        let Some((key, value)) = part.trim().split_once(':') else {
            continue;
        };
        match key {
            "offset" => field.offset = value.parse().ok()?,
            "size" => field.size = value.parse().ok()?,
            "signed" => field.signed = value.trim() != "0",
            _ => {}
        }
    }
    Some(field)
}

/// Splits `print fmt` into the format string and its arguments, at commas outside brackets and strings.
fn print(text: &str) -> (String, Vec<String>) {
    let mut parts = Vec::new();
    let mut part = String::new();
    let (mut depth, mut quoted, mut escaped) = (0_u32, false, false);
    for letter in text.chars() {
        match letter {
            '"' if !escaped => quoted = !quoted,
            '(' | '[' | '{' if !quoted => depth += 1,
            ')' | ']' | '}' if !quoted => depth = depth.saturating_sub(1),
            ',' if !quoted && depth == 0 => {
                parts.push(std::mem::take(&mut part).trim().to_owned());
                continue;
            }
            _ => {}
        }
        escaped = letter == '\\' && !escaped;
        part.push(letter);
    }
    parts.push(part.trim().to_owned());
    let format = parts.remove(0);
    (unquoted(&format).to_owned(), parts)
}

/// The text between the quotes of a C string. The string may end with an escaped quote, so one quote is removed at each end.
fn unquoted(string: &str) -> &str {
    let string = string.strip_prefix('"').unwrap_or(string);
    string.strip_suffix('"').unwrap_or(string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_behind_the_common_ones_are_taken() {
        let text = "name: sched_switch\nID: 316\nformat:\n\
            \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
            \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
            \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
            \tnonsense\n\tfield:odd;\toffset:x;\n\
            \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\n\
            print fmt: \"a, \\\" %s (%d)\", REC->a, f(b, \",\"), { 1, 2 }\n";
        let found = tracepoint("sched", text.as_bytes()).unwrap();
        assert_eq!(
            (&*found.system, &*found.name, found.id),
            ("sched", "sched_switch", 316)
        );
        let fields: Vec<_> = found
            .fields
            .iter()
            .map(|field| (&*field.declaration, field.offset, field.size, field.signed))
            .collect();
        let expected = [
            ("char prev_comm[16]", 8, 16, false),
            ("long prev_state", 32, 8, true),
        ];
        assert_eq!(fields, expected);
        assert_eq!(found.print, "a, \\\" %s (%d)");
        assert_eq!(found.print_arguments, ["REC->a", "f(b, \",\")", "{ 1, 2 }"]);
    }

    #[test]
    fn an_escaped_quote_at_the_end_stays() {
        for (print, expected) in [
            (r#""name=\"%s\"", REC->name"#, r#"name=\"%s\""#),
            (r#""\"%s\"""#, r#"\"%s\""#),
            (r#""""#, ""),
            (r#""%s\\", REC->name"#, r#"%s\\"#),
        ] {
            let text = format!("name: x\nID: 5\nprint fmt: {print}\n");
            let found = tracepoint("s", text.as_bytes()).unwrap();
            assert_eq!(found.print, expected);
        }
    }

    #[test]
    fn without_name_or_a_sensible_id_there_is_none() {
        for text in [
            "",
            "name: x\n",
            "ID: 5\n",
            "name: x\nID: 65536\n",
            "name: x\nID: -1\n",
        ] {
            assert_eq!(tracepoint("s", text.as_bytes()), None, "{text:?}");
        }
        assert!(tracepoint("s", b"name: x\nID: 65535").is_some());
    }
}
