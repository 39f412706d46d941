//! `usdtrec demo`: indexes, lists, records and reports usdtrec's own probes.

mod stage;
mod workload;

use std::path::Path;
use std::process::ExitCode;

use crate::cli::DemoArgs;
use crate::terminal::Usage;
use crate::{sdt, shell};
use stage::Stage;

/// Number of lines of `script` to print.
const EVENTS_SHOWN: usize = 12;

/// Runs the verb, in a temporary directory with its own cache.
pub(crate) fn run(args: &DemoArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    Usage::ensure(
        buildid_dir.is_none(),
        "--buildid-dir has no effect on demo: it makes a build-id cache of its own, and removes it",
    )?;
    if args.workload {
        println!("{} requests", workload::run());
        return Ok(ExitCode::SUCCESS);
    }
    let stage = Stage::set_up()?;
    let recorded = if sdt::PLANTED {
        record_ourselves(&stage)?
    } else {
        stage.notice("usdtrec has no probes of its own on this architecture")?;
        Recorded::NotAllowed
    };
    if recorded != Recorded::Whole {
        stage.notice("showing a trace that comes with usdtrec: the same workload, recorded on another machine")?;
        stage.unpack_bundled_trace()?;
    }
    stage.heading("Print the events, one per line")?;
    let mut whole = stage.show_head(&["script"], EVENTS_SHOWN)?;
    stage.heading("Summarize the trace")?;
    whole &= stage.show(&["report"])?;
    Ok(if whole && recorded != Recorded::Failed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// What became of the recording.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Recorded {
    Whole,
    /// This machine or this user does not allow it.
    NotAllowed,
    /// A command that should have succeeded failed.
    Failed,
}

/// Indexes this binary, lists its probes and records them under the workload.
fn record_ourselves(stage: &Stage) -> anyhow::Result<Recorded> {
    let program = stage.program();
    stage.heading("Index a binary with probes: usdtrec itself")?;
    stage.show(&["buildid-cache", "--add", program])?;
    stage.heading("List its probes, and the locations of their arguments")?;
    stage.show(&["list", "-v", "sdt_usdtrec:*"])?;
    stage.heading("Record them while a small server answers requests")?;
    if let Err(reason) = usdtrec_record::check_privilege() {
        stage.notice(&format!("NOT RECORDED: {reason}"))?;
        stage.notice(&format!("to record: sudo {} demo", shell::word(program)))?;
        return Ok(Recorded::NotAllowed);
    }
    let workload = [program, "demo", "--workload"];
    let record = ["record", "-e", "sdt_usdtrec:*", "--"];
    if stage.show(&[&record[..], &workload[..]].concat())? {
        return Ok(Recorded::Whole);
    }
    stage.notice("NOT RECORDED: see the error above")?;
    Ok(Recorded::Failed)
}
