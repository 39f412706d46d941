//! What a test program inherits from whoever starts it is set to the same for all tests: signals, umask, limits, environment, standard input.
//!
//! It is set before `main`, so that it holds with Rust's usual runner, too, in each test program that uses something of this crate.

use std::backtrace::Backtrace;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Variables that tests see: those of cargo and of this project, where things are, and how to get to the network. What else one has in the environment
/// is about terminals, languages, pagers and programs that tests run.
const VARIABLES: [&str; 13] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "LD_LIBRARY_PATH",
    "CI",
    "PERF",
    "BPFTRACE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
];
/// Beginnings and ends of others, in capital letters.
const BEGINNINGS: [&str; 8] = [
    "USDTREC_",
    "CARGO",
    "RUSTUP_",
    "RUST_TEST_",
    "PIP_",
    "NPM_CONFIG_",
    "SSL_CERT_",
    "GOPROXY",
];
const PROXY: &str = "_PROXY";

/// Folders of programs, some of which are not in the `PATH` of services and users.
const PROGRAMS: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// Open files and bytes of stack that programs usually have.
const OPEN_FILES: u64 = 1024;
const STACK: u64 = 8 << 20;

/// Called by the loader before Rust's runtime begins.
#[used]
#[unsafe(link_section = ".init_array")]
static SET: extern "C" fn() = set;

extern "C" fn set() {
    set_signals();
    rustix::process::umask(Mode::from_raw_mode(0o022));
    set_limits();
    set_environment();
    // No test reads what is typed.
    if let Ok(empty) = File::open("/dev/null") {
        // SAFETY: takes integers. Nothing owns descriptor 0.
        unsafe { libc::dup2(empty.as_raw_fd(), libc::STDIN_FILENO) };
    }
}

/// No signal is ignored or blocked in what tests start. One that the caller ignores (`nohup`) does not end the test program either: it gets a handler that
/// does nothing, which programs that are executed do not inherit, and a session of its own, so that what is sent to the caller's group is not sent to
/// what tests start.
fn set_signals() {
    let mut was_ignored = false;
    for signal in 1..=64 {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: without a new action, the call writes the present one to `action`, which has room for it.
        let failed = unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) } != 0;
        // SAFETY: an all-zero action is valid.
        let mut action = unsafe { action.assume_init() };
        if failed || action.sa_sigaction != libc::SIG_IGN {
            continue;
        }
        was_ignored |= matches!(signal, libc::SIGHUP | libc::SIGINT);
        let handler: extern "C" fn(libc::c_int) = do_nothing;
        action.sa_sigaction = match signal {
            libc::SIGCHLD => libc::SIG_DFL,
            _ => handler as libc::sighandler_t,
        };
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: the action is whole, and its handler does nothing.
        unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
    }
    if was_ignored {
        let _ = rustix::process::setsid();
    }
    let mut none = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: it fills the set.
    unsafe { libc::sigemptyset(none.as_mut_ptr()) };
    // SAFETY: the set is filled.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut()) };
}

extern "C" fn do_nothing(_: libc::c_int) {}

/// As many open files and as large a stack as usual, no core files, and no other limit than the hard ones.
fn set_limits() {
    let set = |resource, current: Option<u64>| {
        let maximum = getrlimit(resource).maximum;
        let current = match (current, maximum) {
            (Some(wanted), Some(maximum)) => Some(wanted.min(maximum)),
            (wanted, maximum) => wanted.or(maximum),
        };
        // What the hard limit does not permit stays as it is.
        let _ = setrlimit(resource, Rlimit { current, maximum });
    };
    set(Resource::Core, Some(0));
    let files = getrlimit(Resource::Nofile).current;
    set(Resource::Nofile, files.map(|files| files.max(OPEN_FILES)));
    set(Resource::Stack, Some(STACK));
    for resource in [
        Resource::As,
        Resource::Cpu,
        Resource::Data,
        Resource::Fsize,
        Resource::Nproc,
    ] {
        set(resource, None);
    }
}

fn set_environment() {
    // Whether panics of tests have a backtrace is asked once; what tests start has none.
    let _ = Backtrace::capture();
    let is_kept = |name: &OsStr| {
        let Some(name) = name.to_str() else {
            return false;
        };
        let capital = name.to_ascii_uppercase();
        VARIABLES.contains(&name)
            || capital.ends_with(PROXY)
            || BEGINNINGS.iter().any(|begin| capital.starts_with(begin))
    };
    for (name, _) in std::env::vars_os().filter(|(name, _)| !is_kept(name)) {
        // SAFETY: there is no other thread before `main`.
        unsafe { std::env::remove_var(name) };
    }
    // SAFETY: there is no other thread before `main`.
    unsafe { std::env::set_var("PATH", path()) };
    if std::env::var_os("HOME").is_none_or(|home| !Path::new(&home).is_dir())
        && let Some(home) = home()
    {
        // SAFETY: there is no other thread before `main`.
        unsafe { std::env::set_var("HOME", home) };
    }
}

/// The `PATH` of the caller, and what it lacks.
fn path() -> OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    let found: Vec<_> = std::env::split_paths(&path).collect();
    for folder in PROGRAMS {
        if !found.iter().any(|other| other == Path::new(folder)) {
            if !path.is_empty() {
                path.push(":");
            }
            path.push(folder);
        }
    }
    path
}

/// The home of this user, as passwd(5) has it.
fn home() -> Option<OsString> {
    let user = rustix::process::getuid().as_raw().to_string();
    let users = fs::read("/etc/passwd").ok()?;
    users.split(|&byte| byte == b'\n').find_map(|line| {
        let fields: Vec<_> = line.split(|&byte| byte == b':').collect();
        let is_own = fields.get(2) == Some(&user.as_bytes());
        let home = fields.get(5).filter(|_| is_own)?;
        Some(OsStr::from_bytes(home).to_owned())
    })
}
