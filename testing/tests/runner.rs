//! The runner, run on tests that pass, fail and are skipped: this program again, with an environment variable that says which.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what does not hold in a test is a failed test"
)]

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use usdtrec_testing::{skip, test};

/// Set for the program that is looked at.
const INNER: &str = "USDTREC_TESTING_INNER";

fn main() -> ExitCode {
    usdtrec_testing::main()
}

fn is_inner() -> bool {
    std::env::var_os(INNER).is_some()
}

mod inner {
    use std::process::{Command, Stdio};

    use super::{is_inner, skip, test};

    #[test]
    fn passes() {}

    #[test]
    fn fails() {
        assert!(!is_inner(), "the reason of the failure");
    }

    /// Another process that does not end.
    #[test]
    fn hangs() {
        if is_inner() {
            let mut shell = Command::new("sh");
            shell.args(["-c", "echo $$ $(sleep 1000)"]);
            let _ = shell.stdout(Stdio::null()).status();
        }
    }

    /// Nor does this thread.
    #[test]
    fn hangs_alone() {
        if is_inner() {
            std::thread::sleep(std::time::Duration::from_secs(1000));
        }
    }

    /// What a test and what it starts find, whoever started the runner.
    #[test]
    fn surroundings() {
        // Two signals between the usual ones and those of real time are the C library's alone.
        let script = "grep -E '^Sig(Blk|Ign):' /proc/self/status | sed 's/[01238]\\(.\\{8\\}\\)$/0\\1/; s/[08]\\(.\\{7\\}\\)$/0\\1/'; umask; ulimit -c; [ \"$(ulimit -n)\" -ge 1024 ] && echo files; readlink /proc/self/fd/0; \
                      echo \"$TERM$NO_COLOR$LC_ALL$RUST_BACKTRACE$PERF_CONFIG\"; sed -n 2p Cargo.toml; [ -d \"$HOME\" ] && echo home; command -v ldconfig";
        let mut shell = Command::new("sh");
        let output = shell.args(["-c", script]).output().unwrap();
        assert!(output.status.success(), "its status is known");
        let found = String::from_utf8(output.stdout).unwrap();
        let expected = "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n0022\n0\nfiles\n/dev/null\n\n\
                        name = \"usdtrec-testing\"\nhome\n/usr/sbin/ldconfig\n";
        // Where /sbin is a link to it, either is found first.
        assert_eq!(found.replace("\n/sbin/", "\n/usr/sbin/"), expected);
    }

    #[test]
    fn skipped_deep_down() {
        fn deep() -> u8 {
            skip("there is no such tool")
        }
        if is_inner() {
            let _ = deep();
        }
    }
}

/// What this program says to arguments, and its exit status.
fn run(arguments: &[&str], ci: Option<&str>) -> (String, Option<i32>) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(arguments).env(INNER, "1").env_remove("CI");
    command.envs(ci.map(|ci| ("CI", ci)));
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8(text).unwrap(), output.status.code())
}

#[test]
fn skipped_tests_are_counted_as_ignored() {
    if is_inner() {
        return;
    }
    let (text, status) = run(
        &["inner::", "--skip", "hangs", "--skip", "surroundings"],
        None,
    );
    assert_eq!(status, Some(101), "{text}");
    let line = |name: &str| {
        let found = text.lines().find(|line| line.contains(name));
        found.unwrap_or_default().to_owned()
    };
    assert!(line("inner::passes").ends_with("ok"), "{text}");
    let skipped = line("inner::skipped_deep_down");
    assert!(
        skipped.ends_with("ignored (there is no such tool)"),
        "{text}"
    );
    assert!(
        text.contains("runner.rs:") && text.contains("the reason of the failure"),
        "{text}"
    );
    let last = "1 passed; 1 failed; 1 ignored; 0 measured; 7 filtered out";
    assert!(text.contains(last), "{text}");
}

