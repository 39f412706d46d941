//! `record -h`: the options that most recordings need, by what they are about. `record --help` has all.

use clap::{Arg, Command};

/// Options below a heading.
struct Heading {
    title: &'static str,
    options: &'static [&'static str],
}

const fn heading(title: &'static str, options: &'static [&'static str]) -> Heading {
    Heading { title, options }
}

const HEADINGS: [Heading; 6] = [
    heading("What is recorded", &["event", "filter", "min"]),
    heading(
        "Whose hits",
        &[
            "all_cpus",
            "pid",
            "cgroup",
            "container",
            "unit",
            "no_inherit",
        ],
    ),
    heading("When it ends", &["duration", "until", "max_size"]),
    heading("Strings", &["strings", "strlen"]),
    heading("Stacks", &["callers", "call_graph"]),
    heading("Files", &["output", "switch_output", "ring", "trigger"]),
];

/// Adds the headings, and leaves all other options out of the short help of `record`.
pub(super) fn with_short_help(command: Command) -> Command {
    let verbs = command.get_subcommands();
    let verbs: Vec<String> = verbs.map(|verb| verb.get_name().to_owned()).collect();
    // A verb that is changed becomes the last one: all are.
    verbs.into_iter().fold(command, |command, name| {
        command.mut_subcommand(&name, |verb| match &*name {
            "record" => verb.mut_args(below_heading),
            _ => verb,
        })
    })
}

fn below_heading(option: Arg) -> Arg {
    let id = option.get_id().as_str();
    let mut headings = HEADINGS.iter();
    match headings.find(|heading| heading.options.contains(&id)) {
        Some(heading) => option.help_heading(heading.title),
        None if option.is_positional() => option,
        None => option.hide_short_help(true),
    }
}

#[cfg(test)]
mod tests {
    use super::HEADINGS;
    use crate::cli::Cli;

    #[test]
    fn the_help_of_record_fits_on_two_screens() {
        let mut command = Cli::with_examples();
        command.build();
        let record = command.find_subcommand_mut("record").expect("a verb");
        let short = record.render_help().to_string();
        assert!(short.lines().count() <= 100, "{short}");
        for option in HEADINGS.iter().flat_map(|heading| heading.options) {
            let is_known = |known: &&clap::Arg| known.get_id() == option;
            let known = record.get_arguments().find(is_known).expect(option);
            let name = known
                .get_long()
                .map_or("-g".to_owned(), |long| format!("--{long}"));
            assert!(short.contains(&name), "{name}: {short}");
        }
        assert!(!short.contains("--thread-context"), "{short}");
        let long = record.render_long_help().to_string();
        assert!(long.contains("--thread-context"), "{long}");
    }
}
