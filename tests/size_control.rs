//! Files of limited size, and one file after another: each is complete in itself, and no hit is lost between two.

use crate::common::{Build, Lab, Recorder, Ticker, run, test};

/// Numbers of the hits in the numbered files of `trace`, from file `first` on.
fn hits_of(lab: &Lab, trace: &str, first: usize) -> Vec<Vec<i128>> {
    (first..)
        .map(|number| format!("{trace}.{number}"))
        .take_while(|name| lab.file(name).exists())
        .map(|name| {
            lab.events(&name)
                .iter()
                .map(|event| event.integer(1))
                .collect()
        })
        .collect()
}

#[test]
fn new_file_on_a_signal() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let event = ticker.event("tick");
    let recorder = Recorder::start(&lab, ["-a", "-e", &event, "-o", "trace", "--switch-output"]);
    let mut fired = Vec::new();
    for number in 2..=4 {
        fired.push(
            ticker
                .hit("fire 3")
                .into_iter()
                .map(|(count, _)| count)
                .collect::<Vec<_>>(),
        );
        recorder.signal("USR2");
        while !lab.file(&format!("trace.{number}")).exists() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
    recorder.stop();
    let files = hits_of(&lab, "trace", 1);
    assert_eq!(files.len(), 4);
    assert_eq!(files.concat(), fired.concat());
    // Who is in a file is named in it, also if he started before.
    assert!(
        lab.events("trace.3")
            .iter()
            .all(|event| event.comm == "ticker")
    );
}

#[test]
fn numbered_files_hold_every_hit_and_the_oldest_go() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "hot.c", "hot");
    let event = format!("sdt_hot:req@{}", program.display());
    // Between the parts the recorder gets the time to begin files.
    let hits = format!(
        "for part in 1 2 3 4 5; do echo go | {} 12000; sleep 0.3; done",
        program.display()
    );
    let record = |trace: &str, options: &[&str]| {
        let mut command = lab.command(["record", "-m", "32M", "-z=0", "-e", &event, "-o", trace]);
        command.args(options).args(["--", "sh", "-c", &hits]);
        run(command)
            .success()
            .complains("60000 events")
            .complains(" 0 lost")
    };
    record("all", &["--switch-output=1M"]);
    let files = hits_of(&lab, "all", 1);
    assert!(files.len() > 1, "{} files", files.len());
    assert_eq!(files.iter().map(Vec::len).sum::<usize>(), 60_000);
    record("newest", &["--switch-output=1M", "--switch-max-files=1"]);
    assert!(!lab.file("newest.1").exists());
    let left = (2..100).filter(|number| lab.file(&format!("newest.{number}")).exists());
    assert_eq!(left.count(), 1);
}

#[test]
fn ends_at_a_size() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let event = ticker.event("tick");
    // The processes that run already are in the file, too: there may be thousands.
    let options = ["-a", "-e", &event, "-z=0", "--max-size", "1M"];
    let recorder = Recorder::start(&lab, options);
    ticker.hit("fire 20000");
    recorder.finish().success().complains("size limit reached");
    assert!(!lab.events("usdtrec.data").is_empty());
}
