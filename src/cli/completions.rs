//! Options of `usdtrec completions` and `usdtrec man`, and the command line as they and documents show it.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Command, Id};
use clap_complete::Shell;

use super::example::Example;

/// `usdtrec completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell to print completions for
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// `usdtrec man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Folder to write the pages into; it is made if it does not exist, and pages that are there are replaced
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

/// The command line without hidden options.
pub(super) fn shown_command(whole: &Command) -> Command {
    // No option can be taken from a command.
    let shown = |from: &Command, to: Command| {
        let arguments = from.get_arguments();
        let to = to.args(arguments.filter(|known| !known.is_hide_set()).cloned());
        // Options need groups of others.
        let has = |id: &Id| to.get_arguments().any(|known| known.get_id() == id);
        let groups = from.get_groups().filter(|group| group.get_args().all(has));
        let groups: Vec<ArgGroup> = groups.cloned().collect();
        to.groups(groups)
    };
    let mut command = Command::new("usdtrec")
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true);
    command = shown(whole, command);
    for name in Example::verbs() {
        let Some(verb) = whole.find_subcommand(name) else {
            continue;
        };
        let new = Command::new(name).about(verb.get_about().cloned().unwrap_or_default());
        let new = shown(verb, new).subcommands(verb.get_subcommands().cloned());
        command = command.subcommand(new);
    }
    command
}
