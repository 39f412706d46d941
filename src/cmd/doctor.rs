//! `usdtrec doctor`.

mod finding;
mod host;
mod leftovers;
mod probes;
mod trials;

use std::io::{self, Write as _};
use std::process::ExitCode;

use self::finding::{Finding, State};
use crate::cli::{DoctorArgs, DoctorFormat};

/// Runs the verb. The exit status is 1 if anything is left of killed recorders, or a probe that is asked about cannot be recorded.
pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    if let Some(kind) = args.hits {
        trials::print_hits(kind);
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(what) = &args.probe {
        let findings = probes::findings(what)?;
        print(args.format, &findings)?;
        let fails = |finding: &Finding| finding.state == State::Fails;
        return Ok(exit_code(!findings.iter().any(fails)));
    }
    let is_text = args.format == DoctorFormat::Text;
    let is_clean = !is_text || leftovers::print(args.heal);
    if args.heal {
        return Ok(exit_code(is_clean));
    }
    let mut findings = host::findings();
    if args.r#try {
        findings.extend(trials::findings()?);
    }
    print(args.format, &findings)?;
    Ok(exit_code(is_clean))
}

fn print(format: DoctorFormat, findings: &[Finding]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let lines: Vec<String> = match format {
        DoctorFormat::Text => finding::lines(findings).collect(),
        DoctorFormat::Json => findings.iter().map(Finding::json).collect(),
    };
    for line in lines {
        writeln!(out, "{line}")?;
    }
    out.flush()
}

fn exit_code(is_clean: bool) -> ExitCode {
    match is_clean {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
