//! The installed babeltrace2, which reads Common Trace Format.

use std::path::Path;

use super::{Finished, Lab, need_tool, run};

/// Debian's Python, which has the module.
const PYTHON: &str = "/usr/bin/python3";

/// What it prints of a folder.
#[track_caller]
pub(crate) fn babeltrace(lab: &Lab, options: &[&str], folder: &str) -> Finished {
    need_tool("babeltrace2");
    let program = Path::new("babeltrace2");
    run(lab.at_home(program, [options, &[folder]].concat())).success()
}

/// What a script with its module prints.
#[track_caller]
pub(crate) fn babeltrace_script(lab: &Lab, arguments: &[&str]) -> Finished {
    need_tool("babeltrace2");
    run(lab.at_home(Path::new(PYTHON), arguments)).success()
}
