//! Sources of schemas: files of `--schema`, the user's directory, the built-in set.

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::bail;
use usdtrec_format::escape::shown;
use usdtrec_format::schema::{Language, Parsed, Schemas, read_file};

use crate::terminal::say;

/// The schemas in use: the built-in set, the user's directory and the `named` files, each of which takes precedence over those before it.
/// Errors in a file are printed, and the rest of the file is used.
///
/// # Errors
/// A named file cannot be read or has no valid probe definition.
pub(crate) fn in_force(named: &[PathBuf]) -> anyhow::Result<Schemas> {
    let mut schemas = Schemas::built_in();
    for path in of_user() {
        match read(&path, None) {
            Ok(parsed) => add(&mut schemas, &path, parsed),
            Err(error) => say(format_args!("usdtrec: {error:#}; skipped")),
        }
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
        let parsed = read(path, None)?;
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
pub(crate) fn read(path: &Path, provider: Option<&str>) -> anyhow::Result<Parsed> {
    Ok(read_file(path, provider)?)
}

/// `$XDG_CONFIG_HOME/usdtrec/schemas`, else `~/.config/usdtrec/schemas`.
pub(crate) fn user_directory() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty());
    let config = set("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| Some(Path::new(&set("HOME")?).join(".config")));
    Some(config?.join("usdtrec").join("schemas"))
}

/// The schema files of the user's directory, by name.
fn of_user() -> Vec<PathBuf> {
    let entries = user_directory().and_then(|directory| fs::read_dir(directory).ok());
    let paths = entries.into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = paths
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            Language::from_file_name(&name).is_some()
        })
        .collect();
    // Reversed, because later schemas take precedence and the first file by name shall win.
    paths.sort_by(|a, b| b.cmp(a));
    paths
}
