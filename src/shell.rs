//! Words of the command lines that messages suggest. They are pasted into shells, and names of files and events are other users' choice.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use usdtrec_format::escape::escape;

/// A word for a shell: as it is, in quotes, or in `$'…'` if it has characters that are not printed.
pub(crate) fn word(word: impl AsRef<OsStr>) -> String {
    let bytes = word.as_ref().as_encoded_bytes();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./:+@,=%".contains(byte);
    let is_expanded = bytes.starts_with(b"=");
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.is_empty() && !is_expanded && bytes.iter().all(is_plain) => {
            text.to_owned()
        }
        Ok(text) if escape(text) == text => format!("'{}'", text.replace('\'', "'\\''")),
        _ => escaped(bytes),
    }
}

/// The word of a path, which is never taken for an option.
pub(crate) fn path(path: &Path) -> String {
    let name = path.as_os_str();
    match name.as_encoded_bytes().first() {
        Some(b'-') => word(Path::new(".").join(path)),
        _ => word(name),
    }
}

/// The folders in which sudo looks for programs, as distributions set it up.
const FOLDERS_OF_SUDO: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// The beginning of a command line that runs this program as root.
pub(crate) fn sudo() -> String {
    let called = std::env::args_os().next().unwrap_or_default();
    let found = std::env::current_exe().ok();
    format!("sudo {}", word(program_of_sudo(&called, found.as_deref())))
}

/// The name of this program for sudo. It was found in the user's PATH if it was called by a name alone: it has its path then, unless sudo finds it, too.
fn program_of_sudo<'a>(called: &'a OsStr, found: Option<&'a Path>) -> &'a OsStr {
    let is_path = called.as_bytes().contains(&b'/');
    let is_elsewhere = |file: &&Path| {
        let folder = file.parent();
        !FOLDERS_OF_SUDO
            .iter()
            .any(|known| folder == Some(Path::new(known)))
    };
    match found.filter(is_elsewhere) {
        Some(file) if !is_path => file.as_os_str(),
        _ => called,
    }
}

/// The word for `-e` of the probes that a pattern matches in a file. A comma in a path has a backslash before it.
pub(crate) fn event(pattern: &str, file: &Path) -> String {
    let mut event = format!("{pattern}@").into_bytes();
    for &byte in file.as_os_str().as_bytes() {
        if byte == b',' {
            event.push(b'\\');
        }
        event.push(byte);
    }
    word(OsStr::from_bytes(&event))
}

/// In the form that shells have for bytes that are not printed. Octal numbers have an end: three digits.
fn escaped(bytes: &[u8]) -> String {
    let mut out = "$'".to_owned();
    let octal = |out: &mut String, bytes: &[u8]| {
        bytes
            .iter()
            .for_each(|byte| out.push_str(&format!("\\{byte:03o}")));
    };
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            let mut utf8 = [0; 4];
            let text = char.encode_utf8(&mut utf8);
            match char {
                '\'' | '\\' => out.extend(['\\', char]),
                _ if escape(text) == *text => out.push(char),
                _ => octal(&mut out, text.as_bytes()),
            }
        }
        octal(&mut out, chunk.invalid());
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn plain_words_stay_and_others_are_quoted() {
        for (text, expected) in [
            ("a/b.data", "a/b.data"),
            ("sdt_app:start@/bin/app", "sdt_app:start@/bin/app"),
            ("my file's", r"'my file'\''s'"),
            ("", "''"),
            ("=ls", "'=ls'"),
            ("~", "'~'"),
            ("a\n\u{202e}'7", r"$'a\012\342\200\256\'7'"),
        ] {
            assert_eq!(word(text), expected);
        }
        assert_eq!(path(Path::new("-rf")), "./-rf");
        let of_file = event("app:*", Path::new("/a,b"));
        assert_eq!(of_file, "'app:*@/a\\,b'");
    }

    #[test]
    fn sudo_gets_a_path_where_it_finds_no_program() {
        let program = |called: &'static str, found| {
            let found = Some(Path::new(found));
            program_of_sudo(OsStr::new(called), found)
        };
        let own = "/home/u/.cargo/bin/usdtrec";
        assert_eq!(program("usdtrec", own), own);
        assert_eq!(program("usdtrec", "/usr/bin/usdtrec"), "usdtrec");
        assert_eq!(program("./usdtrec", "/home/u/usdtrec"), "./usdtrec");
        assert_eq!(program_of_sudo(OsStr::new("usdtrec"), None), "usdtrec");
    }

    /// A shell reads the same bytes, and runs nothing.
    #[test]
    fn shells_read_the_same_words() {
        let shell = "/bin/bash";
        if !Path::new(shell).exists() {
            return;
        }
        for bytes in [
            &b"u;touch PWN;"[..],
            b"$(touch PWN)`touch PWN`",
            b"a b\tc\n'd\\012\"e",
            b"\xff1\xc3(\x1b[2J",
            b"!! *?[a-z]{1,2} #x & | < > ~root",
            b"1 && comm != \"a b\"",
        ] {
            let line = format!("printf %s {}", word(OsStr::from_bytes(bytes)));
            let read = Command::new(shell).args(["-c", &line]).output().unwrap();
            assert_eq!(read.stdout, bytes, "{line}");
        }
    }
}
