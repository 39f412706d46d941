//! Babeltrace, which reads Common Trace Format: the installed one, and a later one.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{Finished, Lab, fetch, fetched, need_tool, run};

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
        let script = fs::read_to_string(FETCH).expect("a script");
        let folder = fetched("babeltrace-2.1", &script, |folder| {
            let mut script = Command::new(FETCH);
            script.arg(folder);
            fetch(script)
        });
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
