//! What killed recorders left.

use usdtrec_format::counted;
use usdtrec_format::escape::{escape, shown};
use usdtrec_record::{BreakpointOwner, LeftBehind, LeftBreakpoint, Leftovers, leftovers};

use crate::terminal::say;

/// Maximum number of breakpoints of others that are printed one by one.
const MAX_LINES: usize = 6;

/// Prints what is left, and with `heal` removes it. Returns whether nothing is left.
pub(super) fn print(heal: bool) -> bool {
    let Leftovers {
        raised,
        groups,
        sockets,
        breakpoints,
        unreadable,
    } = leftovers(heal);
    for error in &unreadable {
        say(format_args!("usdtrec: {error}"));
    }
    if !unreadable.is_empty() && !rustix::process::geteuid().is_root() {
        say("  as root (sudo), doctor shows what killed recorders left");
    }
    for process in &raised {
        let done = if heal {
            "decremented"
        } else {
            "would be decremented with --heal"
        };
        let semaphores = match process.semaphores {
            1 => "a semaphore".to_owned(),
            number => format!("{number} semaphores"),
        };
        println!(
            "process {}: {semaphores} left incremented by a killed recorder; {done}",
            process.pid
        );
    }
    for group in &groups {
        let done = match (heal, group.is_removed) {
            (true, true) => "removed",
            (true, false) => "in use, not removed",
            (false, _) => "would be removed with --heal",
        };
        let name = &group.name;
        println!("tracefs events {name}: left by a killed recorder; {done}");
    }
    for socket in &sockets {
        let done = if heal {
            "removed"
        } else {
            "would be removed with --heal"
        };
        println!("{}: left by a killed recorder; {done}", shown(socket));
    }
    let breakpoints = print_breakpoints(&breakpoints, heal);
    let left = if heal {
        groups.iter().filter(|group| !group.is_removed).count() + breakpoints.left
    } else {
        raised.len() + groups.len() + sockets.len() + breakpoints.found
    };
    if raised.len() + groups.len() + sockets.len() + breakpoints.found == 0 && unreadable.is_empty()
    {
        println!("nothing is left of killed recorders");
    }
    left + unreadable.len() == 0
}

/// Numbers of breakpoints of recordings that have ended.
struct Breakpoints {
    found: usize,
    /// Number of breakpoints that were not restored.
    left: usize,
}

/// Prints the breakpoints of ended recordings, and as remarks those of others and of unknown origin.
fn print_breakpoints(behind: &LeftBehind, heal: bool) -> Breakpoints {
    let is_ended = |left: &&LeftBreakpoint| left.owner == BreakpointOwner::EndedRecording;
    let (ended, mut others): (Vec<_>, Vec<_>) = behind.breakpoints.iter().partition(is_ended);
    // Those of tracers that are known are in order.
    others.sort_by_key(|left| left.owner != BreakpointOwner::Unknown);
    for left in &ended {
        let done = match &left.restored {
            Some(Ok(())) => "restored".to_owned(),
            Some(Err(reason)) => format!("not restored: {}", escape(reason)),
            None if heal => "not restored".to_owned(),
            None => "would be restored with --heal".to_owned(),
        };
        println!("{}; {done}", escape(&left.to_string()));
    }
    for left in others.iter().take(MAX_LINES) {
        say(format_args!("usdtrec: {left}; not touched"));
    }
    if others.len() > MAX_LINES {
        say(format_args!(
            "usdtrec: {} more breakpoints of others or of unknown owners",
            others.len() - MAX_LINES
        ));
    }
    if behind.unchecked > 0 {
        say(format_args!(
            "usdtrec: {} could not be searched for breakpoints",
            counted(behind.unchecked, "process")
        ));
    }
    if let Some(last) = behind.logged.last() {
        say(format_args!(
            "usdtrec: since it started, the kernel has logged uprobes that it could not remove; last: {last}"
        ));
    }
    Breakpoints {
        found: ended.len(),
        left: ended
            .iter()
            .filter(|left| left.restored != Some(Ok(())))
            .count(),
    }
}
