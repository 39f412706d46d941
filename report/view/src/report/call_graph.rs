//! Stacks as a tree in text, and in JSON.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};
use usdtrec_analysis::question::CallOrder;
use usdtrec_analysis::stacks::path::{Step, WeighedPath};
use usdtrec_analysis::stacks::tree::{CallNode, CallTree};
use usdtrec_analysis::stacks::weighed::{WeighedStacks, WeightUnit};
use usdtrec_analysis::stats::ratio::share;
use usdtrec_format::escape::escape;

use crate::answer_style::AnswerStyle;
use crate::folded::step_text;
use crate::frames::frame_json;
use crate::head;
use crate::losses::words;
use crate::report::unnamed_frames;
use crate::stack_cut::reason;
use crate::stack_remarks::{SPAN_TIME, stack_remarks};
use crate::weights::{title, weight_text};

/// How a tree of stacks is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallGraphStyle {
    /// Which frames come first.
    pub order: CallOrder,
    /// Branches with a smaller share of the event are summed up in a line, percent.
    pub least_percent: f64,
}

impl Default for CallGraphStyle {
    fn default() -> Self {
        Self {
            order: CallOrder::Caller,
            least_percent: 0.5,
        }
    }
}

/// A tree for each event.
pub(crate) fn text(stacks: &WeighedStacks, graph: CallGraphStyle, style: AnswerStyle) -> String {
    let mut out = String::new();
    head::put(&stacks.origin, &[], style.theme, &mut out);
    // The head says how many were lost, if any were.
    if stacks.origin.lost == 0 {
        let losses = format!("# {}", words(&stacks.losses));
        style.theme.put_remark(&losses, &mut out);
    }
    for words in stack_remarks(stacks) {
        style.theme.put_remark(&format!("# {words}"), &mut out);
    }
    if stacks.tables.is_empty() {
        out.push_str("\nNo stacks.\n");
    }
    for table in &stacks.tables {
        let _ = writeln!(out, "#\n# {}", escape(&title(table, &stacks.unit)));
        if stacks.unit == WeightUnit::SpanTime {
            let remark = format!("# {SPAN_TIME}");
            style.theme.put_remark(&remark, &mut out);
        }
        let order = match graph.order {
            CallOrder::Caller => "the outermost function first",
            CallOrder::Callee => "the function with the probe first",
        };
        let lines = TreeLines {
            tree: CallTree::new(table, graph.order),
            unit: &stacks.unit,
            all: table.weight,
            least: table.weight as f64 * graph.least_percent / 100.0,
            width: weight_text(table.weight, &stacks.unit).len().max(6),
        };
        let width = lines.width;
        let unit = match stacks.unit {
            WeightUnit::Hits => "Hits",
            WeightUnit::Sum(_) => "Sum",
            WeightUnit::SpanTime => "Time",
        };
        let heading = format!("{unit:>width$}  {:>7}  Stack, {order}", "Share");
        out.push('\n');
        style.theme.put_heading(&heading, &mut out);
        lines.put(&mut out);
    }
    unnamed_frames::put(&stacks.unnamed, style, &mut out);
    out
}

/// The lines of a tree.
struct TreeLines<'t> {
    tree: CallTree<'t>,
    unit: &'t WeightUnit,
    /// Weight of the whole tree.
    all: u64,
    /// Branches of less weight are summed up.
    least: f64,
    /// Columns of weights.
    width: usize,
}

/// What remains to be written.
enum Pending {
    /// A branch.
    Branch {
        /// Its first node.
        at: usize,
        /// Prefix of its first line, and of its other lines.
        first: String,
        rest: String,
    },
    /// Branches that are summed up.
    More {
        branches: usize,
        weight: u64,
        first: String,
    },
}

