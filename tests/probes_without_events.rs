//! Probes without events: why.

use std::fs;
use std::process::Command;

use crate::common::{Build, Lab, Process, Recorder, Ticker, need_tool, run, test};

/// What `record` says of a command, and what `report` and `script` say of the trace, each without line breaks.
#[track_caller]
fn said_of(lab: &Lab, event: &str, command: &[&str]) -> [String; 3] {
    let mut record = lab.command(["record", "-m", "16M", "-o", "trace", "-e", event, "--"]);
    record.args(command);
    let recorded = run(record).success().stderr;
    let report = lab.usdtrec(["report", "-i", "trace"]).success().stdout;
    let script = lab.usdtrec(["script", "-i", "trace"]).success().stderr;
    [recorded, report, script].map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn php_without_its_variable() {
    let lab = Lab::privileged();
    need_tool("php8.2");
    fs::write(lab.file("a.php"), "<?php function f() {} f(); ?>").expect("a file");
    let event = "php:function__*@/usr/bin/php8.2";
    let reason = "no events of php:function__entry, php:function__return: \
                  they need USE_ZEND_DTRACE=1 in the environment of PHP when it starts";
    for said in said_of(&lab, event, &["php8.2", "a.php"]) {
        assert!(said.contains(reason), "{said}");
        assert!(!said.contains("mapped"), "{said}");
    }
    // Others that fired do not hide it.
    let [recorded, report, script] =
        said_of(&lab, "php:[fr]*@/usr/bin/php8.2", &["php8.2", "a.php"]);
    assert!(recorded.contains(reason), "{recorded}");
    assert!(report.contains(reason), "{report}");
    assert!(report.contains("0 events: php:"), "{report}");
    assert_eq!(script, "");
    let listed = lab.usdtrec(["list", "-v", "--file", "/usr/bin/php8.2", "function__entry"]);
    let listed = listed.success().stdout;
    assert!(listed.contains("needs: USE_ZEND_DTRACE=1 in"), "{listed}");
    // With it there is nothing to explain.
    let mut record = lab.command(["record", "-o", "trace", "-e", event, "--"]);
    record.args(["php8.2", "a.php"]).env("USE_ZEND_DTRACE", "1");
    let recorded = run(record).success().stderr;
    assert!(!recorded.contains("need"), "{recorded}");
}

#[test]
fn ruby_without_a_tracepoint_and_python_without_a_profile() {
    let lab = Lab::privileged();
    need_tool("ruby3.1");
    need_tool("/usr/bin/python3.11");
    let ruby = "ruby:method__*@/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1";
    let program = "def f; end; f";
    for said in said_of(&lab, ruby, &["ruby3.1", "--disable-gems", "-e", program]) {
        let reason = "they need a TracePoint in the program, such as";
        assert!(said.contains(reason), "{said}");
    }
    let python = "/usr/bin/python3.11";
    fs::write(lab.file("a.py"), "def f(): pass\nf()\n").expect("a file");
    let event = format!("python:function__entry@{python}");
    let mut record = lab.command(["record", "-o", "trace", "-e", &event, "--filter"]);
    record.args(["funcname == \"f\"", "--", python, "-I", "-S", "a.py"]);
    let recorded = run(record).success();
    recorded
        .complains(" 0 events")
        .complains("no events of python:function__entry passed the filter ")
        .complains("; to be hit at all, it needs (3.11) a profile or trace");
}

#[test]
fn java_without_its_switches() {
    const LIBRARY: &str = "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so";
    let lab = Lab::privileged();
    need_tool("java");
    need_tool(LIBRARY);
    let event = format!("hotspot:[mo][eob][tj]*@{LIBRARY}");
    let [recorded, report, _] = said_of(&lab, &event, &["java", "-version"]);
    for said in [recorded, report] {
        let method = "they need -XX:+DTraceMethodProbes (or -XX:+ExtendedDTraceProbes)";
        assert!(said.contains(method), "{said}");
        assert!(
            said.contains("hotspot:object__alloc: it needs -XX:+DTraceAllocProbes"),
            "{said}"
        );
    }
}

/// A build with a build-id of its own: what other tests run has the same contents otherwise, which counts as the same file.
fn unlike_others() -> Build {
    let build_id = format!("-Wl,--build-id=0x{:016x}", std::process::id());
    Build {
        options: Vec::leak(vec!["-O1", String::leak(build_id)]),
        ..Build::USUAL
    }
}

/// No process runs it, and then one runs its former version.
#[test]
fn no_process_maps_it_or_one_maps_another_version() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    ticker.hit("tick 1");
    let (path, pid) = (ticker.program().to_owned(), ticker.pid());
    let record = |event: &str| {
        let options = ["-o", "trace", "-e", event, "-a"];
        let recorded = Recorder::start(&lab, options).stop();
        let report = lab.usdtrec(["report", "-i", "trace"]).success().stdout;
        assert!(report.contains("No events."), "{report}");
        let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
        (recorded.stderr, report)
    };
    // As an upgrade does it.
    unlike_others().make(&lab, "ticker.c", "new");
    fs::rename(lab.file("new"), &path).expect("the new program");
    let (recorded, report) = record(&ticker.event("tick"));
    let reason = format!(
        "process {pid} runs another version of {} than was recorded; record it with: -p {pid}",
        path.display()
    );
    assert!(recorded.contains(&reason), "{recorded}");
    assert!(report.contains(&reason), "{report}");
    drop(ticker);
    let other = unlike_others().make(&lab, "sites.c", "sites");
    let (recorded, report) = record(&format!("*:*@{}", other.display()));
    let reason = format!("no recorded process mapped {}", other.display());
    assert!(recorded.contains(&reason), "{recorded}");
    assert!(report.contains(&reason), "{report}");
    // Mapped, and not hit: there is no such reason.
    let idle = Process::spawn(Command::new(&path));
    let (recorded, _) = record(&format!("*:*@{}", path.display()));
    assert!(!recorded.contains("mapped"), "{recorded}");
    drop(idle);
}

