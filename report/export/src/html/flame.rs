//! Stacks as a flame graph that needs no script to be read: the outermost functions on top.

use std::cmp::Reverse;

use usdtrec_analysis::question::CallOrder;
use usdtrec_analysis::stacks::path::Step;
use usdtrec_analysis::stacks::tree::CallTree;
use usdtrec_analysis::stacks::weighed::{WeighedStacks, WeightUnit};
use usdtrec_view::columns::shortened;
use usdtrec_view::folded::{root, step_text};
use usdtrec_view::numbers::percent;
use usdtrec_view::stack_remarks::{SPAN_TIME, stack_remarks};
use usdtrec_view::weights::{title_of_all, weight_text};

use crate::html::markup::{Markup, percent_length};
use crate::html::notes::put_notes;

/// Maximum size of the frames, bytes.
const MAX_BYTES: usize = 130 << 10;
/// Maximum depth of a frame.
const MAX_DEPTH: usize = 127;
/// Maximum length of a name, characters.
const MAX_NAME_CHARACTERS: usize = 160;
/// Height of a frame, pixels.
const HEIGHT: usize = 18;
/// Colours.
const COLOURS: u32 = 5;

/// A frame and its place.
#[derive(Debug)]
struct PlacedFrame<'s> {
    name: FlameName<'s>,
    depth: usize,
    /// Sum of the weights to the left of it.
    from: u64,
    weight: u64,
}

/// What a frame is called.
#[derive(Debug)]
enum FlameName<'s> {
    /// An event or a span, if there are several.
    Root(&'s str),
    Step(Option<&'s Step>),
}

/// Appends a flame graph.
pub(crate) fn put(stacks: &WeighedStacks, out: &mut Markup) {
    let weights = stacks.tables.iter().map(|table| table.weight);
    let all = weights.fold(0, u64::saturating_add);
    if all == 0 {
        return;
    }
    let title = title_of_all(&stacks.tables, &stacks.unit);
    out.tag("<h3>")
        .text(&shortened(&title, MAX_NAME_CHARACTERS))
        .tag("</h3>\n");
    let span_time = (stacks.unit == WeightUnit::SpanTime).then(|| SPAN_TIME.to_owned());
    put_notes(
        "note",
        span_time.into_iter().chain(stack_remarks(stacks)),
        out,
    );
    let frames = placed(stacks);
    let found = frames.len();
    // A caller weighs at least as much as what it calls, and was found before it: what is left out is at the ends.
    let mut order: Vec<usize> = (0..found).collect();
    order.sort_by_key(|&at| (Reverse(frames.get(at).map_or(0, |frame| frame.weight)), at));
    let mut drawn = Markup::default();
    let mut depth = 0;
    let mut shown = 0;
    for at in order {
        let Some(frame) = frames.get(at) else {
            continue;
        };
        let mut next = Markup::default();
        frame.put(stacks, all, &mut next);
        if drawn.len() + next.len() > MAX_BYTES {
            break;
        }
        depth = depth.max(frame.depth);
        shown += 1;
        drawn.append(&next);
    }
    out.tag("<svg class=\"flame\" width=\"100%\"")
        .attribute("height", &((depth + 1) * HEIGHT).to_string())
        .tag(">\n")
        .append(&drawn)
        .tag("</svg>\n<p class=\"read\" aria-live=\"polite\"></p>\n");
    if shown < found {
        let more = format!("{} frames of less weight left out here", found - shown);
        put_notes("note", [more], out);
    }
}

/// All frames, callers before what they call.
fn placed(stacks: &WeighedStacks) -> Vec<PlacedFrame<'_>> {
    let mut frames = Vec::new();
    let mut from: u64 = 0;
    for table in &stacks.tables {
        let tree = CallTree::new(table, CallOrder::Caller);
        let name = root(&stacks.tables, table);
        let depth = usize::from(name.is_some());
        frames.extend(name.map(|name| PlacedFrame {
            name: FlameName::Root(name),
            depth: 0,
            from,
            weight: table.weight,
        }));
        let mut pending = vec![(0, depth, from)];
        while let Some((at, depth, from)) = pending.pop() {
            let mut next = from;
            let children = tree.node(at).map_or(&[][..], |node| &node.children);
            for &child in children {
                let Some(node) = tree.node(child) else {
                    continue;
                };
                frames.push(PlacedFrame {
                    name: FlameName::Step(node.step),
                    depth,
                    from: next,
                    weight: node.weight,
                });
                if depth < MAX_DEPTH {
                    pending.push((child, depth + 1, next));
                }
                next = next.saturating_add(node.weight);
            }
        }
        from = from.saturating_add(table.weight);
    }
    frames
}

impl FlameName<'_> {
    fn text(&self) -> String {
        match self {
            Self::Root(name) => (*name).to_owned(),
            Self::Step(step) => step.map(step_text).unwrap_or_default(),
        }
    }
}

impl PlacedFrame<'_> {
    fn put(&self, stacks: &WeighedStacks, all: u64, out: &mut Markup) {
        let share = |part: u64| percent_length(100.0 * part as f64 / all as f64);
        let whole = self.name.text();
        let name = shortened(&whole, MAX_NAME_CHARACTERS);
        let weight = weight_text(self.weight, &stacks.unit);
        let unit = match stacks.unit {
            WeightUnit::Hits if self.weight == 1 => " hit",
            WeightUnit::Hits => " hits",
            WeightUnit::Sum(_) | WeightUnit::SpanTime => "",
        };
        let title = format!("{name}: {weight}{unit}, {}", percent(self.weight, all));
        out.tag("<svg")
            .attribute("class", &format!("f{}", colour(&whole)))
            .attribute("x", &share(self.from))
            .attribute("y", &(self.depth * HEIGHT).to_string())
            .attribute("width", &share(self.weight))
            .attribute("data-w", &self.weight.to_string())
            .tag(" height=\"17\"><title>")
            .text(&title)
            .tag("</title><rect width=\"100%\" height=\"100%\"/><text x=\"3\" y=\"13\">")
            .text(&name)
            .tag("</text></svg>\n");
    }
}

/// The colour of a name, which is the same in each run (FNV-1a).
fn colour(name: &str) -> u32 {
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    (hash >> 8) % COLOURS
}
