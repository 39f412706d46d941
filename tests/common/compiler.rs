//! Building the programs of testdata/targets.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use super::{Lab, need_tool, run, write_program};

/// How to build a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Build {
    /// `gcc`, `clang`, `g++`.
    pub(crate) compiler: &'static str,
    /// Options.
    pub(crate) options: &'static [&'static str],
}

impl Build {
    /// What most tests use: arguments in registers where the compiler can.
    pub(crate) const USUAL: Self = Self {
        compiler: "gcc",
        options: &["-O2"],
    };

    /// Builds `testdata/targets/SOURCE` as `name` in the lab. Skips the test without the compiler. With `-DPROVIDER=…` the test has the provider
    /// to itself.
    #[track_caller]
    pub(crate) fn make(&self, lab: &Lab, source: &str, name: &str) -> PathBuf {
        need_tool(self.compiler);
        let mut options = self.options.iter();
        if let Some(provider) = options.find_map(|option| option.strip_prefix("-DPROVIDER=")) {
            lab.own_provider(provider);
        }
        let output = lab.file(name);
        write_program(
            &output,
            self.built(source).get_or_init(|| self.build(source)),
        );
        output
    }

    /// What the compiler makes of a target: many tests use the same, and it is compiled once for all tests of a run.
    fn built(self, source: &str) -> Arc<OnceLock<Vec<u8>>> {
        type Programs = HashMap<(Build, String), Arc<OnceLock<Vec<u8>>>>;
        static PROGRAMS: LazyLock<Mutex<Programs>> = LazyLock::new(Mutex::default);
        let mut programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(programs.entry((self, source.to_owned())).or_default())
    }

    fn build(self, source: &str) -> Vec<u8> {
        let output = tempfile::NamedTempFile::new().expect("a temporary file");
        let mut command = Command::new(self.compiler);
        command.args(self.options);
        if self.options.contains(&"-m32") {
            // sys/sdt.h is in the directory of the 64-bit architecture; it is for both.
            command.args(["-idirafter", "/usr/include/x86_64-linux-gnu"]);
        }
        if self.compiler != "g++" {
            command.arg("-std=gnu11");
        }
        command
            .args(["-pthread", "-Wall", "-o"])
            .arg(output.path())
            .arg(target_source(source));
        run(command).success();
        std::fs::read(output.path()).expect("a program")
    }

    /// Whether `%rbp` and `%ebp` are frame pointers throughout.
    pub(crate) fn keeps_frame_pointer(&self) -> bool {
        self.options.contains(&"-O0") || self.options.contains(&"-fno-omit-frame-pointer")
    }

    /// Whether it makes a 32-bit program.
    pub(crate) fn is_32_bit(&self) -> bool {
        self.options.contains(&"-m32")
    }
}

fn target_source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("testdata/targets")
        .join(name)
}
