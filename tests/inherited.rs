//! What a recorder inherits from its caller: signals that are ignored or blocked, closed streams, a umask, and to be the first process of a container.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::common::{Build, Lab, Process, Ticker, need_tool, run, signal, test, wait_until};

/// Executes the rest of its words with the signals ignored that the first one names, and those blocked that the second one names: no shell does that with
/// all of them, and Debian always has perl.
const CALLER: &str = "use POSIX; my ($ignored, $blocked) = (shift, shift); $SIG{$_} = 'IGNORE' for split / /, $ignored; \
    sigprocmask(SIG_BLOCK, POSIX::SigSet->new(map { POSIX->can(\"SIG$_\")->() } split / /, $blocked)); exec @ARGV or die";

/// Signals that a caller ignores or blocks.
struct Inherited {
    ignored: &'static str,
    blocked: &'static str,
}

/// The words of a caller that executes a program.
fn caller<'w>(inherited: &Inherited, words: &[&'w str]) -> Vec<&'w str> {
    let head = ["-e", CALLER, inherited.ignored, inherited.blocked];
    head.into_iter().chain(words.iter().copied()).collect()
}

/// As with `env`: what the recorder itself does with signals is not the command's.
#[test]
fn commands_ignore_and_block_what_the_caller_does() {
    let lab = Lab::privileged();
    need_tool("perl");
    let ticker = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let event = format!("sdt_ticker:tick@{}", ticker.display());
    let show = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"];
    for (ignored, blocked) in [
        ("", ""),
        ("HUP", ""),
        ("INT QUIT", ""),
        ("PIPE CHLD TERM USR1 ALRM TSTP", ""),
        ("", "INT TERM CHLD USR1 HUP"),
        ("CHLD", "PIPE QUIT"),
    ] {
        let inherited = Inherited { ignored, blocked };
        let perl = Path::new("perl");
        let expected = run(lab.at_home(perl, caller(&inherited, &show))).success();
        let mut words = vec![env!("CARGO_BIN_EXE_usdtrec")];
        words.extend(["record", "-o", "trace", "-e", &event, "--"]);
        words.extend(show);
        let found = run(lab.at_home(perl, caller(&inherited, &words))).success();
        let signals = [&found, &expected].map(|shown| masks(&shown.stdout));
        assert_eq!(signals[0], signals[1], "{ignored}; {blocked}");
    }
}

/// The masks in lines of `/proc/PID/status`, without the two signals that are the C library's own.
fn masks(lines: &str) -> Vec<u64> {
    const OF_C_LIBRARY: u64 = 0b11 << 31;
    let masks = lines.lines().filter_map(|line| line.split('\t').nth(1));
    let masks = masks.map(|mask| u64::from_str_radix(mask, 16).expect("a mask"));
    masks.map(|mask| mask & !OF_C_LIBRARY).collect()
}

/// A background job of a script ignores SIGINT and SIGQUIT; `kill -INT` ends it all the same, as it ends perf. No signal that is blocked is missed.
#[test]
fn signals_that_the_caller_ignores_or_blocks_end_a_recording() {
    let lab = Lab::privileged();
    need_tool("perl");
    let mut target = Ticker::start(&lab);
    let event = target.event("tick");
    for (ignored, blocked, ending) in [
        ("INT QUIT", "", "INT"),
        ("HUP INT QUIT TERM PIPE CHLD", "", "TERM"),
        ("", "INT QUIT TERM HUP CHLD ALRM", "QUIT"),
        ("CHLD", "INT TERM", "INT"),
    ] {
        let inherited = Inherited { ignored, blocked };
        let words = [env!("CARGO_BIN_EXE_usdtrec"), "record"];
        let mut words = caller(&inherited, &words);
        words.extend([
            "--engine",
            "perf-tracefs",
            "-a",
            "-o",
            "trace",
            "-e",
            &event,
        ]);
        let mut recorder = Process::spawn(lab.at_home(Path::new("perl"), words));
        recorder.until_error_line("[ usdtrec record:");
        if ignored.contains("QUIT") {
            recorder.signal("QUIT");
        }
        target.hit("fire 5");
        recorder.signal(ending);
        let ended = recorder.finish().success();
        assert!(
            ended.stderr.contains("5 events, 0 lost"),
            "{ignored}; {blocked}: {}",
            ended.stderr
        );
    }
    wait_until("the end of the probes", || target.semaphores().0 == 0);
}

