//! Where the files of a trace are on this host.

use std::path::{Path, PathBuf};

use usdtrec_format::BuildId;

use crate::trace::process::Dso;
use crate::trace::symbols::image::Binary;

/// Where binaries are kept by build-id besides the build-id cache, when debug packages are installed.
const DEBUG_DIR: &str = "/usr/lib/debug";

/// The program or library that a process mapped, with the build-id that it must have: at its path if that has the trace's build-id, else
/// in the build-id cache. Where the trace names no build-id, the path is believed.
pub(crate) fn program(buildid_dir: Option<&Path>, dso: &Dso) -> Option<Binary> {
    if !dso.path.is_absolute() {
        return None;
    }
    let id = dso.build_id;
    let in_place = Binary::open(&dso.path).filter(|binary| binary.parse(id).is_some());
    in_place.or_else(|| {
        let cached = cached(buildid_dir, id?, "elf")?;
        Binary::open(&cached).filter(|binary| binary.parse(id).is_some())
    })
}

/// A file of a build-id in the build-id cache.
pub(crate) fn cached(buildid_dir: Option<&Path>, id: BuildId, name: &str) -> Option<PathBuf> {
    let text = id.to_string();
    let (first, rest) = text.split_at(2);
    let dir = buildid_dir?.join(".build-id");
    Some(dir.join(first).join(rest).join(name))
}

/// Where a distribution's debug packages put the file of a build-id.
pub(crate) fn installed(id: BuildId) -> PathBuf {
    let text = id.to_string();
    let (first, rest) = text.split_at(2);
    let dir = Path::new(DEBUG_DIR).join(".build-id").join(first);
    dir.join(format!("{rest}.debug"))
}