#[test]
fn options_are_the_usual_runners() {
    if is_inner() {
        return;
    }
    let (listed, _) = run(&["inner::", "--list"], None);
    assert_eq!(
        listed,
        "inner::fails: test\ninner::hangs: test\ninner::hangs_alone: test\ninner::passes: test\ninner::skipped_deep_down: test\n\
         inner::surroundings: test\n"
    );
    for arguments in [
        &["--exact", "inner::passes", "--nocapture"][..],
        &["inner::passes", "--skip", "fails", "--test-threads=1"],
    ] {
        let (text, status) = run(arguments, None);
        assert!(status == Some(0) && text.contains("1 passed"), "{text}");
    }
    let (text, _) = run(
        &[
            "inner::passes",
            "--skip",
            "fails",
            "inner::skipped",
            "fails",
        ],
        None,
    );
    assert!(text.contains("running 2 tests"), "{text}");
    // With CI=true a skipped test has failed.
    let (text, status) = run(&["inner::skipped"], Some("true"));
    assert_eq!(status, Some(101), "{text}");
    assert!(text.contains("no test may be skipped"), "{text}");
}

/// The run goes on, ends with a failure, and says what the test and its processes were doing.
#[test]
fn tests_beyond_their_limit_fail_and_their_processes_end() {
    if is_inner() {
        return;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["inner::hangs", "inner::passes"])
        .env(INNER, "1");
    command.env("USDTREC_TEST_LIMIT", "1").env_remove("CI");
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(101), "{text}");
    assert!(text.contains("1 passed; 2 failed; 0 ignored"), "{text}");
    assert_eq!(text.matches("did not end within 1 s").count(), 2, "{text}");
    let sleeping = text
        .lines()
        .find(|line| line.ends_with("(sleep): sleep 1000 "));
    let sleeping = sleeping.unwrap_or_else(|| panic!("no sleep: {text}"));
    let pid = sleeping.split(' ').nth(1).unwrap();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    assert!(
        status.is_empty() || status.contains("State:\tZ"),
        "{status}"
    );
    for expected in [
        "(sh): sh -c",
        "S (sleeping), in ",
        "system call ",
        "(1:hangs_alone)",
    ] {
        let expected = expected.replace("1:", "");
        assert!(
            text.replace("0:", "").replace("1:", "").contains(&expected),
            "{expected}: {text}"
        );
    }
    assert!(text.contains("but the test goes on"), "{text}");
}

/// Whatever signals are ignored or blocked, and whatever else there is.
#[test]
fn tests_have_the_same_surroundings_whoever_starts_them() {
    if is_inner() {
        return;
    }
    const BLOCKED: &str =
        "use POSIX; sigprocmask(SIG_BLOCK, POSIX::SigSet->new(1 .. 31)); exec @ARGV";
    let program = std::env::current_exe().unwrap();
    let program = program.to_str().unwrap();
    let ignored = "trap '' HUP INT QUIT TERM PIPE CHLD USR1 ALRM; exec \"$0\" \"$@\"";
    for (what, words) in [
        ("ignored", &["sh", "-c", ignored][..]),
        ("nohup", &["nohup"]),
        ("umask", &["sh", "-c", "umask 077; exec \"$0\" \"$@\""]),
        ("no umask", &["sh", "-c", "umask 0; exec \"$0\" \"$@\""]),
        ("closed", &["sh", "-c", "exec \"$0\" \"$@\" <&-"]),
        (
            "limits",
            &[
                "sh",
                "-c",
                "ulimit -S -n 64; ulimit -S -c unlimited; exec \"$0\" \"$@\"",
            ],
        ),
        ("nothing", &["env", "-i"]),
        ("blocked", &["perl", "-e", BLOCKED]),
    ] {
        let mut command = Command::new(words[0]);
        command
            .args(&words[1..])
            .args([program, "--exact", "inner::surroundings"]);
        command.current_dir(Path::new("/"));
        for name in [
            "TERM",
            "NO_COLOR",
            "LC_ALL",
            "RUST_BACKTRACE",
            "PERF_CONFIG",
        ] {
            command.env(name, "1");
        }
        let output = command.output().unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(
            output.status.success() && text.contains("1 passed"),
            "{what}: {text}"
        );
    }
}
