//! Node.js with `--use-largepages`: it copies its code to huge pages when it starts, with the breakpoints in it, and executes these
//! (`src/large_pages/node_large_page.cc` of Node.js).

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use usdtrec_format::escape::{escape, shown};
use usdtrec_record::{PlannedProbe, Selection};

use crate::cli::CaptureArgs;
use crate::terminal::Usage;

/// The option; Node takes `_` for `-`.
const OPTION: &str = "--use-largepages";
/// The values that have it copy its code.
const COPYING: [&str; 2] = ["on", "silent"];
/// Options that it has from the environment, too.
const VARIABLE: &str = "NODE_OPTIONS";

/// Refuses probes in the program of Node.js if the command is one that will copy its code. Following would attach those that are left out.
///
/// # Errors
/// What will happen, and what to do.
pub(super) fn refuse(args: &CaptureArgs, selection: &Selection) -> Result<(), Usage> {
    let is_attached_later = args.delay.is_some() || !args.pid.is_empty() || !args.tid.is_empty();
    if args.force || is_attached_later || !copies(&args.command) {
        return Ok(());
    }
    let mut probes = selection.probes.iter();
    let is_node = |probe: &&PlannedProbe| is_called_node(probe.path.as_os_str());
    match probes.find(is_node) {
        None => Ok(()),
        Some(probe) => Err(Usage(format!(
            "not attaching {} in {}: with {OPTION}, Node.js copies its code to huge pages when it starts; with breakpoints in the copy it would end by \
             SIGTRAP\n  \
             run it without {OPTION}; with -D MSECS (record, trace, stat) the probes are attached after that: it then runs on, but hits in the copied code are not recorded; \
             --force attaches all the same",
            escape(&probe.event()),
            shown(&probe.path)
        ))),
    }
}

/// Whether a command is Node.js, which is asked to copy its code, on a host where it does.
fn copies(command: &[OsString]) -> bool {
    let Some((program, arguments)) = command.split_first() else {
        return false;
    };
    let is_node = is_called_node(program)
        || fs::canonicalize(program).is_ok_and(|path| is_called_node(path.as_os_str()));
    let of_environment = std::env::var(VARIABLE).unwrap_or_default();
    let of_environment = of_environment.split_whitespace().map(str::to_owned);
    // The script and what follows it are not Node's.
    let own = arguments
        .iter()
        .map(|word| word.to_string_lossy().into_owned());
    let mut own: Vec<String> = own.collect();
    let script = own.iter().enumerate().position(|(at, word)| {
        let is_value = at > 0 && is_option(&own[at - 1]) && !own[at - 1].contains('=');
        !word.starts_with('-') && !is_value
    });
    own.truncate(script.unwrap_or(own.len()));
    let words: Vec<String> = of_environment.chain(own).collect();
    is_node && asks(&words) && has_huge_pages()
}

/// Whether a path is one of the program, or of the library that has all of it.
fn is_called_node(path: &OsStr) -> bool {
    let name = Path::new(path).file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    matches!(&*name, "node" | "nodejs") || name.starts_with("libnode.so")
}

fn is_option(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    name.replace('_', "-") == OPTION
}

/// Whether options have it copy its code; the last one counts.
fn asks(words: &[String]) -> bool {
    let Some(last) = words.iter().rposition(|word| is_option(word)) else {
        return false;
    };
    let value = words[last].split_once('=').map(|(_, value)| value);
    let value = value.or_else(|| words.get(last + 1).map(String::as_str));
    value.is_some_and(|value| COPYING.contains(&value))
}

/// Whether the host has transparent huge pages, without which it does not copy.
fn has_huge_pages() -> bool {
    let enabled = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    enabled.is_ok_and(|text| text.contains("[always]") || text.contains("[madvise]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_option_counts() {
        let asks = |words: &str| asks(&words.split(' ').map(str::to_owned).collect::<Vec<_>>());
        for words in [
            "--use-largepages=on",
            "--use_largepages=silent",
            "--use-largepages on",
            "--use-largepages=off -r x --use-largepages=on",
        ] {
            assert!(asks(words), "{words}");
        }
        for words in [
            "",
            "--use-largepages=off",
            "--use-largepages=on --use-largepages=off",
            "-e on",
        ] {
            assert!(!asks(words), "{words}");
        }
    }
}
