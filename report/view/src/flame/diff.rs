//! A flame graph of two recordings: frames are coloured by what differs beyond noise.
//!
//! Frames are as wide as the mean of their shares, so that frames that only one recording has are shown, too.

use std::collections::HashMap;
use std::io::Write;

use usdtrec_analysis::diff::sides::Sides;
use usdtrec_analysis::stacks::compare::{ComparedStacks, compare_stacks};
use usdtrec_analysis::stacks::diff_tree::{DiffNode, DiffTree, ShareVerdict};
use usdtrec_format::escape::escape;
use usdtrec_trace::error::ReportError;
use usdtrec_trace::events::notices::Notices;
use usdtrec_trace::events::selection::EventSelection;
use usdtrec_trace::question_error::QuestionError;
use usdtrec_trace::session::TraceSession;
use usdtrec_trace::session::loss_ledger::LossLedger;

use crate::flame::page;
use crate::flame::recolour::{FrameLook, FramePlace, recolour};
use crate::flame::svg::{self, Labels};
use crate::flame::{FlameFormat, FlameOptions};
use crate::folded::{escaped, line_of, step_text};
use crate::losses::words;

/// Width of an event, in parts.
const PARTS: u64 = 1_000_000_000;
/// Of frames that are within noise, or were not tested.
const GREY: &str = "rgb(205,205,205)";

/// Writes the flame graph of the selected samples of two recordings. Frames are as wide as their mean share; red ones have a greater share in B, blue ones in
/// A, beyond noise; all others are grey. They weigh their hits, whatever the options say.
///
/// # Errors
/// [`ReportError::Question`] if one has no stacks or too many different ones, or times are requested and not parts of each recording;
/// [`ReportError::Write`] if `out` fails.
pub fn print_diff(
    a: &TraceSession,
    b: &TraceSession,
    selection: &EventSelection,
    options: &FlameOptions,
    out: &mut dyn Write,
) -> Result<[Notices; 2], ReportError> {
    let ComparedStacks {
        trees,
        losses,
        notices,
    } = compare_stacks(Sides { a, b }, selection, options.of)?;
    let mut drawing = Drawing::default();
    for tree in &trees {
        drawing.add(tree, trees.len() > 1);
    }
    if drawing.lines.is_empty() {
        return Err(QuestionError::NoStackWeight.into());
    }
    drawing.lines.reverse();
    let labels = labels(&trees, &losses);
    let picture = svg::draw(&drawing.lines, &labels)?;
    let picture = recolour(&picture, |place| drawing.looks.get(&place).cloned())?;
    let written = match options.format {
        FlameFormat::Svg => picture,
        FlameFormat::Html => page::around(&picture, &labels.title),
    };
    out.write_all(written.as_bytes())?;
    out.flush()?;
    let Sides { a, b } = notices;
    Ok([a, b])
}

fn labels(trees: &[DiffTree], losses: &Sides<LossLedger>) -> Labels {
    let lost = format!("A: {}, B: {}", words(&losses.a), words(&losses.b));
    let title = match trees {
        [one] => title(one),
        all => {
            let hits = all.iter().map(DiffTree::hits);
            let sum = |of: fn(&Sides<u64>) -> u64| {
                hits.clone()
                    .map(|hits| of(&hits))
                    .fold(0, u64::saturating_add)
            };
            let (a, b) = (sum(|hits| hits.a), sum(|hits| hits.b));
            format!("{} events: {a} hits in A, {b} in B", all.len())
        }
    };
    Labels {
        title: escape(&title).into_owned(),
        subtitle: format!("red: greater share in B, blue: in A, grey: within noise; {lost}"),
        unit: "parts".to_owned(),
    }
}

/// The hits of an event.
fn title(tree: &DiffTree) -> String {
    let Sides { a, b } = tree.hits();
    format!("{}: {a} hits in A, {b} in B", tree.name)
}

/// Lines to draw, and what frames look like, by their places.
#[derive(Debug, Default)]
struct Drawing {
    lines: Vec<String>,
    looks: HashMap<FramePlace, FrameLook>,
    /// Width of all lines.
    end: u64,
}

impl Drawing {
    /// Adds the stacks of an event, with a frame of its own below them, if there are others.
    fn add(&mut self, tree: &DiffTree, has_others: bool) {
        let hits = tree.hits();
        let greatest = tree
            .nodes
            .iter()
            .filter(|node| node.verdict == ShareVerdict::Beyond);
        let greatest = greatest
            .map(DiffNode::change)
            .fold(0.0_f64, |most, change| most.max(change.abs()));
        let mut names: Vec<String> = has_others
            .then(|| escaped(&title(tree)))
            .into_iter()
            .collect();
        // The picture has a frame below all.
        let lowest = names.len();
        let mut pending: Vec<(usize, usize)> = children(tree, 0, lowest);
        while let Some((at, depth)) = pending.pop() {
            let Some(node) = tree.nodes.get(at) else {
                continue;
            };
            let name = node.step.as_ref().map(step_text).unwrap_or_default();
            names.truncate(depth);
            names.push(escaped(&name));
            let place = FramePlace {
                depth: depth as u64 + 1,
                start: self.end,
            };
            self.looks.insert(place, look(&name, node, greatest));
            let width = width(node, hits);
            if width > 0 {
                self.lines.push(format!("{} {width}", line_of(&names)));
                self.end += width;
            }
            pending.extend(children(tree, at, depth + 1));
        }
    }
}

/// The next nodes with their depth, the last one first.
fn children(tree: &DiffTree, at: usize, depth: usize) -> Vec<(usize, usize)> {
    let children = tree.nodes.get(at).map_or(&[][..], |node| &node.children);
    children.iter().rev().map(|&child| (child, depth)).collect()
}

/// The width of what ends in a frame: the mean of both shares.
fn width(node: &DiffNode, hits: Sides<u64>) -> u64 {
    let part = |own: u64, all: u64| own as f64 / all.max(1) as f64;
    let both = part(node.own.a, hits.a) + part(node.own.b, hits.b);
    (both / 2.0 * PARTS as f64).round() as u64
}

fn look(name: &str, node: &DiffNode, greatest: f64) -> FrameLook {
    let Sides { a, b } = node.shares.map(|share| 100.0 * share);
    let verdict = match node.verdict {
        ShareVerdict::Beyond => "beyond noise",
        ShareVerdict::Within => "within noise",
        ShareVerdict::Untested => "too few hits to be compared",
    };
    let fill = match node.verdict {
        ShareVerdict::Beyond => colour(node.change() / greatest),
        _ => GREY.to_owned(),
    };
    FrameLook {
        title: format!("{} (A {a:.2}%, B {b:.2}%: {verdict})", escape(name)),
        fill,
    }
}

/// Red from 0 to 1, blue from 0 to -1.
fn colour(change: f64) -> String {
    let other = (210.0 - 150.0 * change.abs().min(1.0)).round() as u8;
    match change > 0.0 {
        true => format!("rgb(255,{other},{other})"),
        false => format!("rgb({other},{other},255)"),
    }
}
