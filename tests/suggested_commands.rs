//! Suggested commands are pasted into shells: what others chose in them is one word, and runs nothing.

use std::fs;
use std::path::Path;

use crate::common::{Build, Lab, need_tool, run, test};

/// A name that runs something unless it is quoted.
const NAME: &str = "u;touch PWN;$(touch PWN) 'x";

/// Runs the command of a message in a shell, and checks that nothing else ran.
#[track_caller]
fn paste(lab: &Lab, message: &str, before: &str) -> String {
    let (_, command) = message
        .split_once(before)
        .unwrap_or_else(|| panic!("no {before:?} in {message}"));
    let command = command.lines().next().expect("a line");
    let line = command.replacen("usdtrec", env!("CARGO_BIN_EXE_usdtrec"), 1);
    let pasted = run(lab.at_home(Path::new("bash"), ["-c", &line]));
    assert!(!lab.file("PWN").exists(), "{command}");
    assert!(pasted.status.success(), "{command}: {}", pasted.stderr);
    pasted.stdout
}

#[test]
fn paths_in_suggested_commands_are_one_word() {
    need_tool("bash");
    let lab = Lab::new();
    let program = Build::USUAL.make(&lab, "first.c", "first");
    let folder = lab.file(NAME);
    fs::create_dir(&folder).expect("a directory");
    let app = folder.join("app");
    for event in ["Gone", "Changed"] {
        fs::copy(&program, &app).expect("a copy");
        lab.usdtrec(["buildid-cache".as_ref(), "--add".as_ref(), app.as_os_str()])
            .success();
        let before = if event == "Gone" {
            fs::remove_file(&app).expect("it");
            "to remove its entry: "
        } else {
            let other = Build::USUAL.make(&lab, "ticker.c", "ticker");
            fs::copy(other, &app).expect("another program");
            "to index it again: "
        };
        let listed = lab.usdtrec(["list"]);
        paste(&lab, &listed.stderr, before);
        let again = lab.usdtrec(["list"]).stderr;
        assert!(!again.contains("skipped"), "{event}: {again}");
    }
    let none = lab
        .usdtrec(["record", "-e", &format!("x:none@{}", app.display()), "-a"])
        .exits(1);
    let listed = paste(&lab, &none.stderr, "list its probes with: ");
    assert!(listed.contains("tick"), "{listed}");
}

/// Without root's rights the whole command is repeated, with sudo before it.
#[test]
fn the_command_line_stays_one_command() {
    need_tool("setpriv");
    need_tool("bash");
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "first.c", "first");
    let arguments = [
        "record",
        "-o",
        "my trace;x.data",
        "-a",
        "-e",
        &format!("*@{}", program.display()),
        "--filter",
        "pid > 1 && comm != \"a'b\"",
        "--duration",
        "1ms",
    ];
    let mut words = vec!["--reuid", "65534", "--clear-groups", "--"];
    words.push(env!("CARGO_BIN_EXE_usdtrec"));
    words.extend(arguments);
    std::os::unix::fs::chown(lab.path(), Some(65534), None).expect("another owner");
    let refused = run(lab.at_home(Path::new("setpriv"), words));
    let (_, line) = refused
        .stderr
        .split_once("sudo ")
        .unwrap_or_else(|| panic!("no sudo in {}", refused.stderr));
    let line = line.lines().next().expect("a line");
    let printed = format!("printf '%s\\n' {line}");
    let read = run(lab.at_home(Path::new("bash"), ["-c", &printed])).success();
    let read: Vec<&str> = read.stdout.lines().skip(1).collect();
    assert_eq!(read, arguments);
}

/// What the command line's own parser advises is true here: an option that a verb does not have would be run as a command, or be a file.
#[test]
fn options_are_not_advised_as_values_nor_inner_verbs_at_all() {
    let lab = Lab::new();
    for words in [
        &["trace", "-g"][..],
        &["top", "--by", "x"],
        &["record", "--sort", "x"],
        &["import", "--to", "x"],
        &["schema", "show", "--sort"],
        &["reprot"],
        &["guard"],
    ] {
        let refused = lab.usdtrec(words).exits(2);
        assert!(!refused.stderr.contains("as a value"), "{}", refused.stderr);
        for inner in ["release-probes", "guard-", "sync-file", "try-nop5"] {
            assert!(!refused.stderr.contains(inner), "{}", refused.stderr);
        }
    }
    lab.usdtrec(["reprot"])
        .exits(2)
        .complains("similar")
        .complains("'report'");
}
