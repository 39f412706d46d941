//! `usdtrec schema`.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use usdtrec_buildid_cache::open as open_file;
use usdtrec_format::escape::{escape, shown};
use usdtrec_format::schema::telemetry::conventions;
use usdtrec_format::schema::{
    Argument, ArgumentType, Disagreement, Labels, Parsed, ProbeSchema, Schemas, SourcedSchema, toml,
};
use usdtrec_format::trace::Trace;
use usdtrec_format::{Binary, Operand, Pattern, parse_operands};

use crate::cli::{SchemaAction, SchemaArgs};
use crate::terminal::say;
use crate::{schemas, shell, text_room};

/// Runs the verb.
pub(crate) fn run(args: &SchemaArgs) -> anyhow::Result<ExitCode> {
    match &args.action {
        SchemaAction::Show {
            patterns,
            schema,
            verbose,
        } => show(patterns, schema, *verbose),
        SchemaAction::Check { schema, file } => check(schema, file),
        SchemaAction::Import {
            schema,
            provider,
            force,
        } => import(schema, provider.as_deref(), *force),
        SchemaAction::Export {
            patterns,
            schema,
            input,
        } => export(patterns, schema, input.as_deref()),
    }
}

fn show(patterns: &[String], files: &[PathBuf], verbose: bool) -> anyhow::Result<ExitCode> {
    let patterns = super::list::patterns(patterns)?;
    let schemas = schemas::in_force(files)?;
    let mut out = text_room::stdout();
    let mut any = false;
    for SourcedSchema {
        source,
        schema: probe,
    } in chosen(&schemas, &patterns)
    {
        any = true;
        writeln!(out, "{}  [{source}]", escape(&probe.signature()))?;
        if verbose {
            explain(&mut out, probe)?;
        }
    }
    out.flush()?;
    if !any && !patterns.is_empty() {
        say("usdtrec: no schema matches");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn explain(out: &mut impl Write, probe: &ProbeSchema) -> io::Result<()> {
    if let Some(description) = &probe.description {
        writeln!(out, "    {}", escape(description))?;
    }
    if let Some(needs) = &probe.needs {
        writeln!(out, "    needs: {}", escape(needs))?;
    }
    if let Some(call) = &probe.call {
        let what = if call.enters { "calls" } else { "returns" };
        writeln!(out, "    {what}: {}", escape(&call.function))?;
    }
    if let Some(lock) = &probe.lock {
        let shared = if lock.shared { ", shared" } else { "" };
        let group = if lock.group { ", a group of locks" } else { "" };
        let contended = if lock.contended {
            ", if others wait"
        } else {
            ""
        };
        let key = lock.action.key();
        let lock = escape(&lock.lock);
        writeln!(out, "    {key}: {lock}{shared}{group}{contended}")?;
    }
    if let Some(kind) = probe.telemetry.kind {
        writeln!(out, "    span kind: {kind}")?;
    }
    for (name, value) in &probe.telemetry.attributes {
        writeln!(out, "    {} = {}", escape(name), escape(value))?;
    }
    for argument in &probe.arguments {
        let Argument {
            name,
            labels,
            description,
            ..
        } = argument;
        let words = description.as_deref().unwrap_or_default();
        let line = format!("{name}: {}  {words}", argument.type_words());
        writeln!(out, "    {}", escape(line.trim_end()))?;
        let numbers = labels.as_ref().map(Labels::words);
        for (number, word) in numbers.into_iter().flat_map(|numbers| numbers.iter()) {
            let number = match labels {
                Some(Labels::Flags(_)) => format!("{number:#x}"),
                _ => number.to_string(),
            };
            writeln!(out, "        {number}  {}", escape(word))?;
        }
    }
    Ok(())
}

/// The schemas that match the patterns (all without patterns). Of several schemas for a probe only the first one is returned, which takes precedence.
fn chosen<'s>(
    schemas: &'s Schemas,
    patterns: &[Pattern],
) -> impl Iterator<Item = SourcedSchema<'s>> {
    let mut seen = HashSet::new();
    schemas.all().filter(move |found| {
        let probe = found.schema;
        let fits = |pattern: &Pattern| pattern.matches(&probe.provider, &probe.name);
        (patterns.is_empty() || patterns.iter().any(fits))
            && seen.insert((&probe.provider, &probe.name, probe.arguments.len()))
    })
}

