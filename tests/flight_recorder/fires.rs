//! What fires, and when files are written.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use usdtrec_format::trace::TriggerKind;

use super::{counters, events, files, fired};
use crate::common::{Build, Lab, Recorder, Ticker, path_text, run, test, wait_until};

/// A recorder of the hits of a ticker, with a window of an hour.
fn start(lab: &Lab, ticker: &Ticker, options: &[&str]) -> Recorder {
    let pid = ticker.pid().to_string();
    let (tick, guarded) = (ticker.event("tick"), ticker.event("guarded"));
    let common = [
        "-p", &pid, "-e", &tick, "-e", &guarded, "-o", "t.data", "--ring", "1h",
    ];
    Recorder::start(lab, common.iter().chain(options))
}

fn wait_for_files(lab: &Lab, number: usize) {
    wait_until("a file", || files(lab.path(), "t.data").len() >= number);
}

#[test]
fn a_hit_and_a_filter_fire() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let options = [
        "--trigger",
        "ticker:guarded",
        "--trigger",
        "tick: arg1 > 5 && tid != 1",
        "--cooldown",
        "0",
    ];
    let recorder = start(&lab, &ticker, &options);
    ticker.hit("fire 6");
    ticker.tell("guarded 1");
    wait_for_files(&lab, 1);
    ticker.hit("fire 8");
    wait_for_files(&lab, 2);
    ticker.hit("fire 3");
    recorder.stop().complains("wrote 2 files");
    let [first, second] = &files(lab.path(), "t.data")[..] else {
        panic!("two files are written");
    };
    let hit = fired(first);
    assert_eq!(hit.kind, TriggerKind::Probe);
    assert_eq!(
        (&*hit.condition, &*hit.event),
        ("ticker:guarded", "sdt_ticker:guarded")
    );
    let recorded = events(&lab, first);
    let last = recorded.last().expect("events");
    // The event that fired is the last one.
    assert_eq!((last.name(), last.time_ns), ("guarded", hit.time_ns));
    let filtered = fired(second);
    assert_eq!(filtered.condition, "tick: arg1 > 5 && tid != 1");
    let recorded = events(&lab, second);
    let found = recorded
        .iter()
        .find(|event| event.time_ns == filtered.time_ns);
    assert_eq!(found.expect("the event").integer(1), 6);
}

#[test]
fn a_long_span_fires_and_a_short_one_does_not() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let trigger = "span:ticker:tick..ticker:guarded > 200ms";
    let recorder = start(&lab, &ticker, &["--trigger", trigger]);
    ticker.hit("fire 1");
    ticker.tell("guarded 1");
    ticker.hit("fire 1");
    ticker.tell("sleep 300");
    ticker.tell("guarded 1");
    wait_for_files(&lab, 1);
    recorder.stop().complains(trigger).complains("wrote 1 file");
    let [file] = &files(lab.path(), "t.data")[..] else {
        panic!("one file is written");
    };
    let span = fired(file);
    assert_eq!(span.kind, TriggerKind::Span);
    let recorded = events(&lab, file);
    let [_, _, begin, end] = &recorded[..] else {
        panic!("four events, not {recorded:?}");
    };
    assert_eq!(span.time_ns, end.time_ns);
    assert_eq!(span.duration_ns, Some(end.time_ns - begin.time_ns));
    assert_eq!(span.tid, ticker.pid().cast_signed());
    // report matches the same span.
    let words = [
        "report",
        "--span",
        "tick..guarded",
        "--format",
        "json",
        "-i",
    ];
    let words = words.into_iter().chain([file.to_str().expect("a path")]);
    let report = lab.usdtrec(words).success().stdout;
    let longest = span.duration_ns.expect("a duration").to_string();
    assert!(report.contains(&longest), "{report}");
    // What fired is in all of its forms: JSON, the page, and the text, which begins with it and the last events of the thread.
    let words = ["report", "--format", "json", "-i", path_text(file)];
    let answer: Value = serde_json::from_str(&lab.usdtrec(words).success().stdout).expect("JSON");
    let fired = &answer["trigger"];
    assert_eq!(fired["kind"], "span");
    assert_eq!(fired["condition"], trigger);
    assert_eq!(fired["duration_ns"], end.time_ns - begin.time_ns);
    assert_eq!(fired["tid"], ticker.pid());
    let words = [
        "export",
        "--to",
        "html",
        "-o",
        "page.html",
        "-i",
        path_text(file),
    ];
    lab.usdtrec(words).success();
    let page = std::fs::read_to_string(lab.file("page.html")).expect("a page");
    let on_page = format!("Trigger: {trigger}: ticker:tick..ticker:guarded took ");
    let on_page = on_page.replace('>', "&gt;");
    assert!(page.contains(&on_page), "{page}");
    let words = ["report", "-i", file.to_str().expect("a path")];
    let report = lab.usdtrec(words).success().stdout;
    let mut lines = report.lines();
    let first = lines.next().unwrap_or_default();
    let expected = format!("# trigger: {trigger}: ticker:tick..ticker:guarded took ");
    assert!(first.starts_with(&expected), "{first}");
    let second = format!("# the last events of its thread, {}:", ticker.pid());
    assert_eq!(lines.next(), Some(&*second));
    let shown: Vec<&str> = lines.by_ref().take(4).collect();
    assert!(
        shown.iter().all(|line| line.contains("sdt_ticker:")),
        "{report}"
    );
    assert!(shown[3].contains("sdt_ticker:guarded"), "{report}");
    assert_eq!(
        lines.next(),
        Some("# the last events of others in the second before it:")
    );
    assert_eq!(lines.next(), Some("  none"));
}

