//! Programs and packages that read Parquet files, installed with pip.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{need_tool, run};

/// Packages of Python in a folder of their own, of the versions that were tried.
pub(super) struct Packages {
    name: &'static str,
    packages: &'static [&'static str],
}

/// The readers that install in some seconds.
pub(super) const READERS: Packages = Packages {
    name: "parquet-readers",
    packages: &[
        "duckdb==2.0.0",
        "duckdb-cli==1.5.6",
        "pyarrow==26.0.1",
        "polars==2.1.0",
        "datafusion==55.0.0",
    ],
};

/// Those that take minutes, for `.ci/fleet`.
pub(super) const LARGE_READERS: Packages = Packages {
    name: "large-parquet-readers",
    packages: &["pyarrow==26.0.1", "pyspark==4.3.0", "chdb==4.4.0"],
};

impl Packages {
    pub(super) const fn new(name: &'static str, packages: &'static [&'static str]) -> Self {
        Self { name, packages }
    }

    /// A program of these packages, or `python`. They are installed once for all tests.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// The folder of their programs.
    pub(super) fn folder(&self) -> PathBuf {
        need_tool("python3");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(self.name);
        fs::create_dir_all(&folder).expect("a folder");
        let lock = File::create(folder.join("lock")).expect("a file");
        lock.lock().expect("a lock");
        let venv = folder.join("venv");
        let programs = venv.join("bin");
        let complete = folder.join("complete");
        let wanted = self.packages.join(" ");
        if fs::read_to_string(&complete).is_ok_and(|found| found == wanted) {
            return programs;
        }
        let mut make = Command::new("python3");
        make.args(["-m", "venv", "--clear"]).arg(&venv);
        run(make).success();
        let mut install = Command::new(programs.join("python"));
        install.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]);
        install.args(self.packages);
        run(install).success();
        fs::write(complete, wanted).expect("a file");
        programs
    }
}
