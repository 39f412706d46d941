//! Babeltrace, which reads Common Trace Format: the installed one, and a later one.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Finished, Lab, need_tool, run, skip};

/// Fetches the later one.
const FETCH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/common/babeltrace_2_1");

/// The program, and a Python that has its module.
#[derive(Debug)]
pub(crate) struct Babeltrace {
    program: PathBuf,
    python: PathBuf,
}

impl Babeltrace {
    /// The installed one: Debian 12's 2.0, which reads version 1.8 of the format.
    #[track_caller]
    pub(crate) fn installed() -> Self {
        need_tool("babeltrace2");
        Self {
            program: "babeltrace2".into(),
            // Debian's, which has the module.
            python: "/usr/bin/python3".into(),
        }
    }

    /// Debian 13's 2.1, which reads version 2, too. It is fetched once for all tests.
    #[track_caller]
    pub(crate) fn later() -> Self {
        for tool in ["apt-get", "dpkg-deb"] {
            need_tool(tool);
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("babeltrace-2.1");
        fs::create_dir_all(&folder).expect("a folder");
        let lock = File::create(folder.join("lock")).expect("a file");
        lock.lock().expect("a lock");
        let complete = folder.join("complete");
        // Fetched again after a change of the script, or in another folder.
        let wanted = format!(
            "{}\n{}",
            folder.display(),
            fs::read_to_string(FETCH).expect("a script")
        );
        if !fs::read_to_string(&complete).is_ok_and(|found| found == wanted) {
            let mut fetch = Command::new(FETCH);
            fetch.arg(&folder);
            let fetched = run(fetch);
            if !fetched.status.success() {
                skip(&format!(
                    "babeltrace2 2.1 cannot be fetched: {}",
                    fetched.stderr
                ));
            }
            fs::write(complete, wanted).expect("a file");
        }
        Self {
            program: folder.join("babeltrace2"),
            python: folder.join("python3"),
        }
    }

    /// What it prints of a folder.
    #[track_caller]
    pub(crate) fn text(&self, lab: &Lab, options: &[&str], folder: &str) -> Finished {
        run(lab.at_home(&self.program, [options, &[folder]].concat())).success()
    }

    /// What a script with its module prints.
    #[track_caller]
    pub(crate) fn script(&self, lab: &Lab, arguments: &[&str]) -> Finished {
        run(lab.at_home(&self.python, arguments)).success()
    }
}
