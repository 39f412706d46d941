//! Programs and packages that read Parquet files, installed with pip.

use std::path::PathBuf;
use std::process::Command;

use crate::common::{fetch, fetched, need_tool};

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
    ],
};

/// Spark, which takes minutes to install, for `.ci/fleet`.
pub(super) const SPARK: Packages = Packages {
    name: "spark",
    packages: &["pyarrow==26.0.1", "pyspark==4.3.0"],
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
        let folder = fetched(self.name, &self.packages.join(" "), |folder| {
            let venv = folder.join("venv");
            let mut make = Command::new("python3");
            make.args(["-m", "venv", "--clear"]).arg(&venv);
            fetch(make)?;
            let mut install = Command::new(venv.join("bin/python"));
            install.args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
            ]);
            install.args(self.packages);
            fetch(install)
        });
        folder.join("venv/bin")
    }
}
