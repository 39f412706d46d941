//! Packages of another Debian release than that of this host, which are unpacked and not installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{fetch, fetched, need_tool, run};

/// Packages of a release of Debian.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DebianPackages<'a> {
    /// Name of the folder.
    pub(crate) name: &'a str,
    pub(crate) suite: &'a str,
    pub(crate) packages: &'a [&'a str],
    /// Whether what they depend on is added.
    pub(crate) is_complete: bool,
}

/// A folder with the files of packages, to be read only.
#[track_caller]
pub(crate) fn debian_packages(wanted: DebianPackages<'_>) -> PathBuf {
    const WITH_OTHERS: [&str; 4] = [
        "install",
        "--yes",
        "--no-install-recommends",
        "--download-only",
    ];
    let DebianPackages {
        name,
        suite,
        packages,
        is_complete,
    } = wanted;
    let command: &[&str] = match is_complete {
        true => &WITH_OTHERS,
        false => &["download"],
    };
    need_tool("apt-get");
    need_tool("dpkg-deb");
    fetched(name, &packages.join(" "), |folder| {
        let state = folder.join("apt");
        for directory in ["state/lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(state.join(directory)).expect("a folder");
        }
        // No package is installed.
        fs::write(state.join("status"), "").expect("a file");
        let keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
        let source = format!("deb [signed-by={keys}] http://deb.debian.org/debian {suite} main\n");
        fs::write(state.join("sources"), source).expect("a file");
        let at = state.display();
        let configuration = format!(
            "Dir::Etc::sourcelist \"{at}/sources\"; Dir::Etc::sourceparts \"/dev/null\"; Dir::State \"{at}/state\"; \
             Dir::State::status \"{at}/status\"; Dir::Cache \"{at}/cache\"; Acquire::Languages \"none\"; APT::Sandbox::User \"root\";"
        );
        fs::write(state.join("configuration"), configuration).expect("a file");
        let apt = |arguments: &[&str]| {
            let mut command = Command::new("apt-get");
            command.args(arguments).current_dir(&state);
            command.env("APT_CONFIG", state.join("configuration"));
            fetch(command)
        };
        apt(&["-q", "update"])?;
        apt(&[&["-q"], command, packages].concat())?;
        // One is in the current directory, the other where apt keeps packages.
        for place in [state.clone(), state.join("cache/archives")] {
            let files = fs::read_dir(place).expect("a folder").flatten();
            for file in files.map(|entry| entry.path()) {
                if file.extension().is_some_and(|extension| extension == "deb") {
                    unpack(&file, folder);
                }
            }
        }
        fs::remove_dir_all(state).expect("a folder of ours");
        Ok(())
    })
}

fn unpack(package: &Path, to: &Path) {
    let mut unpack = Command::new("dpkg-deb");
    unpack.arg("-x").arg(package).arg(to);
    run(unpack).success();
}
