//! Processes that run a file of `--exe` without executing it: the loader was told to (`ld.so PROGRAM`).

use std::fs;
use std::path::{Path, PathBuf};

use usdtrec_buildid_cache::process::code_mappings;
use usdtrec_buildid_cache::{live_directory, resolve};
use usdtrec_format::escape::shown;

use crate::terminal::say;

/// A process whose loader was told to run a file.
struct LoadedProgram {
    pid: u32,
    loader: PathBuf,
}

/// Says which process runs one of these files by its loader, as that explains why it has no events.
pub(super) fn print_loaded(executables: &[PathBuf]) {
    for path in executables {
        if let Some(LoadedProgram { pid, loader }) = loaded(path) {
            say(format_args!(
                "usdtrec: process {pid} executes {}, which runs {}: -p {pid} records it, or --exe with the loader",
                shown(&loader),
                shown(path)
            ));
        }
    }
}

fn loaded(path: &Path) -> Option<LoadedProgram> {
    let path = resolve(path).ok()?;
    let pids = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.find_map(|pid| {
        let loader = fs::read_link(live_directory(pid).join("exe")).ok()?;
        let name = loader.file_name()?.to_str()?;
        if !name.starts_with("ld") || !name.contains(".so") {
            return None;
        }
        let mappings = code_mappings(pid).ok()?;
        let mut mapped = mappings.iter();
        let is_it = mapped.any(|mapping| mapping.display_path() == path);
        is_it.then_some(LoadedProgram { pid, loader })
    })
}
