//! `usdtrec`: records and reports USDT probes in perf's file formats.

mod advice;
#[allow(
    rustdoc::broken_intra_doc_links,
    reason = "the comments are help texts, where brackets mean options"
)]
mod cli;
mod cmd;
#[cfg(feature = "debuginfod")]
mod debuginfod;
mod functions;
#[cfg(feature = "record")]
mod helper;
mod mutex;
#[cfg(feature = "record")]
mod old_file;
#[cfg(feature = "record")]
mod output;
mod pager;
#[cfg(feature = "record")]
mod probes;
mod progress;
mod schemas;
#[cfg(feature = "record")]
mod sdt;
#[cfg(feature = "record")]
mod service;
mod shell;
#[cfg(feature = "record")]
mod slow_start;
mod stream;
mod sudo_user;
mod terminal;
mod text_room;
mod unfinished_file;
#[cfg(feature = "parquet")]
mod unfinished_folder;
mod units;

use std::process::ExitCode;

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    #[cfg(feature = "record")]
    usdtrec_record::settle_signals();
    #[cfg(feature = "record")]
    if let Some(done) = helper::run() {
        return done.unwrap_or_else(|error| terminal::fail(&error));
    }
    if let Some(answered) = cmd::completions::answer() {
        return answered;
    }
    #[cfg(feature = "record")]
    if std::env::args_os().len() < 2 {
        return cmd::list::run_without_verb().unwrap_or_else(|error| terminal::fail(&error));
    }
    let cli = Cli::from_command_line();
    let dir = cli.buildid_dir.as_deref();
    #[cfg(feature = "record")]
    begin_helpers(&cli.command);
    let outcome = match &cli.command {
        Command::Archive(args) => cmd::archive::run(args, dir),
        Command::BuildidCache(args) => cmd::buildid_cache::run(args, dir),
        Command::Completions(args) => cmd::completions::run(args),
        Command::Man(args) => cmd::man::run(args),
        Command::List(args) => cmd::list::run(args, dir),
        #[cfg(feature = "record")]
        Command::Record(args) => cmd::record::run(args, dir),
        Command::Diff(args) => cmd::diff::run(args, dir),
        Command::Export(args) => cmd::export::run(args, dir),
        #[cfg(feature = "flame")]
        Command::Flame(args) => cmd::flame::run(args, dir),
        #[cfg(feature = "record")]
        Command::Import(args) => cmd::import::run(args),
        Command::Report(args) => cmd::report::run(args, dir),
        Command::Schema(args) => cmd::schema::run(args),
        Command::Sql(args) => cmd::sql::run(args),
        Command::Script(args) => cmd::script::run(args, dir),
        #[cfg(feature = "record")]
        Command::Trace(args) => cmd::trace::run(args, dir),
        #[cfg(feature = "record")]
        Command::Top(args) => cmd::top::run(args, dir),
        #[cfg(feature = "record")]
        Command::Stat(args) => cmd::stat::run(args, dir),
        #[cfg(feature = "record")]
        Command::Demo(args) => cmd::demo::run(args, dir),
        #[cfg(feature = "record")]
        Command::Doctor(args) => cmd::doctor::run(args),
        #[cfg(feature = "record")]
        Command::Dump(args) => cmd::dump::run(args),
    };
    outcome.unwrap_or_else(|error| terminal::fail(&error))
}

/// Has files that others control read by helpers in verbs that look at processes.
#[cfg(feature = "record")]
fn begin_helpers(command: &Command) {
    use usdtrec_buildid_cache::served;

    let records = matches!(
        command,
        Command::Record(_) | Command::Stat(_) | Command::Top(_) | Command::Trace(_)
    );
    let looks = matches!(
        command,
        Command::BuildidCache(_) | Command::Doctor(_) | Command::List(_)
    );
    if records || looks {
        served::begin(usdtrec_record::account_of);
        usdtrec_report::open_files_by(helper::open_file);
    }
    if records {
        // If that fails now, it is tried again when one is needed.
        let _ = served::prepare();
    }
}
