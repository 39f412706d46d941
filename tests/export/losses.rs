//! Lost events, in formats that have a place for them.

use std::process::Command;

use super::ctf::read;
use super::firefox_profile::Profile;
use crate::common::{Build, Closing, Lab, Process, Recorder, test};

/// Hits as fast as two threads can, into rings of one page.
#[test]
fn lost_events_are_counted() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "hot.c", "hot");
    let mut command = Command::new(&program);
    command.args(["50000", "2"]);
    let mut hot = Process::spawn(command);
    let event = format!("sdt_hot:req@{}", program.display());
    let recorder = Recorder::start(&lab, ["-m", "1", "-a", "-o", "trace", "-e", &event]);
    hot.say("go");
    hot.finish().success();
    let Closing { events, lost } = Closing::of(&recorder.stop().stderr);

    let found = read(&lab, "trace", "ctf");
    assert_eq!((found.hits.len() as u64, found.lost), (events, lost));

    let export = ["export", "-i", "trace", "--to", "firefox", "-o", "p.json"];
    lab.usdtrec(export).success().silent();
    let profile = Profile::read(&lab.file("p.json"));
    let losses = profile
        .threads()
        .iter()
        .filter(|one| one["pid"] == "losses");
    let data = losses.flat_map(|one| one["markers"]["data"].as_array().expect("data"));
    let counts = data.map(|data| {
        assert_eq!(data["event"], "sdt_hot:req");
        let count = data["lost"].as_str().expect("a text");
        count.parse::<u64>().expect("a number")
    });
    assert_eq!(counts.sum::<u64>(), lost);
}