impl TreeLines<'_> {
    fn put(&self, out: &mut String) {
        let mut pending = Vec::new();
        if let Some(root) = self.tree.node(0) {
            self.push_children(root, "", true, &mut pending);
        }
        while let Some(next) = pending.pop() {
            match next {
                Pending::Branch { at, first, rest } => {
                    self.put_chain(at, &first, &rest, &mut pending, out);
                }
                Pending::More {
                    branches,
                    weight,
                    first,
                } => {
                    let what = if branches == 1 { "branch" } else { "branches" };
                    let name = format!("[{branches} smaller {what}]");
                    self.put_line(Some(weight), &first, &name, out);
                }
            }
        }
    }

    /// Writes a node and those after it that have no siblings, and pushes the branches at their end.
    fn put_chain(
        &self,
        at: usize,
        first: &str,
        rest: &str,
        pending: &mut Vec<Pending>,
        out: &mut String,
    ) {
        let mut at = at;
        let mut weight = self.tree.node(at).map(|node| node.weight);
        let mut start = first;
        while let Some(node) = self.tree.node(at) {
            let name = node.step.map(step_text).unwrap_or_default();
            self.put_line(weight.take(), start, &escape(&name), out);
            start = rest;
            match node.children[..] {
                [only]
                    if self
                        .tree
                        .node(only)
                        .is_some_and(|next| next.weight == node.weight) =>
                {
                    at = only;
                }
                _ => {
                    self.push_children(node, rest, false, pending);
                    return;
                }
            }
        }
    }

    /// Pushes the branches after a node, the last one first.
    fn push_children(
        &self,
        node: &CallNode<'_>,
        start: &str,
        is_root: bool,
        pending: &mut Vec<Pending>,
    ) {
        let weight = |at: usize| self.tree.node(at).map_or(0, |node| node.weight);
        let is_shown = |at: &&usize| weight(**at) as f64 >= self.least;
        let shown = node.children.iter().filter(is_shown).count();
        let (shown, smaller) = node.children.split_at(shown);
        let starts = |is_last: bool| match (is_root, is_last) {
            (true, _) => (String::new(), String::new()),
            (false, true) => (format!("{start}└─ "), format!("{start}   ")),
            (false, false) => (format!("{start}├─ "), format!("{start}│  ")),
        };
        if !smaller.is_empty() {
            pending.push(Pending::More {
                branches: smaller.len(),
                weight: smaller
                    .iter()
                    .fold(0, |sum: u64, &at| sum.saturating_add(weight(at))),
                first: starts(true).0,
            });
        }
        for (number, &at) in shown.iter().enumerate().rev() {
            let is_last = number + 1 == shown.len() && smaller.is_empty();
            let (first, rest) = starts(is_last);
            pending.push(Pending::Branch { at, first, rest });
        }
    }

    fn put_line(&self, weight: Option<u64>, start: &str, name: &str, out: &mut String) {
        let width = self.width;
        let figures = match weight {
            Some(weight) => {
                let percent = 100.0 * share(weight, self.all);
                format!(
                    "{:>width$}  {percent:>6.2}%",
                    weight_text(weight, self.unit)
                )
            }
            None => " ".repeat(width + 9),
        };
        let _ = writeln!(out, "{figures}  {start}{name}");
    }
}

/// An object for each event, or span.
pub(crate) fn json(stacks: &WeighedStacks) -> Json {
    let all = stacks.tables.iter().map(|table| {
        let mut row = json!({"name": table.name, "weight": table.weight, "hits": table.hits});
        row["stacks"] = table.paths.iter().map(json_path).collect();
        row
    });
    all.collect()
}

/// A stack, the innermost frame first; `null` for all stacks that are too many to be counted one by one.
fn json_path(path: &WeighedPath) -> Json {
    let mut row = json!({"stack": null, "weight": path.weight, "hits": path.hits});
    if !path.steps.contains(&Step::OtherStacks) {
        let frames = path.steps.iter().rev().filter_map(|step| match step {
            Step::Frame(frame) => Some(frame_json(frame)),
            _ => None,
        });
        row["stack"] = frames.collect();
    }
    let cut = path.steps.iter().find_map(|step| match step {
        Step::Cut(cut) => Some(reason(cut)),
        _ => None,
    });
    if let Some(cut) = cut {
        row["stack_cut"] = json!(cut);
    }
    row
}
