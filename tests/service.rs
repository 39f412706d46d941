//! What a service manager is told, and what its journal gets.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use crate::common::{Build, Lab, run, test};

/// What a recording sends.
fn sent(manager: &UnixDatagram) -> Vec<String> {
    let mut messages = Vec::new();
    let mut message = [0; 4096];
    while let Ok(len) = manager.recv(&mut message) {
        messages.push(String::from_utf8_lossy(&message[..len]).into_owned());
    }
    messages
}

/// It is ready when its probes are enabled, and says when it ends.
#[test]
fn a_recording_says_when_it_has_begun_and_ends() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let program = program.to_str().expect("a path");
    let event = format!("sdt_ticker:tick@{program}");
    let manager = UnixDatagram::bind(lab.file("notify")).expect("a socket");
    manager
        .set_read_timeout(Some(Duration::from_millis(1)))
        .expect("a socket");
    for verb in [&["record", "-o", "trace"][..], &["trace"], &["stat"]] {
        let mut command = lab.command(verb);
        command.args(["-q", "-e", &event, "--", program]);
        command.env("NOTIFY_SOCKET", lab.file("notify"));
        run(command).success();
        let sent = sent(&manager);
        let [ready, stopping] = &sent[..] else {
            panic!("{verb:?}: {sent:?}");
        };
        let status = format!(
            "READY=1\nSTATUS=[ usdtrec {}: 1 probe at 1 site in 1 file;",
            verb[0]
        );
        assert!(ready.starts_with(&status), "{ready}");
        assert_eq!(stopping, "STOPPING=1\n");
    }
}

/// Each line has its severity, if standard error is the journal, and not only inherited from a service.
#[test]
fn lines_of_the_journal_have_a_severity() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let program = program.to_str().expect("a path");
    let journal = |arguments: &[&str], is_journal: bool| {
        let file = File::create(lab.file("journal")).expect("a file");
        let metadata = file.metadata().expect("metadata");
        let other = u64::from(!is_journal);
        let stream = format!("{}:{}", metadata.dev(), metadata.ino() + other);
        let mut command = lab.command(arguments);
        command.env("JOURNAL_STREAM", stream).stderr(file);
        command.status().expect("usdtrec");
        fs::read_to_string(lab.file("journal")).expect("lines")
    };
    let event = format!("sdt_ticker:tick@{program}");
    let record = ["record", "-o", "trace", "-e", &event, "--", program];
    let lines = journal(&record, true);
    assert!(lines.starts_with("<6>[ usdtrec record: 1 probe"), "{lines}");
    assert!(
        lines.contains("\n<6>[ usdtrec record: ")
            && lines.lines().all(|line| line.starts_with('<')),
        "{lines}"
    );
    let missing = ["record", "-o", "trace", "-e", "sdt_ticker:none@/nowhere"];
    let lines = journal(&missing, true);
    assert!(lines.starts_with("<3>usdtrec: "), "{lines}");
    let lines = journal(&record, false);
    assert!(lines.starts_with("[ usdtrec record: "), "{lines}");
}
