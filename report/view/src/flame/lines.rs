//! The lines that a flame graph is drawn from.

use usdtrec_analysis::question::CallOrder;
use usdtrec_analysis::stacks::tree::CallTree;
use usdtrec_analysis::stacks::weighed::WeighedStacks;
use usdtrec_trace::question_error::QuestionError;

use crate::folded::{escaped, line_of, root, step_text};

/// A line for each stack, the last one first: frames that stacks have in common are next to each other, the greatest first.
///
/// # Errors
/// [`QuestionError`] if nothing has weight, or all weights together do not fit into 63 bits.
pub(crate) fn reversed(stacks: &WeighedStacks) -> Result<Vec<String>, QuestionError> {
    let weights = stacks.tables.iter().map(|table| table.weight);
    let all = weights.into_iter().try_fold(0_u64, u64::checked_add);
    let all = all.filter(|&all| i64::try_from(all).is_ok());
    if all.ok_or(QuestionError::TooMuchStackWeight)? == 0 {
        return Err(QuestionError::NoStackWeight);
    }
    let mut lines = Vec::new();
    for table in &stacks.tables {
        let tree = CallTree::new(table, CallOrder::Caller);
        let root = root(&stacks.tables, table).map(escaped);
        put(&tree, root, &mut lines);
    }
    lines.reverse();
    Ok(lines)
}

/// Appends the lines of a tree.
fn put(tree: &CallTree<'_>, root: Option<String>, lines: &mut Vec<String>) {
    let mut names: Vec<String> = root.into_iter().collect();
    let children = |at: usize, depth: usize| {
        let children = tree.node(at).map_or(&[][..], |node| &node.children);
        children.iter().rev().map(move |&child| (child, depth))
    };
    let mut pending: Vec<(usize, usize)> = children(0, names.len()).collect();
    while let Some((at, depth)) = pending.pop() {
        let Some(node) = tree.node(at) else {
            continue;
        };
        names.truncate(depth);
        names.push(
            node.step
                .map(step_text)
                .as_deref()
                .map_or_else(String::new, escaped),
        );
        if node.own > 0 {
            lines.push(format!("{} {}", line_of(&names), node.own));
        }
        pending.extend(children(at, depth + 1));
    }
}
