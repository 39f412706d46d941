//! Files with probes that were asked for, and which processes begin to map while recording.

use std::fs;
use std::process::Command;

use crate::common::{Build, Lab, Process, Recorder, Ticker, test};

const LIBRARY: Build = Build {
    options: &["-shared", "-fPIC", "-O1"],
    ..Build::USUAL
};

/// `sh` that waits for a line and then runs a program that loads a library with probes.
fn loader(lab: &Lab) -> (Process, String) {
    let library = LIBRARY.make(lab, "library.c", "liblibrary.so");
    let program = Build::USUAL.make(lab, "library_user.c", "user");
    let mut shell = Command::new("sh");
    shell.args(["-c", r#"read line; "$0" "$1"; read line"#]);
    shell.args([&program, &library]);
    let library = library.to_str().expect("a path").to_owned();
    (Process::spawn(shell), library)
}

#[test]
fn a_library_that_is_loaded() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    for verb in ["record", "trace"] {
        let (mut shell, library) = loader(&lab);
        let pids = format!("{},{}", ticker.pid(), shell.pid());
        let mut command = lab.command([verb, "-p", &pids, "-e", "*:*", "-o", "out"]);
        command.arg(if verb == "record" { "-m2M" } else { "-v" });
        let mut recorder = Process::spawn(command);
        recorder.until_error_line(&format!("[ usdtrec {verb}:"));
        shell.say("load");
        let line = recorder.until_error_line("was not there when recording began");
        let expected = format!(
            " maps a file with probes that match '*:*' and that was not there when recording began: {library}; \
             record again to include it"
        );
        assert!(line.ends_with(&expected), "{line}");
        ticker.hit("fire 1");
        recorder.signal("INT");
        let said = recorder.finish().success().stderr;
        let expected = format!(
            "not recorded: probes of a file that processes began to map while recording: {library}\n"
        );
        assert!(said.contains(&expected), "{said}");
        assert_eq!(said.matches("was not there").count(), 1, "{said}");
    }
    // Nothing but what is recorded appears.
    let pid = ticker.pid().to_string();
    let recorder = Recorder::start(&lab, ["-p", &pid, "-e", "*:*", "-o", "out"]);
    ticker.hit("fire 1");
    let said = recorder.stop().stderr;
    assert!(!said.contains("not recorded"), "{said}");
}

/// Who is asked for by a process, and has not loaded it yet.
#[test]
fn nothing_is_loaded_yet() {
    let lab = Lab::privileged();
    let (shell, library) = loader(&lab);
    let pid = shell.pid().to_string();
    lab.usdtrec(["record", "-p", &pid, "-e", "library:*", "-o", "out"])
        .exits(1)
        .complains(&format!(
            "process {pid} maps no file with a probe library:* now, and no indexed binary has one"
        ))
        .complains("name the library: 'library:*@PATH'");
    // As the message says.
    let mut shell = shell;
    let event = format!("*:*@{library}");
    let recorder = Recorder::start(&lab, ["-p", &pid, "-e", &event, "-o", "out"]);
    shell.say("load");
    shell.say("end");
    shell.finish().success();
    let said = recorder.finish().success().stderr;
    assert!(said.contains(" 11 events"), "{said}");
    assert!(!said.contains("not recorded"), "{said}");
}

/// An upgrade: who ran before is recorded still, and who starts now is not.
#[test]
fn a_new_version() {
    let lab = Lab::privileged();
    let mut old = Ticker::start(&lab);
    let path = old.program().to_owned();
    let options = Build {
        options: &["-O1"],
        ..Build::USUAL
    };
    options.make(&lab, "ticker.c", "upgrade");
    let event = old.event("tick");
    let mut recorder = Process::spawn(lab.command(["record", "-a", "-e", &event, "-o", "trace"]));
    recorder.until_error_line("[ usdtrec record:");
    fs::rename(lab.file("upgrade"), &path).expect("the new program");
    let mut new = Ticker::again(&path);
    let line = recorder.until_error_line("was not there when recording began");
    let expected = format!(
        "usdtrec: process {} maps a file with probes that match '{event}' and that was not there when recording began: {}; \
         record again to include it",
        new.pid(),
        path.display()
    );
    assert_eq!(line, expected);
    new.hit("fire 2");
    old.hit("fire 3");
    recorder.signal("INT");
    let said = recorder.finish().success().stderr;
    assert!(said.contains(" 3 events"), "{said}");
    let again = format!(
        "process {} runs another version of {} than was recorded",
        new.pid(),
        path.display()
    );
    let report = lab.usdtrec(["report", "-i", "trace"]).success().stdout;
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(report.contains(&again), "{report}");
    // Now the old ones are not recorded, and the new ones are.
    let recorder = Recorder::start(&lab, ["-a", "-e", &event, "-o", "trace"]);
    new.hit("fire 2");
    old.hit("fire 3");
    let said = recorder.stop().stderr;
    assert!(said.contains(" 2 events"), "{said}");
    let again = format!(
        "process {} runs another version of {} than was recorded; record it with: -p {}",
        old.pid(),
        path.display(),
        old.pid()
    );
    let report = lab.usdtrec(["report", "-i", "trace"]).success().stdout;
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(report.contains(&again), "{report}");
}

/// However many there are.
#[test]
fn very_many_files() {
    let lab = Lab::privileged();
    let ticker = Ticker::start(&lab);
    let (shell, library) = loader(&lab);
    let program = lab.file("user");
    let mut command = Command::new("sh");
    command.args([
        "-c",
        r#"read line; for i in 1 2 3 4 5 6 7 8 9; do cp "$1" "$1.$i"; "$0" "$1.$i" >/dev/null; done; echo done; read line"#,
    ]);
    command.arg(program).arg(library);
    let mut many = Process::spawn(command);
    drop(shell);
    let pids = format!("{},{}", ticker.pid(), many.pid());
    let recorder = Recorder::start(&lab, ["-p", &pids, "-e", "*:*", "-o", "out"]);
    many.say("load");
    assert_eq!(many.line().as_deref(), Some("done"));
    let said = recorder.stop().stderr;
    assert_eq!(said.matches("was not there").count(), 6, "{said}");
    assert!(said.contains(", and 3 more\n"), "{said}");
}
