//! `usdtrec sql`.

mod columns;
mod dialect;
#[cfg(feature = "parquet")]
mod folder_value;
#[cfg(feature = "parquet")]
mod probe_columns;
mod questions;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use usdtrec_format::escape::shown;

use self::columns::{DatasetTable, TABLES};
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
    for table in &TABLES {
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
        let view = match engine.probe(dataset, folder.table, &name, &folder.path) {
            None => by_columns(dataset, &folder, &name)?,
            view => view,
        };
        if let Some(view) = view {
            out.push_str(&format!("{view}\n\n"));
        }
    }
    for question in questions(engine) {
        out.push_str(&format!("-- {}\n{}\n\n", question.about, question.sql));
    }
    out.truncate(out.trim_end().len());
    writeln!(io::stdout(), "{out}")?;
    Ok(ExitCode::SUCCESS)
}

/// The view of a probe for an engine that needs its columns; `None` if the names of its folders are not UTF-8.
#[cfg(feature = "parquet")]
fn by_columns(dataset: &str, folder: &ProbeFolder, name: &str) -> anyhow::Result<Option<String>> {
    let columns = probe_columns::columns_of(&folder.places)?;
    let ProbeFolder { table, path, .. } = folder;
    Ok(dialect::datafusion_probe(
        dataset, table, name, path, &columns,
    ))
}

/// This program reads no columns.
#[cfg(not(feature = "parquet"))]
#[allow(clippy::unnecessary_wraps, reason = "as the other one")]
fn by_columns(_: &str, _: &ProbeFolder, _: &str) -> anyhow::Result<Option<String>> {
    Ok(None)
}

/// A folder that several hosts and days have.
#[derive(Debug)]
struct ProbeFolder {
    path: String,
    /// The folders of hosts and days.
    #[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "for columns"))]
    places: Vec<PathBuf>,
    table: &'static DatasetTable,
}

/// The folders of probes and spans, each once. A dataset elsewhere is not looked into.
fn folders(dataset: &str) -> anyhow::Result<Vec<ProbeFolder>> {
    if dataset.contains("://") {
        return Ok(Vec::new());
    }
    let mut folders: BTreeMap<_, Vec<PathBuf>> = BTreeMap::new();
    for table in TABLES.iter().filter(|table| table.folders.len() == 4) {
        let root = Path::new(dataset).join(format!("table={}", table.name));
        let cannot = || format!("cannot read {}", shown(&root));
        for host in entries(&root).with_context(cannot)? {
            for date in entries(&root.join(&host)).with_context(cannot)? {
                let date = root.join(&host).join(date);
                for provider in entries(&date).with_context(cannot)? {
                    for probe in entries(&date.join(&provider)).with_context(cannot)? {
                        if !probe.ends_with(NO_VALUE) {
                            let place = date.join(&provider).join(&probe);
                            let key = (table.name, format!("{provider}/{probe}"));
                            folders.entry(key).or_default().push(place);
                        }
                    }
                }
            }
        }
    }
    let folders = folders.into_iter().filter_map(|((name, path), places)| {
        let table = TABLES.iter().find(|table| table.name == name)?;
        Some(ProbeFolder {
            path,
            places,
            table,
        })
    });
    Ok(folders.collect())
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
