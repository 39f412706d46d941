//! A test runner for tests that find out while they run that they cannot: no privileges, a program that is not installed.
//!
//! The usual runner counts those as passed. With this one they call [`skip`] and are counted as ignored, with the reason. A target has
//! `harness = false`, `fn main() -> ExitCode { usdtrec_testing::main() }` and, in each file, `use usdtrec_testing::test;`, so that
//! `#[test]` means the attribute of this crate. Options are those of the usual runner.
//!
//! With `CI=true` nothing may be skipped: there it is a failure.
//!
//! What a test prints is shown whether it passes or fails: the usual runner captures it by an unstable feature of the standard library.
//! The message of a panic is shown in the list of failures, and with `--nocapture` at once.
//!
//! At the end the longest tests are listed with their durations, and all of them are added to the file `USDTREC_TEST_TIMES`.
//!
//! Tests that repeat something with random input ask [`repetitions`] how often. [`compare_document`] and [`compare_section`] compare documents with what they
//! are generated from.
//!
//! Tests have the same surroundings whoever starts them (`surroundings.rs`). A test that does not end within `USDTREC_TEST_LIMIT` seconds (300; 1800 with
//! `USDTREC_TEST_DEEP=1`) fails with the stacks of its processes, which are ended; what waits for other tests, in [`waiting`], does not count.

mod durations;
mod generated;
mod leftovers;
mod limit;
mod privilege;
mod repetitions;
mod split_mix;
mod surroundings;

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::RefCell;
use std::panic::{self, PanicHookInfo};
use std::path::Path;
use std::process::ExitCode;
use std::thread::available_parallelism;
use std::time::Instant;

use libtest_mimic::{Arguments, Completion, Failed, Trial};

pub use generated::{compare_document, compare_section};
pub use leftovers::note_directory;
pub use limit::waiting;
pub use privilege::can_record;
pub use repetitions::{is_deep, number, repetitions};
pub use split_mix::SplitMix64;

#[doc(hidden)]
pub use inventory;
pub use usdtrec_testing_macros::test;

/// A function with `#[test]`.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// Path of its module, with the crate.
    pub module: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The file that it is in, as the compiler was given it.
    pub file: &'static str,
    /// The folder of its package, in which it runs.
    pub package: &'static str,
    /// The function.
    pub function: fn(),
}

inventory::collect!(Test);

/// Registers a function as a test. Written by `#[test]`.
#[doc(hidden)]
#[macro_export]
macro_rules! register {
    ($name:ident) => {
        $crate::inventory::submit! {
            $crate::Test {
                module: ::core::module_path!(),
                name: ::core::stringify!($name),
                file: ::core::file!(),
                package: ::core::env!("CARGO_MANIFEST_DIR"),
                function: $name,
            }
        }
    };
}

/// All tests of this program.
pub fn tests() -> impl Iterator<Item = &'static Test> {
    inventory::iter::<Test>.into_iter()
}

/// Tests that run at once, for each CPU: tests of other programs mostly wait for these.
const THREADS_FOR_A_CPU: usize = 3;

/// Runs the tests that the command line asks for. `RUST_TEST_THREADS` is the number that runs at once.
#[must_use]
pub fn main() -> ExitCode {
    if let Some(test) = tests().next()
        && let Err(error) = std::env::set_current_dir(test.package)
    {
        eprintln!("{}: {error}", test.package);
        return ExitCode::FAILURE;
    }
    let (options, filters) = split(std::env::args().collect());
    let mut arguments = Arguments::from_iter(options);
    let threads = std::env::var("RUST_TEST_THREADS").ok();
    let threads = threads.and_then(|threads| threads.parse().ok());
    let threads = threads.or_else(|| Some(THREADS_FOR_A_CPU * available_parallelism().ok()?.get()));
    arguments.test_threads = arguments.test_threads.or(threads);
    if !arguments.nocapture {
        keep_messages();
    }
    let is_wanted = |test: &&Test| {
        let path = test.path();
        let fits = |filter: &String| match arguments.exact {
            true => path == *filter,
            false => path.contains(filter),
        };
        filters.is_empty() || filters.iter().any(fits)
    };
    let mut trials: Vec<Trial> = tests().filter(is_wanted).map(|test| test.trial()).collect();
    trials.sort_unstable_by(|one, other| one.name().cmp(other.name()));
    let code = libtest_mimic::run(&arguments, trials).exit_code();
    print!("{}", durations::longest());
    if let Some(file) = std::env::var_os("USDTREC_TEST_TIMES")
        && let Err(error) = durations::append(Path::new(&file))
    {
        eprintln!("USDTREC_TEST_TIMES: {}: {error}", file.display());
    }
    code
}

