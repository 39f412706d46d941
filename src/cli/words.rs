//! The words of the command line, where perf accepts what clap does not.

use std::ffi::OsString;

/// Rewrites what perf accepts and clap does not: `-zLEVEL` becomes `--compression-level=LEVEL`, and process ids separated by spaces,
/// as from `-p $(pidof node)`, become a comma list.
pub(super) fn normalized(args: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    let mut ours = true;
    listed_ids(args).into_iter().map(move |arg| {
        ours &= arg != "--";
        match arg.to_str().and_then(|arg| arg.strip_prefix("-z")) {
            Some(level) if ours && level.starts_with(|first: char| first.is_ascii_digit()) => {
                format!("--compression-level={level}").into()
            }
            _ => arg,
        }
    })
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