fn import(files: &[PathBuf], provider: Option<&str>, force: bool) -> anyhow::Result<ExitCode> {
    let Some(directory) = schemas::user_directory() else {
        bail!("cannot find the user's schema directory: neither XDG_CONFIG_HOME nor HOME is set");
    };
    fs::create_dir_all(&directory)
        .with_context(|| format!("cannot create {}", shown(&directory)))?;
    if let Some(refusal) = schemas::refusal(&directory) {
        bail!(refusal);
    }
    for path in files {
        let Parsed {
            mut probes,
            problems,
        } = schemas::read(path)?;
        for problem in &problems {
            say(format_args!("{}:{problem}", shown(path)));
        }
        if probes.is_empty() {
            bail!("{}: the file has no valid probe definition", shown(path));
        }
        if let Some(provider) = provider {
            for probe in &mut probes {
                provider.clone_into(&mut probe.provider);
            }
        }
        let target = directory.join(imported_name(path, &probes));
        write_file(&target, &toml::write(&probes), force)?;
        say(format_args!(
            "usdtrec: imported {} probes of {} to {}",
            probes.len(),
            shown(path),
            shown(&target)
        ));
    }
    if !rustix::process::geteuid().is_root() {
        say(format_args!(
            "usdtrec: recordings by sudo have the schemas of root's directory; to import there, too: {} {}",
            shell::sudo(),
            import_words(files, provider, force)
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// The words of a command line that imports these files.
fn import_words(files: &[PathBuf], provider: Option<&str>, force: bool) -> String {
    let mut words = "schema import".to_owned();
    if let Some(provider) = provider {
        words += &format!(" --provider={}", shell::word(provider));
    }
    if force {
        words += " --force";
    }
    for file in files {
        words += &format!(" {}", shell::path(file));
    }
    words
}

/// The name of an imported file, prefixed with the provider because many files are called `probes.d`.
fn imported_name(path: &Path, probes: &[ProbeSchema]) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split('.').next().unwrap_or(&name);
    let mut providers = probes.iter().map(|probe| probe.provider.as_str());
    let first = providers.next().unwrap_or_default();
    if stem == first || providers.any(|provider| provider != first) {
        return format!("{stem}.toml");
    }
    let provider = first.replace(|letter: char| !letter.is_ascii_alphanumeric(), "_");
    format!("{provider}-{stem}.toml")
}

/// Writes a file atomically. A symbolic link at the path is replaced, not followed.
fn write_file(path: &Path, text: &str, force: bool) -> anyhow::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.permissions(fs::Permissions::from_mode(0o644));
    let written = builder.tempfile_in(directory).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        let kept = if force {
            file.persist(path)
        } else {
            file.persist_noclobber(path)
        };
        kept.map(drop).map_err(|error| error.error)
    });
    written.with_context(|| {
        let advice = if path.symlink_metadata().is_ok() && !force {
            " (--force replaces it)"
        } else {
            ""
        };
        format!("cannot write {}{advice}", shown(path))
    })
}

