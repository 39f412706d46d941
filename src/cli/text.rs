//! Options about the output: format, colours, pager, width.

use clap::{Args, ValueEnum};

use crate::text_room::MIN_COLUMNS;

/// Whether there is a pager.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct PagerArgs {
    /// Print on the terminal itself, not through a pager
    ///
    /// What goes to a terminal is shown by the program of $USDTREC_PAGER, else of $PAGER, else by less; an empty variable, or cat, means none.
    #[arg(long)]
    pub(crate) no_pager: bool,
}

/// How wide texts are.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct WidthArgs {
    /// Width of lines of text, columns [default: $COLUMNS, else that of the terminal; 80 in a file or pipe, where list folds no lines]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(i64::from(MIN_COLUMNS)..))]
    pub(crate) width: Option<u16>,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// If standard output is a terminal and NO_COLOR is not set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Output format of events and reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Text; events in the format of `perf script`
    #[default]
    Text,
    /// One JSON object per line
    Json,
    /// Comma-separated values with a header line; strings that spreadsheets would evaluate as formulas are prefixed with '
    Csv,
    /// Comma-separated values with a header line; all strings unchanged
    CsvRaw,
}