/// Why a recording of a process ends, without a signal.
#[test]
fn the_end_of_the_process_is_said() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let (pid, event) = (ticker.pid().to_string(), ticker.event("tick"));
    let recorder = Recorder::start(&lab, ["-p", &pid, "-e", &event, "-o", "trace"]);
    ticker.hit("fire 2");
    drop(ticker);
    let ended = recorder.finish().success();
    let said = format!(
        "[ usdtrec record: process {pid} and what it started have ended; {pid} was killed by signal 9 (SIGKILL)"
    );
    ended.complains(&said).complains(" 2 events");
}

/// Rates are over the time recorded, which is longer than from the first to the last event.
#[test]
fn rates_are_over_the_recording() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let event = ticker.event("tick");
    let recorder = Recorder::start(&lab, ["-a", "-e", &event, "-o", "trace"]);
    ticker.hit("fire 3");
    std::thread::sleep(std::time::Duration::from_secs(1));
    recorder.stop();
    let report = |options: &[&str]| {
        let all = [&["report", "-i", "trace", "--format", "json"], options].concat();
        let report = lab.usdtrec(all).success().stdout;
        serde_json::from_str::<serde_json::Value>(&report).expect("JSON")
    };
    let whole = report(&[]);
    let number = |name: &str| whole[name].as_u64().expect("a number");
    let seconds = (number("end_ns") - number("begin_ns")) as f64 / 1e9;
    assert!(seconds >= 1.0, "{whole}");
    assert!(number("begin_ns") <= number("first_ns") && number("last_ns") <= number("end_ns"));
    let rate = whole["probes"][0]["per_second"].as_f64().expect("a rate");
    assert!((rate * seconds - 3.0).abs() < 1e-6, "{rate} in {seconds} s");
    // Half of the recording's time, and the same hits.
    let middle = (number("last_ns") + number("end_ns")) / 2;
    let until = format!(",{}.{:09}", middle / 1_000_000_000, middle % 1_000_000_000);
    let half = report(&["--time", &until]);
    assert_eq!(half["end_ns"], middle);
    assert!(half["probes"][0]["per_second"].as_f64() > Some(rate));
}

/// Old habits of perf's users: what makes no difference is taken, what cannot be had is refused with the reason.
#[test]
fn options_of_perf() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "first.c", "first");
    let event = format!("sdt_shapes:first@{}", program.display());
    let program = program.to_str().expect("a path");
    lab.usdtrec(["record", "-aR", "-e", &event, "--", program])
        .success();
    lab.usdtrec(["record", "-aRT", "-e", &event, "--", program])
        .success();
    for (option, why) in [
        ("-c1", "every hit is recorded"),
        ("-F99", "every hit is recorded"),
    ] {
        lab.usdtrec(["record", option, "-e", &event, "--", program])
            .exits(2)
            .complains(why);
    }
}

