//! Building the programs of testdata/targets.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Lab, need_tool, run};

/// How to build a target.
#[derive(Clone, Copy, Debug)]
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

    /// Builds `testdata/targets/SOURCE` as `name` in the lab. Skips the test without the compiler.
    #[track_caller]
    pub(crate) fn make(&self, lab: &Lab, source: &str, name: &str) -> PathBuf {
        need_tool(self.compiler);
        let output = lab.file(name);
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
            .arg(&output)
            .arg(target_source(source));
        run(command).success();
        output
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
