//! Packages of another Debian release than that of this host, which are unpacked and not installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{fetch, fetched, need_tool, run};

/// A folder with the files of packages, to be read only. What they depend on is not added.
#[track_caller]
pub(crate) fn debian_packages(name: &str, suite: &str, packages: &[&str]) -> PathBuf {
    need_tool("apt-get");
    need_tool("dpkg-deb");
    fetched(name, &packages.join(" "), |folder| {
        let state = folder.join("apt");
        for directory in ["state/lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(state.join(directory)).expect("a folder");
        }
        let keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
        let source = format!("deb [signed-by={keys}] http://deb.debian.org/debian {suite} main\n");
        fs::write(state.join("sources"), source).expect("a file");
        let at = state.display();
        let configuration = format!(
            "Dir::Etc::sourcelist \"{at}/sources\"; Dir::Etc::sourceparts \"/dev/null\"; Dir::State \"{at}/state\"; \
             Dir::State::status \"/dev/null\"; Dir::Cache \"{at}/cache\"; Acquire::Languages \"none\"; APT::Sandbox::User \"root\";"
        );
        fs::write(state.join("configuration"), configuration).expect("a file");
        let apt = |arguments: &[&str]| {
            let mut command = Command::new("apt-get");
            command.args(arguments).current_dir(&state);
            command.env("APT_CONFIG", state.join("configuration"));
            fetch(command)
        };
        apt(&["-q", "update"])?;
        apt(&[&["-q", "download"], packages].concat())?;
        let files = fs::read_dir(&state).expect("a folder").flatten();
        for file in files.map(|entry| entry.path()) {
            if file.extension().is_some_and(|extension| extension == "deb") {
                unpack(&file, folder);
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