/// Requests of one thread overlap, and no trigger knows which integer is their id.
#[test]
fn a_trigger_says_that_spans_overlap() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "event_loop.c", "event_loop");
    let program = path_text(&program);
    let event = format!("sdt_event_loop:*@{program}");
    let verb = ["record", "-e", &event, "-o", "t.data", "--ring", "1h"];
    let trigger = ["--trigger", "span:request > 100s", "--", program, "300"];
    let recorded = run(lab.command([&verb[..], &trigger].concat())).success();
    let warning = " of event_loop:request matched the newest begin of the thread, but an older one has the same number: spans overlap";
    assert!(recorded.stderr.contains(warning), "{}", recorded.stderr);
}

#[test]
fn recording_goes_on_before_the_file_is_written() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let options = ["--trigger", "ticker:guarded", "--after", "1s"];
    let recorder = start(&lab, &ticker, &options);
    ticker.tell("guarded 1");
    ticker.hit("fire 3");
    std::thread::sleep(Duration::from_millis(300));
    assert!(files(lab.path(), "t.data").is_empty());
    ticker.hit("fire 2");
    // Fires again, for the same file.
    ticker.tell("guarded 1");
    wait_for_files(&lab, 1);
    recorder
        .stop()
        .complains("1 further trigger")
        .complains("wrote 1 file");
    let file = &files(lab.path(), "t.data")[0];
    assert_eq!(events(&lab, file).len(), 7);
}

/// Further triggers write nothing for a time; requests do, and the oldest files go.
#[test]
fn the_cooldown_and_the_number_of_files_are_kept_to() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let options = [
        "--trigger",
        "ticker:tick",
        "--cooldown",
        "1h",
        "--keep",
        "2",
    ];
    let recorder = start(&lab, &ticker, &options);
    ticker.hit("fire 3");
    wait_for_files(&lab, 1);
    let first = files(lab.path(), "t.data");
    ticker.hit("fire 3");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(files(lab.path(), "t.data"), first);
    let second = super::dump(&lab, &recorder);
    assert!(fired(&second).more > 0);
    let third = super::dump(&lab, &recorder);
    recorder.stop().complains("wrote 3 files");
    assert_eq!(files(lab.path(), "t.data"), [second, third]);
}

/// A trigger that waits at the end has its file.
#[test]
fn what_waits_at_the_end_is_written() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let options = ["--trigger", "ticker:guarded", "--after", "1h"];
    let recorder = start(&lab, &ticker, &options);
    ticker.tell("guarded 1");
    ticker.hit("fire 3");
    std::thread::sleep(Duration::from_millis(300));
    recorder.stop().complains("wrote 1 file");
    let file = &files(lab.path(), "t.data")[0];
    assert_eq!(events(&lab, file).len(), 4);
}

#[test]
fn a_recording_ends_at_the_first_hit() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let pid = ticker.pid().to_string();
    let tick = ticker.event("tick");
    let plain = ["-p", &pid, "-e", &tick, "--until", "tick: arg1 == 3"];
    let plain = plain.as_slice();
    for options in [&[][..], &["--ring", "1h", "--trigger", "tick: arg1 == 99"]] {
        let recorder = Recorder::start(&lab, plain.iter().chain(options));
        let hits = ticker.hit("fire 3");
        std::thread::sleep(Duration::from_millis(200));
        ticker.hit("fire 4");
        let finished = recorder.finish().success();
        finished.complains("--until: a trigger fired");
        let file = lab.file("usdtrec.data");
        let recorded = counters(&events(&lab, &file));
        assert_eq!(recorded, [0, 1, 2, 0, 1, 2, 3], "{hits:?} {options:?}");
        let hit = fired(&file);
        assert_eq!(
            (hit.kind, hit.tid),
            (TriggerKind::Probe, ticker.pid().cast_signed())
        );
    }
    assert!(
        files(lab.path(), "usdtrec.data")
            .iter()
            .all(|file| file.ends_with("usdtrec.data.old"))
    );
}

/// A command gets the values in its environment; it runs once for each file.
#[test]
fn a_command_runs_for_each_file() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let command = "sh -c 'echo $USDTREC_KIND $USDTREC_EVENT $USDTREC_TID $USDTREC_FILE >> said'";
    let options = ["--trigger", "ticker:guarded", "--trigger-cmd", command];
    let recorder = start(&lab, &ticker, &options);
    ticker.tell("guarded 1");
    wait_for_files(&lab, 1);
    super::dump(&lab, &recorder);
    recorder.stop();
    let said = std::fs::read_to_string(lab.file("said")).expect("what it said");
    let written = files(lab.path(), "t.data");
    let expected = [
        format!(
            "probe sdt_ticker:guarded {} {}",
            ticker.pid(),
            written[0].display()
        ),
        format!("request 0 {}", written[1].display()),
    ];
    // Both may run at once.
    let said: BTreeSet<String> = said.lines().map(str::to_owned).collect();
    assert_eq!(said, BTreeSet::from(expected));
}

/// Triggers that fire too soon after one are counted at the end, also if no other file follows.
#[test]
fn triggers_in_the_cooldown_are_counted_at_the_end() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let recorder = start(&lab, &ticker, &["--trigger", "ticker:guarded"]);
    ticker.tell("guarded 1");
    wait_for_files(&lab, 1);
    ticker.tell("guarded 2");
    ticker.hit("fire 1");
    let [file] = &files(lab.path(), "t.data")[..] else {
        panic!("one file is written");
    };
    recorder
        .stop()
        .complains(&format!("wrote 1 file, {}", file.display()))
        .complains("usdtrec: 2 further triggers fired without a file of their own");
}
