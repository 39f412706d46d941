//! `usdtrec demo`: the whole way on usdtrec's own probes.

mod stage;
mod workload;

use std::path::Path;
use std::process::ExitCode;

use crate::cli::DemoArgs;
use crate::sdt;
use stage::Stage;

/// Lines of `script` that are shown.
const EVENTS_SHOWN: usize = 12;

/// Runs the verb. It works in a directory of its own, so that no cache of the user's is touched.
pub(crate) fn run(args: &DemoArgs, _buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    if args.workload {
        println!("{} requests", workload::run());
        return Ok(ExitCode::SUCCESS);
    }
    let stage = Stage::set_up()?;
    let recorded = if sdt::PLANTED {
        record_ourselves(&stage)?
    } else {
        stage.tell("usdtrec plants no probes into itself on this architecture")?;
        Err(Obstacle::Expected)
    };
    if recorded.is_err() {
        stage.tell("what follows is a trace that comes with usdtrec: the same workload, recorded on another machine")?;
        stage.unpack_bundled_trace()?;
    }
    stage.heading("The events, one a line")?;
    let mut whole = stage.show_head(&["script"], EVENTS_SHOWN)?;
    stage.heading("What it all comes to")?;
    whole &= stage.show(&["report"])?;
    Ok(if whole && !matches!(recorded, Err(Obstacle::Failure)) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Why there is no recording.
enum Obstacle {
    /// This machine or this user does not allow it.
    Expected,
    /// It should have worked.
    Failure,
}

/// Indexes this binary, lists its probes and records them under the workload.
fn record_ourselves(stage: &Stage) -> anyhow::Result<Result<(), Obstacle>> {
    let program = stage.program();
    stage.heading("Index a binary: usdtrec itself, which carries probes")?;
    stage.show(&["buildid-cache", "--add", program])?;
    stage.heading("Its probes, and where their arguments live")?;
    stage.show(&["list", "-v", "sdt_usdtrec:*"])?;
    stage.heading("Record them while a small server answers requests")?;
    if let Err(reason) = usdtrec_record::check_privilege() {
        stage.tell(&format!("NOT RECORDED: {reason}"))?;
        stage.tell(&format!("to see it recorded: sudo {program} demo"))?;
        return Ok(Err(Obstacle::Expected));
    }
    let workload = [program, "demo", "--workload"];
    let record = ["record", "-e", "sdt_usdtrec:*", "--"];
    if stage.show(&[&record[..], &workload[..]].concat())? {
        return Ok(Ok(()));
    }
    stage.tell("NOT RECORDED: see the error above")?;
    Ok(Err(Obstacle::Failure))
}
