//! The directory of schemas that nobody names on the command line.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use crate::common::{Lab, need_tool, run, test};

const SCHEMA: &str =
    "[[probe]]\nprovider = \"app\"\nname = \"start\"\ndescription = \"from the directory\"\n";

/// The directory, with a schema.
fn directory(lab: &Lab) -> PathBuf {
    let directory = lab.file(".config/usdtrec/schemas");
    fs::create_dir_all(&directory).expect("a directory");
    fs::write(directory.join("app.toml"), SCHEMA).expect("a file");
    directory
}

#[track_caller]
fn shown(lab: &Lab, is_used: bool, message: &str) {
    let show = lab.usdtrec(["schema", "export", "app:start"]);
    let found = show.stdout.contains("from the directory");
    assert_eq!(found, is_used, "{}{}", show.stdout, show.stderr);
    assert!(show.stderr.contains(message), "{}", show.stderr);
}

/// Nobody writes to the FIFO, and the device has no end.
#[test]
fn only_regular_files_are_read() {
    need_tool("mkfifo");
    let lab = Lab::new();
    let directory = directory(&lab);
    shown(&lab, true, "");
    let fifo = directory.join("fifo.toml");
    run(lab.at_home(Path::new("mkfifo"), [&fifo])).success();
    shown(&lab, true, "fifo.toml: expected a regular file; skipped");
    fs::remove_file(&fifo).expect("it");
    symlink("/dev/zero", directory.join("zero.d")).expect("a link");
    shown(&lab, true, "zero.d: expected a regular file; skipped");
}

/// A size that is claimed is no limit of what is read.
#[test]
fn large_files_are_refused() {
    let lab = Lab::new();
    let directory = directory(&lab);
    let large = fs::File::create(directory.join("large.d")).expect("a file");
    large.set_len(1 << 40).expect("a sparse file");
    shown(&lab, true, "at most 4 MiB; skipped");
    symlink("/dev/zero", lab.file("endless.toml")).expect("a link");
    lab.usdtrec(["schema", "export", "--schema", "endless.toml"])
        .exits(1)
        .complains("at most 4 MiB");
}

/// A named pipe is read.
#[test]
fn named_pipes_are_read() {
    need_tool("mkfifo");
    let lab = Lab::new();
    fs::write(lab.file("schema"), SCHEMA).expect("a file");
    run(lab.at_home(Path::new("mkfifo"), ["app.toml"])).success();
    let line = format!(
        "cat schema >app.toml & {} schema export --schema app.toml app:start; wait",
        env!("CARGO_BIN_EXE_usdtrec")
    );
    let exported = run(lab.at_home(Path::new("sh"), ["-c", &line]));
    assert!(
        exported.stdout.contains("from the directory"),
        "{}{}",
        exported.stdout,
        exported.stderr
    );
}

/// Another user would choose the names and types of arguments.
#[test]
fn root_uses_no_schemas_of_others() {
    let lab = Lab::privileged();
    let directory = directory(&lab);
    shown(&lab, true, "");
    chown(&directory, Some(65534), None).expect("another owner");
    shown(&lab, false, "belongs to user 65534");
    fs::write(lab.file("more.toml"), SCHEMA).expect("a file");
    lab.usdtrec(["schema", "import", "more.toml"])
        .exits(1)
        .complains("belongs to user 65534");
    chown(&directory, Some(0), None).expect("root");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).expect("a mode");
    shown(&lab, false, "every user can write");
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).expect("a mode");
    chown(directory.join("app.toml"), Some(65534), None).expect("another owner");
    shown(&lab, false, "belongs to user 65534; skipped");
}
