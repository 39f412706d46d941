//! The tasks for which a recorder starts this program again. They are no verbs: the command line of users knows nothing of them.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::process::ExitCode;

use usdtrec_buildid_cache::served::{Handle, Patience, Reader, SERVE_VERB};
use usdtrec_record::{GUARD_VERB, RELEASE_VERB, SYNC_VERB, TRIAL_VERB};

/// Does the task that the arguments of this process name; `None` for other command lines.
pub(crate) fn run() -> Option<anyhow::Result<ExitCode>> {
    let words = std::env::args_os().skip(1).map(OsString::into_string);
    let words: Vec<String> = words.collect::<Result<_, _>>().ok()?;
    run_named(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

fn run_named(words: &[&str]) -> Option<anyhow::Result<ExitCode>> {
    match *words {
        // Remove a recorder's tracefs events, by their group, after it has ended.
        [GUARD_VERB, group] => done(usdtrec_record::guard(group)),
        // Close a recorder's descriptors, so many processes at a time, which can take the kernel seconds.
        [RELEASE_VERB, at_once] => done(usdtrec_record::release(at_once.parse().ok()?, None)),
        // With the number of the descriptor that holds them as well.
        [RELEASE_VERB, at_once, keeper] => {
            let (at_once, keeper) = (at_once.parse().ok()?, keeper.parse().ok()?);
            done(usdtrec_record::release(at_once, Some(keeper)))
        }
        // Flush a recorded file to disk with fdatasync, which may block for ever.
        [SYNC_VERB] => Some(Ok(ExitCode::from(usdtrec_record::sync_file()))),
        // Test whether breakpoints on 5-byte nops are safe on this kernel.
        [TRIAL_VERB] => done(usdtrec_record::trial()),
        // Open and read files whose file systems may not answer.
        [SERVE_VERB] => done(usdtrec_record::serve_files()),
        _ => None,
    }
}

fn done(result: Result<(), impl Into<anyhow::Error>>) -> Option<anyhow::Result<ExitCode>> {
    Some(result.map(|()| ExitCode::SUCCESS).map_err(Into::into))
}

/// Maximum number of bytes of a file that is copied to be read.
const MAX_COPIED: u64 = 1 << 30;

/// Opens a file that symbols are read from. One that is not known to be local is copied by a helper.
pub(crate) fn open_file(path: &Path) -> Option<File> {
    let handle = Handle::of_path(path, Reader::of_unknown(Patience::Short)).ok()?;
    handle.open().ok()?.local_copy(MAX_COPIED).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_named_by_all_of_their_words() {
        for words in [
            &[][..],
            &["record"],
            &[GUARD_VERB],
            &[RELEASE_VERB, "many"],
            &[RELEASE_VERB, "4", "many"],
            &[RELEASE_VERB, "4", "7", "9"],
            &[SYNC_VERB, "--help"],
        ] {
            assert!(run_named(words).is_none(), "{words:?}");
        }
    }
}
