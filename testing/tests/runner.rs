//! The runner, run on tests that pass, fail and are skipped: this program again, with an environment variable that says which.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what does not hold in a test is a failed test"
)]

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
    use super::{is_inner, skip, test};

    #[test]
    fn passes() {}

    #[test]
    fn fails() {
        assert!(!is_inner(), "the reason of the failure");
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
    let (text, status) = run(&["inner::"], None);
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
    let last = "1 passed; 1 failed; 1 ignored; 0 measured; 2 filtered out";
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
        "inner::fails: test\ninner::passes: test\ninner::skipped_deep_down: test\n"
    );
    for arguments in [
        &["--exact", "inner::passes", "--nocapture"][..],
        &["inner::", "--skip", "fails", "--test-threads=1"],
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
