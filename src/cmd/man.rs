//! `usdtrec man`.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::Command;
use clap_mangen::Man;
use usdtrec_format::escape::shown;

use crate::cli::{Cli, Example, ManArgs};
use crate::unfinished_file::UnfinishedFile;

/// Runs the verb.
pub(crate) fn run(args: &ManArgs) -> anyhow::Result<ExitCode> {
    let folder = &args.folder;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", shown(folder)))?;
    let mut command = Cli::with_examples();
    command.build();
    write_all(&command, folder)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a verb and those of its subcommands.
fn write_all(command: &Command, folder: &Path) -> anyhow::Result<()> {
    let man = Man::new(command.clone());
    let path = folder.join(man.get_filename());
    let written = || -> io::Result<()> {
        let mut file = UnfinishedFile::create_readable(&path)?;
        file.file().write_all(&page(command, &man)?)?;
        file.finish(&path)
    };
    written().with_context(|| format!("cannot write {}", shown(&path)))?;
    let mut verbs = command.get_subcommands();
    verbs.try_for_each(|verb| write_all(verb, folder))
}

/// A page; its examples come before the options.
fn page(command: &Command, man: &Man) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let out = &mut page;
    man.render_title(out)?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    man.render_description_section(out)?;
    let name = command.get_display_name().unwrap_or(command.get_name());
    let examples = Example::for_verb(name.trim_start_matches("usdtrec-"));
    if !examples.is_empty() {
        write_examples(&examples, out)?;
    }
    man.render_options_section(out)?;
    if command.has_subcommands() {
        man.render_subcommands_section(out)?;
    }
    if command.get_after_long_help().is_some() || command.get_after_help().is_some() {
        man.render_extra_section(out)?;
    }
    if command.get_version().is_some() {
        man.render_version_section(out)?;
    }
    Ok(page)
}

fn write_examples(examples: &[Example], out: &mut Vec<u8>) -> io::Result<()> {
    writeln!(out, ".SH EXAMPLES")?;
    for Example { what, line } in examples {
        let (what, line) = (roff(what), roff(line));
        writeln!(out, ".PP\n{what}:\n.PP\n.RS 4\n.nf\n{line}\n.fi\n.RE")?;
    }
    Ok(())
}

/// Escapes a line of text.
fn roff(text: &str) -> String {
    let escaped = text
        .replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('\'', "\\(aq")
        .replace('~', "\\(ti");
    // It may begin with a dot, which would be a request.
    format!("\\&{escaped}")
}

#[cfg(test)]
mod tests {
    use super::roff;

    #[test]
    fn commands_are_shown_as_they_are_typed() {
        assert_eq!(
            roff(r"script --format '{pid}\t~'"),
            r"\&script \-\-format \(aq{pid}\et\(ti\(aq"
        );
        assert_eq!(roff(".x"), r"\&.x");
    }
}
