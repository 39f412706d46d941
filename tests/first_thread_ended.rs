//! A process whose first thread has ended while another one runs: `/proc/PID` has neither its mappings nor its memory.

use crate::common::{Build, Engine, Lab, Recorder, Ticker, need_tool, test};

/// A ticker whose first thread has ended.
fn ticker(lab: &Lab) -> Ticker {
    let mut ticker = Ticker::start(lab);
    ticker.tell("leave");
    ticker
}

#[test]
fn it_is_listed_and_found() {
    let lab = Lab::privileged();
    let ticker = ticker(&lab);
    let (pid, path) = (ticker.pid().to_string(), ticker.program().display());
    let listed = lab.usdtrec(["list", "-p", &pid]).success();
    assert!(listed.stdout.contains("ticker:tick"), "{}", listed.stdout);
    let listed = lab
        .usdtrec(["list", "-a", "--format", "json", "ticker:*"])
        .success();
    let has = |line: &str| line.contains(&*path.to_string()) && line.contains(&pid);
    assert!(listed.stdout.lines().any(has), "{}", listed.stdout);
    let doctor = lab.usdtrec(["doctor", "-p", &pid]);
    assert!(doctor.stdout.contains("ticker"), "{}", doctor.stdout);
}

#[test]
fn its_hits_are_recorded_with_callers_by_each_choice() {
    let lab = Lab::privileged();
    let mut ticker = ticker(&lab);
    let (pid, at_path) = (ticker.pid().to_string(), ticker.event("tick"));
    for engine in Engine::ALL {
        for choice in [
            vec!["-p", &pid, "-e", "sdt_ticker:tick"],
            vec!["-p", &pid, "-e", &at_path],
            vec!["-a", "-e", &at_path],
        ] {
            // Its events cannot follow the threads of a process.
            if engine == Engine::PerfPmu && choice[0] == "-p" {
                continue;
            }
            let options = ["-g", "--engine", engine.option(), "-o", "trace"];
            let recorder = Recorder::start(&lab, options.into_iter().chain(choice.iter().copied()));
            ticker.hit("fire 3");
            recorder.stop();
            assert_eq!(lab.events("trace").len(), 3, "{engine:?} {choice:?}");
            let script = lab
                .usdtrec(["script", "-i", "trace", "-F", "+exe"])
                .success();
            let path = ticker.program().display().to_string();
            for text in [&*path, "listen+"] {
                let count = script.stdout.matches(text).count();
                assert!(count >= 3, "{engine:?} {choice:?}\n{}", script.stdout);
            }
        }
    }
}

/// With lld, the recorder increments the semaphore itself, in the memory of the process.
#[test]
fn a_semaphore_of_lld_is_lowered_at_the_end() {
    let lab = Lab::privileged();
    need_tool("ld.lld");
    let build = Build {
        options: &["-O2", "-fuse-ld=lld"],
        ..Build::USUAL
    };
    let program = build.make(&lab, "ticker.c", "ticker");
    let event = format!("sdt_ticker:*@{}", program.display());
    let recorder = Recorder::start(&lab, ["-a", "-o", "trace", "-e", &event]);
    let mut tickers: Vec<Ticker> = (0..5).map(|_| Ticker::again(&program)).collect();
    for ticker in &mut tickers {
        ticker.tell("leave");
    }
    for ticker in &mut tickers {
        ticker.tell("guarded 2");
    }
    recorder.stop();
    for ticker in &mut tickers {
        assert_eq!(ticker.semaphores(), (0, 0));
    }
}
