//! `usdtrec doctor`.

use std::process::ExitCode;

use usdtrec_record::{Leftovers, leftovers};

use crate::cli::DoctorArgs;
use crate::terminal::say;

/// Runs the verb. The exit status is 1 if anything is left.
pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let Leftovers {
        processes,
        raised,
        groups,
        unreadable,
    } = leftovers(args.heal);
    for error in &unreadable {
        say(format_args!("usdtrec: {error}"));
    }
    for process in processes.iter().filter(|process| process.is_stopped) {
        let done = if args.heal {
            "continued"
        } else {
            "would be continued with --heal"
        };
        println!(
            "process {}: stopped by a killed recorder; {done}",
            process.pid
        );
    }
    for process in &raised {
        let done = if args.heal {
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
        let done = match (args.heal, group.is_removed) {
            (true, true) => "removed",
            (true, false) => "in use, not removed",
            (false, _) => "would be removed with --heal",
        };
        let name = &group.name;
        println!("tracefs events {name}: left by a killed recorder; {done}");
    }
    let stopped = processes
        .iter()
        .filter(|process| process.is_stopped)
        .count();
    let left = if args.heal {
        groups.iter().filter(|group| !group.is_removed).count()
    } else {
        stopped + raised.len() + groups.len()
    };
    if stopped + raised.len() + groups.len() == 0 && unreadable.is_empty() {
        println!("nothing is left of killed recorders");
    }
    Ok(if left + unreadable.len() == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
