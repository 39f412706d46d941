//! `usdtrec sql`.

mod dialect;
mod questions;

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use usdtrec_format::escape::shown;
use usdtrec_report::export::DatasetTable;

use self::questions::{questions, views};
use crate::cli::SqlArgs;
use crate::terminal::Usage;

/// Stands for no name: of a table without rows.
const NO_VALUE: &str = "=__HIVE_DEFAULT_PARTITION__";

/// Runs the verb.
pub(crate) fn run(args: &SqlArgs) -> anyhow::Result<ExitCode> {
    let engine = args.engine;
    let Some(dataset) = args.dataset.to_str() else {
        let refused = format!("{}: expected a name of UTF-8", shown(&args.dataset));
        return Err(Usage(refused).into());
    };
    // Where the engine runs is not known.
    let whole = fs::canonicalize(dataset)
        .ok()
        .and_then(|whole| whole.into_os_string().into_string().ok());
    let dataset = whole.as_deref().unwrap_or(dataset).trim_end_matches('/');
    let mut out = String::new();
    let mut names = BTreeSet::new();
    for table in &DatasetTable::ALL {
        out.push_str(&format!("{}\n\n", engine.table(dataset, table)));
        names.insert(table.name.to_owned());
    }
    let views = views(engine);
    for view in &views {
        out.push_str(&format!("-- {}\n{}\n\n", view.about, view.sql));
    }
    names.extend(["span_stats", "stack_lines"].map(str::to_owned));
    for folder in folders(dataset)? {
        let name = free(&folder, &mut names);
        let view = engine.probe(dataset, folder.table, &name, &folder.path);
        out.push_str(&format!("{view}\n\n"));
    }
    for question in questions(engine) {
        out.push_str(&format!("-- {}\n{}\n\n", question.about, question.sql));
    }
    out.truncate(out.trim_end().len());
    writeln!(io::stdout(), "{out}")?;
    Ok(ExitCode::SUCCESS)
}

/// A folder that several hosts and days have.
#[derive(Debug)]
struct ProbeFolder {
    path: String,
    table: &'static DatasetTable,
}

/// The folders of probes and spans, each once. A dataset elsewhere is not looked into.
fn folders(dataset: &str) -> anyhow::Result<Vec<ProbeFolder>> {
    let mut folders = Vec::new();
    if dataset.contains("://") {
        return Ok(folders);
    }
    for table in [&DatasetTable::EVENTS, &DatasetTable::SPANS] {
        let root = Path::new(dataset).join(format!("table={}", table.name));
        let paths = probe_paths(&root).with_context(|| format!("cannot read {}", shown(&root)))?;
        folders.extend(paths.into_iter().map(|path| ProbeFolder { path, table }));
    }
    Ok(folders)
}

/// The folders `provider=…/probe=…` of all hosts and days of a table.
fn probe_paths(root: &Path) -> io::Result<BTreeSet<String>> {
    let mut paths = BTreeSet::new();
    for host in entries(root)? {
        for date in entries(&root.join(&host))? {
            let date = root.join(&host).join(date);
            for provider in entries(&date)? {
                let probes = entries(&date.join(&provider))?.into_iter();
                let named = probes.filter(|probe| !probe.ends_with(NO_VALUE));
                paths.extend(named.map(|probe| format!("{provider}/{probe}")));
            }
        }
    }
    Ok(paths)
}

/// The folders in a folder that are of a dataset: `KEY=VALUE`, as `export` escapes them.
fn entries(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().into_string();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.%=".contains(&byte);
        names.extend(
            name.ok()
                .filter(|name| name.contains('=') && name.bytes().all(is_plain)),
        );
    }
    Ok(names)
}

/// A name for a view that no other one has: `event_PROVIDER_PROBE`, `span_PROVIDER_NAME`.
fn free(folder: &ProbeFolder, names: &mut BTreeSet<String>) -> String {
    let values = folder
        .path
        .split('/')
        .filter_map(|part| part.split_once('='));
    let values: Vec<&str> = values.map(|(_, value)| value).collect();
    let plain = |char: char| {
        if char.is_ascii_alphanumeric() {
            char
        } else {
            '_'
        }
    };
    let name: String = values.join("_").chars().map(plain).collect();
    let name = format!("{}_{name}", folder.table.name.trim_end_matches('s'));
    let mut free = name.clone();
    let mut number = 2;
    while !names.insert(free.to_lowercase()) {
        free = format!("{name}_{number}");
        number += 1;
    }
    free
}
