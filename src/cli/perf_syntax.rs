//! The words of the command line, where perf accepts what clap does not.

use std::ffi::OsString;

/// Rewrites what perf accepts and clap does not: `-zLEVEL` becomes `--compression-level=LEVEL`, and process ids separated by spaces,
/// as from `-p $(pidof node)`, become a comma list. The files of a trace after one `-i`, as a shell's glob gives them, have one each.
pub(super) fn normalized(args: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let mut ours = true;
    listed_ids(listed_files(args)).into_iter().map(move |arg| {
        ours &= arg != "--";
        match arg.to_str().and_then(|arg| arg.strip_prefix("-z")) {
            Some(level) if ours && level.starts_with(|first: char| first.is_ascii_digit()) => {
                format!("--compression-level={level}").into()
            }
            _ => arg,
        }
    })
}

/// Verbs that take nothing but options, so that each word after a file is one, too.
const WITHOUT_WORDS: [&str; 3] = ["export", "report", "script"];

/// Puts `-i` before each of several files after one `-i` or `--input`.
fn listed_files(args: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let (mut is_verb, mut is_ours) = (false, true);
    let mut before = OsString::new();
    // What the word before was: nothing of interest, the option, or a file.
    let mut after = Word::Other;
    args.flat_map(move |arg| {
        let is_option = arg != "-" && arg.as_encoded_bytes().starts_with(b"-");
        is_ours &= arg != "--";
        // There is a `schema export`, too.
        is_verb |= before != "schema" && WITHOUT_WORDS.iter().any(|verb| arg == *verb);
        before.clone_from(&arg);
        let is_another = is_ours && is_verb && after == Word::File && !is_option;
        after = match after {
            Word::Option => Word::File,
            Word::File if !is_option => Word::File,
            _ if ["-i", "--input"].iter().any(|option| arg == *option) => Word::Option,
            _ => Word::Other,
        };
        is_another.then(|| "-i".into()).into_iter().chain([arg])
    })
}

/// What a word of the command line is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    /// `-i`.
    Option,
    /// A file after it.
    File,
    Other,
}

/// Joins the numbers after `-p`, `--pid`, `-t` or `--tid` with commas, whether they are one word or several.
fn listed_ids(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let ids = |arg: &OsString| {
        let text = arg.to_str()?;
        let mut ids = text
            .split([',', ' ', '\t', '\n'])
            .filter(|id| !id.is_empty());
        ids.clone().next()?;
        ids.all(is_number)
            .then(|| text.split_whitespace().collect::<Vec<_>>().join(","))
    };
    let mut args = args.peekable();
    let mut joined = Vec::new();
    while let Some(arg) = args.next() {
        let takes_ids = ["-p", "--pid", "-t", "--tid"]
            .iter()
            .any(|option| arg == *option);
        let ends = arg == "--";
        joined.push(arg);
        if ends {
            break;
        }
        let mut list: Vec<String> = Vec::new();
        while takes_ids && let Some(ids) = args.peek().and_then(ids) {
            list.push(ids);
            args.next();
        }
        if !list.is_empty() {
            joined.push(list.join(",").into());
        }
    }
    joined.extend(args);
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_after_an_option_has_one() {
        for (line, expected) in [
            ("report -i a b --span x", "report -i a -i b --span x"),
            ("script --input a - c", "script --input a -i - -i c"),
            ("report -i a -i b c", "report -i a -i b -i c"),
            ("flame -i a picture.svg", "flame -i a picture.svg"),
            ("schema export -i a probe", "schema export -i a probe"),
            ("record -- report -i a b", "record -- report -i a b"),
            ("report -s comm -i a", "report -s comm -i a"),
            (
                "record -p 1 2 -- report -i a",
                "record -p 1,2 -- report -i a",
            ),
        ] {
            let words = normalized(line.split(' ').map(OsString::from));
            let words: Vec<String> = words
                .map(|word| word.into_string().expect("a word"))
                .collect();
            assert_eq!(words.join(" "), expected);
        }
    }
}