/// The command line without its filters, if there are several: libtest-mimic takes one at most.
fn split(arguments: Vec<String>) -> (Vec<String>, Vec<String>) {
    /// Options whose value is a word of its own.
    const WITH_VALUE: [&str; 6] = [
        "--test-threads",
        "--skip",
        "--logfile",
        "--color",
        "--format",
        "-Z",
    ];
    let (mut options, mut filters) = (Vec::new(), Vec::new());
    let mut is_value = true;
    for argument in arguments.iter().cloned() {
        if is_value || argument.starts_with('-') {
            is_value = !is_value && WITH_VALUE.contains(&argument.as_str());
            options.push(argument);
        } else {
            filters.push(argument);
        }
    }
    match filters.len() {
        0 | 1 => (arguments, Vec::new()),
        _ => (options, filters),
    }
}

/// Ends the test that this thread runs, which is counted as ignored.
///
/// # Panics
/// With `CI=true`, where nothing may be skipped, and in a thread that runs no test.
#[track_caller]
pub fn skip(reason: &str) -> ! {
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
        "{reason}, and with CI=true no test may be skipped"
    );
    let is_test = MESSAGE.with_borrow(Option::is_some);
    assert!(is_test, "{reason}, and no test can be skipped from here");
    // No panic, which would be shown as one.
    panic::resume_unwind(Box::new(Skipped(reason.to_owned())))
}

/// What a test ends with that is skipped.
struct Skipped(String);

impl Test {
    /// Its path below the crate, as the usual runner shows it.
    #[must_use]
    pub fn path(&self) -> String {
        match self.module.split_once("::") {
            Some((_, module)) => format!("{module}::{}", self.name),
            None => self.name.to_owned(),
        }
    }

    fn trial(self) -> Trial {
        Trial::ignorable_test(self.path(), move || self.run())
    }

    fn run(self) -> Result<Completion, Failed> {
        let begin = Instant::now();
        let outcome = limit::run(self.name, move || self.outcome());
        durations::add(self.path(), begin.elapsed());
        outcome
    }

    /// Calls the function, in the thread of the test. Backtraces are shown up to here.
    #[inline(never)]
    fn outcome(self) -> Result<Completion, Failed> {
        MESSAGE.set(Some(String::new()));
        let result = panic::catch_unwind(self.function);
        let message = MESSAGE.take().unwrap_or_default();
        match result {
            Ok(()) => Ok(Completion::Completed),
            Err(cause) => match cause.downcast::<Skipped>() {
                Ok(skipped) => Ok(Completion::ignored_with(skipped.0)),
                Err(cause) if message.is_empty() => Err(words(&*cause).into()),
                Err(_) => Err(message.into()),
            },
        }
    }
}

thread_local! {
    /// What the panic of the test says that this thread runs; `None` if it runs none.
    static MESSAGE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps what panics of tests say for the list of failures. Those of other threads are shown at once.
fn keep_messages() {
    let show = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let kept = MESSAGE.with_borrow_mut(|message| match message {
            Some(message) => {
                *message += &words_of(panic);
                true
            }
            None => false,
        });
        if !kept {
            show(panic);
        }
    }));
}

/// Where a panic was, and what it says.
fn words_of(panic: &PanicHookInfo<'_>) -> String {
    let backtrace = Backtrace::capture();
    if backtrace.status() != BacktraceStatus::Captured {
        return panic.to_string();
    }
    let frames = backtrace.to_string();
    // As the usual runner shows it: from the panic to the test.
    let frames = frames.split("__rust_end_short_backtrace").last();
    let frames = frames.and_then(|frames| frames.split("usdtrec_testing::Test::outcome").next());
    format!("{panic}\n{}", frames.unwrap_or_default())
}

/// What a panic says that no hook has seen.
fn words(cause: &(dyn Any + Send)) -> String {
    let text = cause.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| cause.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "the test panicked".to_owned())
}
