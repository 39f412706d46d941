//! `usdtrec top`.

mod by_key;

use std::io::{IsTerminal, Write, stdout};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use anstream::{AutoStream, ColorChoice};
use usdtrec_report::top::{self, TopOptions};

use self::by_key::ByKey;
use super::live::Live;
use super::screen::{Screen, TextDestination};
use super::{selection, span_stat};
use crate::cli::TopArgs;
use crate::mutex::locked;
use crate::text_room;
use crate::units::parse_duration;

/// Runs the verb.
pub(crate) fn run(args: &TopArgs, buildid_dir: Option<&Path>) -> anyhow::Result<ExitCode> {
    let spans = span_stat::asked(&args.spans, &args.capture)?;
    if spans.is_some() || !args.by.is_empty() {
        return ByKey::run(args, spans, buildid_dir);
    }
    let options = TopOptions {
        every: parse_duration("--delay", &args.delay)?,
        tables: args.iterations,
        colours: AutoStream::choice(&stdout()) != ColorChoice::Never,
        columns: || text_room::columns(None),
    };
    let mut out = selection::output()?;
    let verb = Live {
        verb: "top",
        args: &args.capture,
        buildid_dir,
        output: out.try_clone()?,
        muted: true,
        heartbeat: true,
        redraws: true,
        prints_arguments: false,
        graph: None,
        slow_spans: None,
        aggregated: None,
    };
    verb.run(|pipe, sources| {
        let path = Path::new("top");
        if out.is_terminal() {
            let shown = Arc::new(Mutex::new(String::new()));
            let last = Arc::clone(&shown);
            let text = move |_: TextDestination| locked(&last).clone();
            let screen = Screen::new(out, None, Box::new(text))?;
            top::show(pipe, path, sources, options, &mut |table| {
                table.clone_into(&mut locked(&shown));
                screen.draw()
            })
        } else {
            let mut first = true;
            top::show(pipe, path, sources, options, &mut |table| {
                let between = if std::mem::take(&mut first) { "" } else { "\n" };
                out.write_all(format!("{between}{table}").as_bytes())
            })
        }
    })
}
