//! What signals do to a process that shows a screen: SIGTSTP stops it, and faults end it with the terminal as it was.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::keyboard::Keyboard;

/// Faults, and what others send as such. No recording is ended in order after one.
const FAULTS: [libc::c_int; 7] = [
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGSEGV,
    libc::SIGSYS,
    libc::SIGTRAP,
];

/// The terminal that a fault finds changed.
static TERMINAL: OnceLock<Terminal> = OnceLock::new();
/// Whether it is changed.
static IS_CHANGED: AtomicBool = AtomicBool::new(false);

struct Terminal {
    out: File,
    keyboard: Option<Keyboard>,
    /// Shows the main screen.
    leave: &'static [u8],
}

/// Has faults restore a terminal while [`set_changed`] says that it is changed. A process has one screen.
///
/// # Errors
/// The error of `dup(2)` or `sigaction(2)`.
pub(super) fn restore_after_faults(
    out: &File,
    keyboard: Option<&Keyboard>,
    leave: &'static str,
) -> io::Result<()> {
    let terminal = Terminal {
        out: out.try_clone()?,
        keyboard: keyboard.cloned(),
        leave: leave.as_bytes(),
    };
    if TERMINAL.set(terminal).is_err() {
        return Ok(());
    }
    let handler: extern "C" fn(libc::c_int) = restore;
    // SAFETY: an all-zero action is valid.
    let mut action: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    action.sa_sigaction = handler as libc::sighandler_t;
    // On the stack for signals, as the usual one may have overflowed; once, and then the default action ends the process.
    action.sa_flags = libc::SA_ONSTACK | libc::SA_RESETHAND | libc::SA_NODEFER;
    for fault in FAULTS {
        // SAFETY: the action has a handler that makes system calls only, and is copied.
        if unsafe { libc::sigaction(fault, &raw const action, ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Says whether the terminal is changed.
pub(super) fn set_changed(is_changed: bool) {
    IS_CHANGED.store(is_changed, Ordering::SeqCst);
}

/// Sets the modes of the keyboard as they were. Does not wait for the terminal.
pub(super) fn give_keyboard_back() {
    let keyboard = TERMINAL
        .get()
        .and_then(|terminal| terminal.keyboard.as_ref());
    if let Some(keyboard) = keyboard.filter(|_| IS_CHANGED.load(Ordering::SeqCst)) {
        keyboard.give_back();
    }
}

/// Restores the terminal, and ends the process as the signal does by default.
extern "C" fn restore(signal: libc::c_int) {
    give_keyboard_back();
    if let Some(terminal) = TERMINAL.get()
        && IS_CHANGED.load(Ordering::SeqCst)
    {
        // SAFETY: the text is that long.
        unsafe {
            let leave = terminal.leave;
            libc::write(terminal.out.as_raw_fd(), leave.as_ptr().cast(), leave.len())
        };
    }
    // SAFETY: takes an integer. The action is the default one again.
    unsafe { libc::raise(signal) };
}

/// Stops this process as SIGTSTP does by default; returns when it is continued. Unlike with SIGSTOP, nothing is stopped that no shell would continue: the
/// kernel passes SIGTSTP over in a session without a shell (`ssh -t HOST usdtrec top`) and for the first process of a container.
pub(super) fn stop() {
    // SAFETY: an all-zero action is the default one.
    let default: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: both are whole actions.
    if unsafe { libc::sigaction(libc::SIGTSTP, &raw const default, before.as_mut_ptr()) } != 0 {
        return;
    }
    // SAFETY: takes an integer. The signal is this thread's, which has stopped when this returns.
    unsafe { libc::raise(libc::SIGTSTP) };
    // SAFETY: the action is the one of before, which sigaction(2) has filled in.
    unsafe { libc::sigaction(libc::SIGTSTP, before.as_ptr(), ptr::null_mut()) };
}