fn export(
    patterns: &[String],
    files: &[PathBuf],
    trace: Option<&Path>,
) -> anyhow::Result<ExitCode> {
    let patterns = super::list::patterns(patterns)?;
    let schemas = match trace {
        Some(path) => schemas_in_trace(path)?,
        None => schemas::in_force(files)?,
    };
    let mut probes: Vec<ProbeSchema> = chosen(&schemas, &patterns)
        .map(|found| found.schema.clone())
        .collect();
    probes.sort_by_cached_key(|probe| (probe.provider.clone(), probe.name.clone()));
    if probes.is_empty() {
        bail!("no schema matches");
    }
    let mut out = io::stdout().lock();
    out.write_all(toml::write(&probes).as_bytes())?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The schemas stored in a trace.
fn schemas_in_trace(path: &Path) -> anyhow::Result<Schemas> {
    let trace = Trace::open(path)?;
    let definitions = trace.info().definitions.as_ref();
    let probes = definitions
        .into_iter()
        .flat_map(|all| &all.probes)
        .map(|probe| ProbeSchema {
            provider: probe.provider.clone(),
            name: probe.name.clone(),
            description: probe.description.clone(),
            needs: probe.needs.clone(),
            call: probe.call.clone(),
            lock: probe.lock.clone(),
            telemetry: probe.telemetry.clone(),
            arguments: probe.arguments.clone(),
            ..ProbeSchema::default()
        });
    let mut schemas = Schemas::default();
    schemas.add(shown(path).to_string(), probes);
    Ok(schemas)
}

/// Checks `files`, and compares the probes of `programs` with them; without files, with the schemas in use.
fn check(files: &[PathBuf], programs: &[PathBuf]) -> anyhow::Result<ExitCode> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut schemas = match files {
        [] => schemas::in_force(&[])?,
        _ => Schemas::default(),
    };
    let mut errors = 0;
    for path in files {
        let Parsed { probes, problems } = match schemas::read(path) {
            Ok(parsed) => parsed,
            Err(error) => {
                writeln!(out, "{error:#}")?;
                errors += 1;
                continue;
            }
        };
        for problem in &problems {
            writeln!(out, "{}:{problem}", shown(path))?;
        }
        errors += problems.iter().filter(|problem| problem.error).count();
        write_doubts(&mut out, path, &probes)?;
        writeln!(out, "{}: {} probes", shown(path), probes.len())?;
        schemas.add(shown(path).to_string(), probes);
    }
    let mut present = Present::default();
    for program in programs {
        let binary = open(program)?;
        errors += check_program(&mut out, &binary, &schemas)?;
        present.add(&binary);
    }
    if !files.is_empty() && !programs.is_empty() {
        errors += check_absent(&mut out, &present, &schemas)?;
    }
    out.flush()?;
    Ok(if errors == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Prints what attributes are not as OpenTelemetry's conventions have them, which is no error: a schema may be for later conventions.
fn write_doubts(out: &mut impl Write, path: &Path, probes: &[ProbeSchema]) -> io::Result<()> {
    let attributes = probes.iter().flat_map(|probe| &probe.telemetry.attributes);
    let attributes: BTreeSet<_> = attributes.collect();
    for (name, value) in attributes {
        if let Some(doubt) = conventions::doubt(name, value) {
            let line = format!("{}: note: attribute {name}: {doubt}", shown(path));
            writeln!(out, "{}", escape(&line))?;
        }
    }
    Ok(())
}

fn open(program: &Path) -> anyhow::Result<Binary> {
    let file = open_file(program).with_context(|| shown(program).to_string())?;
    file.binary()
        .with_context(|| shown(file.path()).to_string())
}

/// Prints the disagreements between schemas and a program's notes. Returns their number.
fn check_program(out: &mut impl Write, binary: &Binary, schemas: &Schemas) -> io::Result<usize> {
    let (mut known, mut disagreements) = (0, Vec::<Disagreement>::new());
    for probe in &binary.probes {
        let description = schemas.describe(probe, binary.arch);
        known += usize::from(description.choice.schema.is_some());
        disagreements.extend(description.disagreements);
    }
    for disagreement in &disagreements {
        writeln!(out, "{}", escape(&disagreement.to_string()))?;
    }
    let path = shown(&binary.path);
    let cut = cut(binary, schemas);
    if !cut.is_empty() {
        let line = format!(
            "{path}: wider in the note than in the schema, the lower bytes are used: {}",
            cut.join(", ")
        );
        writeln!(out, "{}", escape(&line))?;
    }
    let all = binary.probes.len();
    writeln!(out, "{path}: {known} of {all} probes have a schema")?;
    Ok(disagreements.len())
}

/// The probes with arguments that are wider in the note than in the schema: `NAME(ARGUMENT, …)`.
fn cut(binary: &Binary, schemas: &Schemas) -> Vec<String> {
    let Some(arch) = binary.arch else {
        return Vec::new();
    };
    let mut cut = Vec::new();
    for probe in &binary.probes {
        let arguments = schemas.describe(probe, Some(arch)).arguments;
        let wider = |(argument, operand): (&Argument, &Operand)| {
            let claimed = argument.kind.as_ref().and_then(ArgumentType::bytes);
            operand.size.is_some() && claimed.is_some_and(|bytes| bytes < operand.bytes(arch))
        };
        let mut names = BTreeSet::new();
        for site in &probe.sites {
            let operands = parse_operands(&site.args, Some(arch));
            let both = arguments.iter().zip(&operands);
            names.extend(
                both.filter(|&both| wider(both))
                    .map(|(argument, _)| &argument.name),
            );
        }
        if !names.is_empty() {
            let names: Vec<&str> = names.into_iter().map(String::as_str).collect();
            cut.push(format!("{}({})", probe.name, names.join(", ")));
        }
    }
    cut
}

/// The probes of all programs.
#[derive(Debug, Default)]
struct Present {
    probes: HashSet<(String, String)>,
    /// Provider by probe name.
    provider: HashMap<String, String>,
}

impl Present {
    fn add(&mut self, binary: &Binary) {
        for probe in &binary.probes {
            let (provider, name) = (probe.provider.clone(), probe.name.clone());
            self.provider.insert(name.clone(), provider.clone());
            self.probes.insert((provider, name));
        }
    }

    fn has(&self, probe: &ProbeSchema) -> bool {
        let key = (probe.provider.clone(), probe.name.clone());
        self.probes.contains(&key)
    }
}

/// Prints the probes that are in the schema files and in no program. Returns the number of those that a program has with another provider.
fn check_absent(out: &mut impl Write, present: &Present, schemas: &Schemas) -> io::Result<usize> {
    let mut elsewhere = BTreeMap::<(&str, &str, &str), usize>::new();
    let mut nowhere = BTreeMap::<&str, Vec<&str>>::new();
    let absent = schemas.all().filter(|found| !present.has(found.schema));
    for SourcedSchema {
        source,
        schema: probe,
    } in absent
    {
        match present.provider.get(&probe.name) {
            Some(other) => {
                *elsewhere
                    .entry((source, &probe.provider, other))
                    .or_default() += 1
            }
            None => nowhere.entry(source).or_default().push(&probe.name),
        }
    }
    for ((source, claimed, found), count) in &elsewhere {
        let line = format!(
            "{source}: provider {claimed} of {count} probes is {found} in the programs (schema import --provider {})",
            shell::word(found)
        );
        writeln!(out, "{}", escape(&line))?;
    }
    for (source, names) in nowhere {
        let line = format!("{source}: not in the programs: {}", names.join(", "));
        writeln!(out, "{}", escape(&line))?;
    }
    Ok(elsewhere.values().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_import_is_repeated_with_its_options() {
        let files = ["my app.toml", "-x.d"].map(PathBuf::from);
        assert_eq!(
            import_words(&files, Some("a b"), true),
            "schema import --provider='a b' --force 'my app.toml' ./-x.d"
        );
        assert_eq!(
            import_words(&files[..1], None, false),
            "schema import 'my app.toml'"
        );
    }
}
