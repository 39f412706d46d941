//! `usdtrec doctor`.

mod finding;
mod hits;
mod host;
mod leftovers;
mod trials;

use std::process::ExitCode;

use crate::cli::{DoctorArgs, DoctorFormat};

/// Runs the verb. The exit status is 1 if anything is left of killed recorders, or no engine works.
pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    if let Some(kind) = args.hits {
        hits::print(kind);
        return Ok(ExitCode::SUCCESS);
    }
    let is_text = args.format == DoctorFormat::Text;
    let is_clean = !is_text || leftovers::print(args.heal);
    if args.heal {
        return Ok(exit_code(is_clean));
    }
    let mut findings = host::findings();
    findings.extend(trials::findings()?);
    for finding in &findings {
        match args.format {
            DoctorFormat::Text => println!("{finding}"),
            DoctorFormat::Json => println!("{}", finding.json()),
        }
    }
    Ok(exit_code(is_clean))
}

fn exit_code(is_clean: bool) -> ExitCode {
    match is_clean {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
