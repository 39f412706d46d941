//! Generates `docs/options.md` from the command line. It is checked in, and this test compares it; with `USDTREC_UPDATE=1` in its environment it
//! writes it.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::builder::StyledStr;
use clap::{Arg, Command};
use usdtrec_testing::compare_document;

use super::Cli;

/// The command line with all verbs.
fn command() -> Command {
    let mut command = Cli::with_examples();
    command.build();
    command
}

/// Escapes a text for a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('|', "\\|")
        .replace('*', "\\*")
        .replace('<', "&lt;")
        .replace("\n\n", "<br>")
        .replace('\n', " ")
}

/// The help of an option, with its possible values and its default.
fn help(argument: &Arg) -> String {
    let text = argument.get_long_help().or(argument.get_help());
    let mut help = cell(&text.map(StyledStr::to_string).unwrap_or_default());
    let values = argument.get_possible_values();
    let takes_values = argument.get_action().takes_values();
    for value in values
        .iter()
        .filter(|value| takes_values && !value.is_hide_set())
    {
        let meaning = value
            .get_help()
            .map(StyledStr::to_string)
            .unwrap_or_default();
        let _ = write!(help, "<br>`{}` {}", value.get_name(), cell(&meaning));
    }
    let defaults: Vec<_> = argument
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy())
        .collect();
    if takes_values && !defaults.is_empty() {
        let _ = write!(help, "<br>default: `{}`", defaults.join(","));
    }
    help
}

/// `-e, --event <EVENT>`.
fn names(argument: &Arg) -> String {
    let short = argument.get_short().map(|short| format!("-{short}"));
    let long = argument.get_long().map(|long| format!("--{long}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    let values: Vec<String> = argument
        .get_value_names()
        .unwrap_or_default()
        .iter()
        .filter(|_| argument.get_action().takes_values())
        .map(|name| format!("<{name}>"))
        .collect();
    let names = names.join(", ");
    // A value that can be left out is one only after `=`.
    if is_optional(argument) {
        return format!("{names}[={}]", values.join(" "));
    }
    [names, values.join(" ")].join(" ").trim().to_owned()
}

/// Whether an option can have a value, and needs none.
fn is_optional(argument: &Arg) -> bool {
    argument.is_require_equals_set()
        && argument
            .get_num_args()
            .is_some_and(|values| values.min_values() == 0)
}

/// Appends the section of a verb, and the sections of its subcommands.
fn describe(command: &Command, path: &str, page: &mut String) {
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(StyledStr::to_string).unwrap_or_default();
    let _ = write!(page, "\n## {path}\n\n{about}\n\n");
    if let Some(examples) = command.get_before_help() {
        let examples = examples.to_string();
        let lines = examples.lines().skip(1).map(str::trim_start);
        let lines: Vec<&str> = lines.collect();
        let _ = write!(page, "```sh\n{}\n```\n\n", lines.join("\n"));
    }
    let mut arguments = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set())
        .peekable();
    if arguments.peek().is_some() {
        page.push_str("| option | |\n|---|---|\n");
    }
    for argument in arguments {
        let _ = writeln!(
            page,
            "| `{}` | {} |",
            names(argument).replace('|', "\\|"),
            help(argument)
        );
    }
    let after = command.get_after_long_help().or(command.get_after_help());
    if let Some(after) = after {
        let _ = write!(page, "\n```text\n{}\n```\n", after.to_string().trim_end());
    }
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        describe(verb, &format!("{path} {}", verb.get_name()), page);
    }
}

/// `docs/options.md`.
fn options() -> String {
    let mut page = "# Options\n\n<!-- Generated from the help: USDTREC_UPDATE=1 cargo test --bin usdtrec generated -->\n".to_owned();
    page.push_str("\n[verbs.md](verbs.md) has what is the same in several verbs, [arguments.md](arguments.md) describes expressions and templates.\n");
    page.push_str("\n| verb | | more |\n|---|---|---|\n");
    let command = command();
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        let name = verb.get_name();
        let about = verb
            .get_about()
            .map(StyledStr::to_string)
            .unwrap_or_default();
        let more = match document(&format!("verbs/{name}.md")).exists() {
            true => format!("[{name}](verbs/{name}.md)"),
            false => String::new(),
        };
        let _ = writeln!(
            page,
            "| [{name}](#usdtrec-{name}) | {} | {more} |",
            cell(&about)
        );
    }
    describe(&command, "usdtrec", &mut page);
    page
}

/// The path of a document.
fn document(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("docs")
        .join(name)
}

#[test]
fn generated_documents_are_current() {
    compare_document(&document("options.md"), &options());
}