/// The recording is in several files, and the reason is the same.
#[test]
fn reasons_with_switched_files() {
    let lab = Lab::privileged();
    let ticker = Ticker::start(&lab);
    let other = Build::USUAL.make(&lab, "sites.c", "sites");
    let event = format!("*:*@{}", other.display());
    let pid = ticker.pid().to_string();
    let options = ["-p", &pid, "-e", &event, "-o", "trace", "--switch-output"];
    let recorder = Recorder::start(&lab, options);
    recorder.signal("USR2");
    let reason = format!("no recorded process mapped {}", other.display());
    let said = recorder.stop().stderr;
    assert!(said.contains(&reason), "{said}");
}

/// `-F -ip` leaves out the address that perf shows before the arguments, too; templates have no spans, and say so.
#[test]
fn fields_that_are_left_out() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "first.c", "first");
    let event = format!("sdt_shapes:first@{}", program.display());
    let program = program.to_str().expect("a path");
    lab.usdtrec(["record", "-o", "trace", "-e", &event, "--", program])
        .success();
    let script = |options: &[&str]| lab.usdtrec([&["script", "-i", "trace"], options].concat());
    let usual = script(&[]).success().stdout;
    let without = script(&["-F", "-ip"]).success().stdout;
    assert!(usual.lines().count() == 2 && usual.lines().all(|line| line.contains(": (")));
    for (usual, without) in usual.lines().zip(without.lines()) {
        let (start, rest) = usual.split_once('(').expect("an address");
        let (_, rest) = rest.split_once(')').expect("its end");
        assert_eq!(format!("{start}{}", rest.trim_start()), without);
    }
    script(&["--format", "{span}"])
        .exits(1)
        .complains("templates have no spans");
    let refused = script(&["--format", "{what}"]).exits(1).stderr;
    // The id of a span of OpenTelemetry is a field of events.
    let refused = refused.replace("span_id", "");
    assert!(!refused.contains("span"), "{refused}");
}

/// Hits that a filter left out are no reason to look for a switch; nor is what a reader leaves out.
#[test]
fn filters_that_leave_out_everything() {
    let lab = Lab::privileged();
    let mut ticker = Ticker::start(&lab);
    let (pid, event) = (ticker.pid().to_string(), ticker.event("tick"));
    let options = [
        "-p", &pid, "-e", &event, "--filter", "arg1 < 0", "-o", "trace",
    ];
    let recorder = Recorder::start(&lab, options);
    ticker.hit("fire 2");
    let reason = "no events of ticker:tick passed the filter (arg1 < 0), or it had no hits";
    recorder.stop().complains(" 0 events").complains(reason);
    let report = lab.usdtrec(["report", "-i", "trace"]).success().stdout;
    assert!(report.contains(reason), "{report}");
    // A reader's filter.
    let php = "/usr/bin/php8.2";
    need_tool(php);
    fs::write(lab.file("a.php"), "<?php function f() {} f(); ?>").expect("a file");
    let event = format!("php:function__entry@{php}");
    let mut record = lab.command(["record", "-o", "trace", "-e", &event, "--", php, "a.php"]);
    record.env("USE_ZEND_DTRACE", "1");
    run(record).success();
    let report = lab.usdtrec(["report", "-i", "trace", "--pid", "1"]);
    let report = report.success().stdout;
    assert!(report.contains("No events."), "{report}");
    assert!(!report.contains("need"), "{report}");
}

/// What nobody asked for by name is not missed, and a program that did not run needs nothing.
#[test]
fn only_what_was_asked_for_is_missed() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let other = Build::USUAL.make(&lab, "first.c", "first");
    for file in [&program, &other] {
        let add = ["buildid-cache".as_ref(), "--add".as_ref(), file.as_os_str()];
        lab.usdtrec(add).success();
    }
    let schema =
        "[[probe]]\nprovider = \"shapes\"\nname = \"first\"\nneeds = \"a switch\"\nmore = true\n";
    fs::write(lab.file("first.toml"), schema).expect("a file");
    lab.usdtrec(["schema", "import", "first.toml"]).success();
    let reason = format!("no recorded process mapped {}", other.display());
    let program = program.to_str().expect("a path in UTF-8");
    for (event, is_asked) in [("*:*", false), ("ticker:*,shapes:*", true)] {
        for said in &said_of(&lab, event, &[program, "5"])[..2] {
            assert_eq!(said.contains(&reason), is_asked, "{event}: {said}");
            assert!(!said.contains("a switch"), "{event}: {said}");
        }
    }
}
