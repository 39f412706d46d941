//! The entries that were added to the cache, as printed.

use std::fmt;
use std::io::{self, Write};

use usdtrec_buildid_cache::AddedFile;
use usdtrec_format::counted;
use usdtrec_format::escape::shown;

use crate::terminal;

/// Prints an added file: `/usr/bin/php8.2: 14 probes at 31 sites (build-id …)`.
pub(super) fn print_added(added: &AddedFile) -> anyhow::Result<()> {
    for error in &added.damaged {
        terminal::warn(&added.path, error);
    }
    let content = if added.probes == 0 {
        "no probes".to_owned()
    } else {
        format!(
            "{} at {}",
            counted(added.probes, "probe"),
            counted(added.sites, "site")
        )
    };
    let known = if added.known { ", known already" } else { "" };
    print(format_args!(
        "{}: {content} (build-id {}{known})",
        shown(&added.path),
        added.build_id
    ))
}

/// Prints a line on standard output.
pub(super) fn print(line: impl fmt::Display) -> anyhow::Result<()> {
    writeln!(io::stdout(), "{line}")?;
    Ok(())
}
