//! Selecting probes and attaching them.

use std::path::Path;
use std::sync::Arc;

use usdtrec_format::counted;
use usdtrec_format::schema::Schemas;
use usdtrec_record::{
    Following, GroupRemark, HeldCommand, Options, Places, Planting, RecordError, Selection,
    SharedInstruction, Signals, Target, TargetError, Workload, check_privilege, descendants,
    raise_open_files, share_heaps,
};

use super::choose::{choose, completion};
use super::messages::{print_children, print_refused_engines, print_sites, print_smaller_rings};
use super::node;
use super::options::{check_executables, events, process_choice, waits};
use crate::advice;
use crate::cli::CaptureArgs;
use crate::schemas;
use crate::slow_start::waiting_for;
use crate::terminal::say;

/// Probes that are attached but not yet enabled, and the command that waits for them, or runs.
pub(in crate::cmd) struct Ready {
    pub(in crate::cmd) session: usdtrec_record::Session,
    pub(in crate::cmd) command: Option<Workload>,
}

/// Selected probes.
pub(in crate::cmd) struct Selected {
    selection: Selection,
    following: Following,
}

/// Selects the probes, and prints what is not recorded.
pub(in crate::cmd) fn select(
    args: &CaptureArgs,
    buildid_dir: Option<&Path>,
) -> anyhow::Result<Selected> {
    let events = events(args)?;
    check_privilege()?;
    check_executables(args)?;
    raise_open_files();
    share_heaps();
    let mut following = Following {
        is_off: args.no_follow,
        waits: waits(args, &events)?,
        events,
        schemas: Arc::new(schemas::in_force(&args.schema)?),
        force: args.force,
        read_at: Following::now(),
        read: None,
        places: Places::default(),
        refused_files: Vec::new(),
        complete: completion(buildid_dir),
    };
    let remarks = process_choice(args).group_remarks();
    let remarks = remarks.map_err(RecordError::from)?;
    let selection = choose(args, &mut following, buildid_dir)?;
    node::refuse(args, &selection)?;
    print_limited(&selection.refusals, advice::refusal);
    if args.verbose && selection.tried_nops {
        say("usdtrec: 5-byte nops: safe on this kernel (tested on a process of usdtrec)");
    }
    // A built-in schema may be for another version of the program: printed only with -v.
    for disagreement in &selection.disagreements {
        if args.verbose || disagreement.place != Schemas::BUNDLED {
            say(format_args!("usdtrec: {disagreement}"));
        }
    }
    let shared = match args.quiet {
        true => Vec::new(),
        false => SharedInstruction::find(&selection.probes),
    };
    print_limited(&shared, SharedInstruction::to_string);
    for remark in remarks.iter().filter(|_| !args.quiet) {
        let hint = match remark {
            GroupRemark::NotChosen(..) => " (--cgroup PATH records one of these)",
            _ => "",
        };
        say(format_args!("usdtrec: {remark}{hint}"));
    }
    for missing in selection.waiting.iter().filter(|_| !args.quiet) {
        say(format_args!("usdtrec: {}", missing.waiting()));
    }
    Ok(Selected {
        selection,
        following,
    })
}

/// Prints messages of which there may be one for each site.
fn print_limited<T>(all: &[T], message: impl Fn(&T) -> String) {
    const MAX_PRINTED: usize = 24;
    for one in all.iter().take(MAX_PRINTED) {
        say(format_args!("usdtrec: {}", message(one)));
    }
    if let more @ 1.. = all.len().saturating_sub(MAX_PRINTED) {
        let more = counted(more, "message");
        say(format_args!("usdtrec: {more} like these are not printed"));
    }
}

/// Attaches the probes. With `muted`, the command's standard output is redirected to standard error.
pub(super) fn attach(
    args: &CaptureArgs,
    selected: Selected,
    mut options: Options,
    muted: bool,
    signals: &Signals,
) -> anyhow::Result<Ready> {
    let held = (!args.command.is_empty())
        .then(|| HeldCommand::fork(&args.command, muted))
        .transpose()?;
    let children = existing_children(args)?;
    options.target = target(args, &children, held.as_ref());
    options.following = selected.following;
    let planting = Planting {
        signals,
        say: &|caution| {
            if !args.quiet {
                say(format_args!("usdtrec: {}", advice::caution(caution)));
            }
        },
    };
    let session = waiting_for("the kernel to attach the probes", args.quiet, || {
        usdtrec_record::Session::attach(selected.selection.probes, options, planting)
    })?;
    // What is refused of files that nobody named is among the shortfalls.
    let refused = session.refused().iter();
    let refused: Vec<_> = refused.filter(|one| !one.probe.is_found).collect();
    print_limited(&refused, |refused| {
        let message = advice::message(&refused.error);
        format!("{message}; {} is not recorded", refused.probe.event())
    });
    if !args.quiet {
        print_children(args, &children);
        print_smaller_rings(&session);
    }
    if args.verbose {
        print_refused_engines(&session);
        print_sites(&session);
    }
    let command = held.map(Workload::Held);
    Ok(Ready { session, command })
}

/// The processes that those of `-p` have started already and that are recorded, too.
fn existing_children(args: &CaptureArgs) -> Result<Vec<u32>, RecordError> {
    /// Each thread has an event on each CPU, for its name and mappings.
    const MAX_CHILDREN: usize = 2048;
    if args.no_inherit || args.pid.is_empty() {
        return Ok(Vec::new());
    }
    let children = descendants(&args.pid);
    match children.len() {
        found if found > MAX_CHILDREN => {
            let most = MAX_CHILDREN;
            Err(TargetError::TooManyChildren { found, most }.into())
        }
        _ => Ok(children),
    }
}

fn target(args: &CaptureArgs, children: &[u32], held: Option<&HeldCommand>) -> Target {
    match held {
        _ if !args.pid.is_empty() => Target::Processes([&*args.pid, children].concat()),
        _ if !args.tid.is_empty() => Target::Threads(args.tid.clone()),
        Some(held) if !args.all_cpus => Target::Command(held.pid()),
        _ => Target::All,
    }
}
