//! Options about stacks: which ones are recorded and shown, and how.

#[cfg(feature = "record")]
use clap::ArgGroup;
use clap::{Args, ValueEnum};
use usdtrec_report::question::{CallOrder, StackKind};
use usdtrec_report::report::CallGraphStyle;

/// Which stacks are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stacks {
    /// Stacks of the machine code, which record -g records
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

/// Whether callers are recorded, and how.
#[cfg(feature = "record")]
#[derive(Clone, Debug, Default, Args)]
#[command(group(ArgGroup::new("recorded_callers").args(["callers", "call_graph"]).multiple(true)))]
pub(crate) struct CallersArgs {
    /// Record the callers of each hit, as with --call-graph auto
    #[arg(short = 'g')]
    pub(crate) callers: bool,
    /// Record the callers of each hit: auto; fp, by frame pointers; dwarf or dwarf,SIZE, by unwind tables from a copy of SIZE bytes of stack (8 to
    /// 32K, 8K without SIZE)
    ///
    /// auto copies as much as the stacks of each site need: 512 bytes to 16K, 16K at first, and always 2K with a perf engine. The
    /// recorder unwinds the copies and writes the callers. A stack that is cut is marked with the reason.
    #[arg(long, value_name = "MODE")]
    pub(crate) call_graph: Option<String>,
    /// With -g or --call-graph, record at most N frames of each hit, 1 to 1024 [default: 127]
    #[arg(long, value_name = "N", requires = "recorded_callers", value_parser = clap::value_parser!(u16).range(1..=i64::from(usdtrec_record::CallGraph::MAX_FRAMES)))]
    pub(crate) max_stack: Option<u16>,
}

/// Whether stacks have frames of inlined functions.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct InlineArgs {
    /// Do not show frames of functions whose code was inlined, which are marked (inlined)
    #[arg(long)]
    pub(crate) no_inline: bool,
}

/// Parses `caller`, `callee` and the least percentage, separated by commas; `graph` and `function` change nothing: they name the only style.
pub(super) fn call_graph(text: &str) -> Result<CallGraphStyle, String> {
    let mut style = CallGraphStyle::default();
    for word in text.split(',') {
        match word {
            "caller" => style.order = CallOrder::Caller,
            "callee" => style.order = CallOrder::Callee,
            "graph" | "function" => {}
            word => {
                let percent = word.parse::<f64>().ok();
                let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
                style.least_percent = percent.ok_or_else(|| {
                    format!(
                        "{word:?}: expected caller (the outermost function first), callee (the function with the probe first), or the least percentage shown, \
                         such as callee,5"
                    )
                })?;
            }
        }
    }
    Ok(style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_perfs() {
        let style = call_graph("graph,2.5,callee,function").unwrap();
        assert_eq!((style.order, style.least_percent), (CallOrder::Callee, 2.5));
        assert_eq!(call_graph("caller"), Ok(CallGraphStyle::default()));
        for wrong in ["fractal", "", "101", "-1", "nan", "caller,,"] {
            assert!(call_graph(wrong).is_err(), "{wrong}");
        }
    }
}