/// No ring and no trace has the number of a standard stream.
#[test]
fn closed_streams_stay_closed() {
    let lab = Lab::privileged();
    let ticker = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let ticker = ticker.to_str().expect("a path in UTF-8");
    let event = format!("sdt_ticker:tick@{ticker}");
    let usdtrec = env!("CARGO_BIN_EXE_usdtrec");
    for closed in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        let script = format!("exec \"$@\" {closed}");
        let words = ["-c", &script, "sh", usdtrec, "record", "-o", "trace"];
        let rest = ["-e", &event, "--", ticker, "5"];
        let words = words.iter().chain(&rest);
        run(lab.at_home(Path::new("sh"), words)).success();
        assert_eq!(lab.events("trace").len(), 5, "{closed}");
    }
    let words = ["-c", "exec \"$@\" >&-", "sh", usdtrec, "record", "-o", "-"];
    let rest = ["-e", &event, "--", ticker, "5"];
    let words = words.iter().chain(&rest);
    let refused = run(lab.at_home(Path::new("sh"), words)).exits(2);
    refused.complains("standard output is closed");
}

/// A trace is its owner's, and the cache is not for everybody to write: root would not use it.
#[test]
fn files_have_their_modes_whatever_the_umask() {
    let lab = Lab::privileged();
    let ticker = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let ticker = ticker.to_str().expect("a path in UTF-8");
    let event = format!("sdt_ticker:tick@{ticker}");
    for umask in ["0", "077", "0777"] {
        let cache = lab.file(&format!("cache-{umask}"));
        let script = format!("umask {umask}; exec \"$@\"");
        let shell = |words: &[&str]| {
            let all = ["-c", &script, "sh", env!("CARGO_BIN_EXE_usdtrec")];
            let mut command = lab.at_home(Path::new("sh"), all.iter().chain(words));
            command.env("PERF_BUILDID_DIR", &cache);
            run(command).success()
        };
        shell(&["buildid-cache", "--add", ticker]).silent();
        shell(&["record", "-o", "trace", "-e", &event, "--", ticker, "5"]);
        let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode();
        assert_eq!(mode(&cache) & 0o022, 0, "{umask}");
        assert_eq!(mode(&lab.file("trace")) & 0o077, 0, "{umask}");
        assert_eq!(lab.events("trace").len(), 5, "{umask}");
    }
}

/// The recorder as process 1, and its id outside.
fn first_process(lab: &Lab, words: &[&str]) -> (Process, u32) {
    let options = ["--pid", "--fork", "--mount-proc", "--kill-child"];
    let mut command = lab.at_home(Path::new("unshare"), options);
    command.arg(env!("CARGO_BIN_EXE_usdtrec")).args(words);
    let process = Process::spawn(command);
    let children = format!("/proc/{0}/task/{0}/children", process.pid());
    let child = || {
        fs::read_to_string(&children)
            .ok()?
            .trim()
            .parse::<u32>()
            .ok()
    };
    wait_until("process 1", || {
        let name = child().map(|child| format!("/proc/{child}/comm"));
        let name = name.and_then(|name| fs::read_to_string(name).ok());
        name.is_some_and(|name| name.trim_end() == "usdtrec")
    });
    let pid = child().expect("process 1");
    (process, pid)
}

/// The kernel ignores signals to the first process of a container that it does not handle.
#[test]
fn signals_end_the_first_process_of_a_container() {
    let lab = Lab::privileged();
    let mut target = Ticker::start(&lab);
    let event = target.event("tick");
    for name in ["INT", "TERM", "HUP", "QUIT"] {
        let words = ["record", "-a", "-o", "trace", "-e", &event];
        let (mut recorder, pid) = first_process(&lab, &words);
        recorder.until_error_line("[ usdtrec record:");
        target.hit("fire 5");
        signal(pid, name);
        recorder.finish().success().complains("events, 0 lost");
    }
    // Nothing is recorded: a verb that reads what nobody writes.
    let fifo = lab.file("fifo");
    let mut mkfifo = std::process::Command::new("mkfifo");
    mkfifo.arg(&fifo);
    run(mkfifo).success();
    let (reader, pid) = first_process(&lab, &["script", "-i", "-"]);
    // Before it handles signals, the kernel ignores them.
    std::thread::sleep(std::time::Duration::from_secs(2));
    signal(pid, "INT");
    reader.finish().exits(130);
}

/// Nobody else waits there for what has lost its parent.
#[test]
fn the_first_process_of_a_container_waits_for_orphans() {
    let lab = Lab::privileged();
    let ticker = Build::USUAL.make(&lab, "ticker.c", "ticker");
    let event = format!("sdt_ticker:tick@{}", ticker.display());
    let script = "for i in 1 2 3; do (true & exec true); done; \
        zombies() { cat /proc/[0-9]*/stat | grep -c ') Z 1 '; }; \
        for i in $(seq 100); do n=$(zombies); [ $n != 0 ] && break; (true & exec true); done; echo $n had ended; \
        for i in $(seq 120); do [ $(zombies) = 0 ] && break; sleep 1; done; zombies; exit 3";
    let words = [
        "record", "-o", "trace", "-e", &event, "--", "sh", "-c", script,
    ];
    let (recorder, _) = first_process(&lab, &words);
    let ended = recorder.finish().exits(3);
    assert!(!ended.stdout.starts_with("0 had"), "{}", ended.stdout);
    assert!(ended.stdout.ends_with("had ended\n0\n"), "{}", ended.stdout);
}
