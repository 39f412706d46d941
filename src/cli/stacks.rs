//! Value of `--stacks`.

use clap::ValueEnum;
use usdtrec_report::question::StackKind;

/// Which stacks are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stacks {
    /// Those of the machine code, which record -g records
    Native,
    /// Functions of PHP, Python, Ruby or Java, by their recorded calls and returns
    Script,
}

/// What the option asks for.
pub(crate) fn kind(stacks: Option<Stacks>) -> StackKind {
    match stacks {
        None => StackKind::Auto,
        Some(Stacks::Native) => StackKind::Native,
        Some(Stacks::Script) => StackKind::Script,
    }
}
