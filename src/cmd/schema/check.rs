//! `usdtrec schema check`: checks schema files, and compares schemas with the probes of programs.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use usdtrec_buildid_cache::open as open_file;
use usdtrec_format::escape::{escape, shown};
use usdtrec_format::schema::telemetry::conventions;
use usdtrec_format::schema::{
    Argument, ArgumentType, Disagreement, Parsed, ProbeSchema, Schemas, SourcedSchema,
};
use usdtrec_format::{Binary, Operand, parse_operands};

use crate::{schemas, shell};

/// Checks `files`, and compares the probes of `programs` with them; without files, with the schemas in use.
pub(super) fn run(files: &[PathBuf], programs: &[PathBuf]) -> anyhow::Result<ExitCode> {
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
