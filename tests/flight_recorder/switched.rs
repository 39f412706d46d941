//! Triggers of recordings that write one file after another (`record --switch-output`).

use super::{counters, events, files, fired};
use crate::common::{Lab, Recorder, Ticker, test, wait_until};

/// The newest files are kept, with triggers two at least, and those around triggers. Each hit of these files is in one of them.
#[test]
fn files_around_triggers_are_kept() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let pid = ticker.pid().to_string();
    let event = ticker.event("tick");
    let options = [
        "-p",
        &pid,
        "-e",
        &event,
        "-o",
        "t.data",
        "--switch-output",
        "--switch-max-files",
        "1",
        "--trigger",
        "tick: arg1 == 2",
        "--cooldown",
        "0",
        "--keep",
        "1",
    ];
    let recorder = Recorder::start(&lab, options);
    let name = |number: u32| lab.file(&format!("t.data.{number}"));
    let numbers = || {
        let mut numbers: Vec<u32> = files(lab.path(), "t.data")
            .iter()
            .filter_map(|file| file.extension()?.to_str()?.parse().ok())
            .collect();
        numbers.sort_unstable();
        numbers
    };
    // The third hit fires, in files 5 and 13.
    let mut hit_in = |number: u32| {
        let is_trigger = number == 5 || number == 13;
        ticker.hit(if is_trigger { "fire 3" } else { "fire 1" });
        recorder.signal("USR2");
        wait_until("the next file", || name(number + 1).exists());
    };
    (1..=8).for_each(&mut hit_in);
    assert_eq!(numbers(), [4, 5, 6, 8, 9]);
    (9..=16).for_each(&mut hit_in);
    assert_eq!(numbers(), [12, 13, 14, 16, 17]);
    recorder
        .stop()
        .complains("tick: arg1 == 2: sdt_ticker:tick in thread")
        .complains("this file is kept, with those before and after it");
    let first = fired(&name(13));
    assert_eq!((&*first.event, first.more), ("sdt_ticker:tick", 0));
    let recorded = events(&lab, &name(13));
    assert_eq!(counters(&recorded), [0, 1, 2]);
    assert_eq!(recorded[2].time_ns, first.time_ns);
    assert_eq!(counters(&events(&lab, &name(14))), [0]);
    let report = lab.usdtrec(["report", "-i", "t.data.13"]).success();
    assert!(
        report.stdout.contains("tick: arg1 == 2"),
        "{}",
        report.stdout
    );
}
