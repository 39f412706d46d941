//! Options of verbs that print texts.

use clap::Args;

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
    /// Width of lines of text, columns [default: $COLUMNS, else that of the terminal; 80 in a file or pipe]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(i64::from(MIN_COLUMNS)..))]
    pub(crate) width: Option<u16>,
}
