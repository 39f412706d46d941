//! Sources of schemas: files of `--schema`, the user's directory, the built-in set.

use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::{env, io};

use anyhow::{Context, bail};
use usdtrec_buildid_cache::distrust;
use usdtrec_format::escape::shown;
use usdtrec_format::schema::{Language, Parsed, Schemas, read_file, read_open_file};

use crate::terminal::say;

/// The schemas in use: the built-in set, the user's directory and the `named` files, each of which takes precedence over those before it.
/// Errors in a file are printed, and the rest of the file is used.
///
/// # Errors
/// A named file cannot be read or has no valid probe definition.
pub(crate) fn in_force(named: &[PathBuf]) -> anyhow::Result<Schemas> {
    let mut schemas = Schemas::built_in();
    if let Some(directory) = user_directory() {
        add_of_user(&mut schemas, &directory);
    }
    add_named(&mut schemas, named)?;
    Ok(schemas)
}

/// The schemas of the named files only.
///
/// # Errors
/// As [`in_force`].
pub(crate) fn named(paths: &[PathBuf]) -> anyhow::Result<Schemas> {
    let mut schemas = Schemas::default();
    add_named(&mut schemas, paths)?;
    Ok(schemas)
}

fn add_named(schemas: &mut Schemas, paths: &[PathBuf]) -> anyhow::Result<()> {
    for path in paths {
        let parsed = read(path)?;
        let empty = parsed.probes.is_empty();
        add(schemas, path, parsed);
        if empty {
            bail!("{}: the file has no valid probe definition", shown(path));
        }
    }
    Ok(())
}

fn add(schemas: &mut Schemas, path: &Path, parsed: Parsed) {
    for problem in parsed.problems.iter().filter(|problem| problem.error) {
        say(format_args!("usdtrec: {}:{problem}", shown(path)));
    }
    schemas.add(shown(path).to_string(), parsed.probes);
}

/// [`read_file`], with all causes of an error in its message.
///
/// # Errors
/// As [`read_file`].
pub(crate) fn read(path: &Path) -> anyhow::Result<Parsed> {
    Ok(read_file(path)?)
}

/// `$XDG_CONFIG_HOME/usdtrec/schemas`, else `~/.config/usdtrec/schemas`.
pub(crate) fn user_directory() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty());
    let config = set("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| Some(Path::new(&set("HOME")?).join(".config")));
    Some(config?.join("usdtrec").join("schemas"))
}

/// Why root neither reads nor writes the schemas of a directory; `None` if it may.
pub(crate) fn refusal(directory: &Path) -> Option<String> {
    let why = distrust(&fs::metadata(directory).ok()?)?;
    Some(format!(
        "{}: root does not use schemas of a directory that {why}, because that user could choose the names and types of arguments",
        shown(directory)
    ))
}

/// Adds the schema files of the user's directory. What is wrong with one is printed, and the others are used.
fn add_of_user(schemas: &mut Schemas, directory: &Path) {
    let files = files_of(directory);
    if let Some(refusal) = refusal(directory).filter(|_| !files.is_empty()) {
        return say(format_args!("usdtrec: {refusal}"));
    }
    for path in files {
        let parsed = open_regular(&path)
            .with_context(|| format!("cannot read {}", shown(&path)))
            .and_then(|file| Ok(read_open_file(&file, &path)?));
        match parsed {
            Ok(parsed) => add(schemas, &path, parsed),
            Err(error) => say(format_args!("usdtrec: {error:#}; skipped")),
        }
    }
}

/// The schema files of a directory. Reversed by name, because later schemas take precedence and the first file by name shall win.
fn files_of(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            Language::from_file_name(&name).is_some()
        })
        .collect();
    paths.sort_by(|a, b| b.cmp(a));
    paths
}

/// Opens a file that nobody named, also through a link: no FIFO, whose writer may never come, and no device, which may have no end.
fn open_regular(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let file = options
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("expected a regular file"));
    }
    match distrust(&found) {
        Some(why) => Err(io::Error::other(format!(
            "root does not use a schema file that {why}"
        ))),
        None => Ok(file),
    }
}
