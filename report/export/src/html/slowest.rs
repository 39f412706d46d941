//! The slowest spans on a time line, with their arguments and stacks.

use usdtrec_analysis::span_report::facts::SlowFacts;
use usdtrec_analysis::spans::slowest::SlowBegin;
use usdtrec_analysis::stats::keys::stack::CallStack;
use usdtrec_analysis::stats::timeline::Timeline;
use usdtrec_format::counted;
use usdtrec_view::columns::shortened;
use usdtrec_view::frames::{cut_text, frame_text};
use usdtrec_view::report::shown_times::ShownTimes;
use usdtrec_view::report::spans::{slow_arguments, slow_cells};

use crate::html::markup::{Markup, percent_length};
use crate::html::table::HtmlTable;

/// Maximum size of the rows, bytes.
const MAX_BYTES: usize = 36 << 10;
/// Maximum length of an argument's value, and of the name of a frame, characters.
const MAX_CHARACTERS: usize = 200;
/// Arguments and frames that are shown.
const MAX_ARGUMENTS: usize = 12;
const MAX_FRAMES: usize = 40;
/// Least width of a bar, percent: what is there can be seen.
const MIN_BAR: f64 = 0.5;

/// Appends the table.
pub(crate) fn put(slowest: &[SlowFacts], timeline: Timeline, times: &ShownTimes, out: &mut Markup) {
    let names = ["Duration", "Begin", "Thread", "When and what"];
    let mut table = HtmlTable::new("slow", names, MAX_BYTES);
    for slow in slowest {
        let cells = slow_cells(slow, times);
        table.row(&cells, Some(&what(slow, timeline)));
    }
    if !table.is_empty() {
        table.put(out);
    }
}

/// When a span was, with the arguments of its begin, and its stack.
fn what(SlowFacts { slow, begin }: &SlowFacts, timeline: Timeline) -> Markup {
    let mut out = Markup::default();
    let all = timeline.interval as f64 * timeline.intervals as f64;
    let since = slow.time.0.saturating_sub(timeline.from) as f64;
    let width = (100.0 * slow.duration as f64 / all).clamp(MIN_BAR, 100.0);
    let from = (100.0 * since / all).clamp(0.0, 100.0 - width);
    out.tag("<svg class=\"when\" aria-hidden=\"true\"><rect height=\"100%\"")
        .attribute("x", &percent_length(from))
        .attribute("width", &percent_length(width))
        .tag("/></svg>");
    put_arguments(begin, &mut out);
    if let Some(stack) = &begin.stack {
        put_stack(stack, &mut out);
    }
    out
}

fn put_arguments(begin: &SlowBegin, out: &mut Markup) {
    let arguments = slow_arguments(begin);
    if arguments.is_empty() {
        return;
    }
    out.tag("<div class=\"args\">");
    for (name, value) in arguments.iter().take(MAX_ARGUMENTS) {
        out.tag("<span><b>")
            .text(&shortened(name, MAX_CHARACTERS))
            .tag("</b>=")
            .text(&shortened(value, MAX_CHARACTERS))
            .tag("</span> ");
    }
    put_more(arguments.len(), MAX_ARGUMENTS, "arguments", out);
    out.tag("</div>");
}

fn put_stack(stack: &CallStack, out: &mut Markup) {
    let frames = stack.frames.len();
    out.tag("<details><summary>")
        .text(&format!("stack, {}", counted(frames, "frame")))
        .tag("</summary><ol>");
    for frame in stack.frames.iter().take(MAX_FRAMES) {
        out.tag("<li>")
            .text(&shortened(&frame_text(frame), MAX_CHARACTERS))
            .tag("</li>");
    }
    out.tag("</ol>");
    put_more(frames, MAX_FRAMES, "frames", out);
    if let Some(cut) = &stack.cut {
        out.tag("<p class=\"note\">")
            .text(&cut_text(cut))
            .tag("</p>");
    }
    out.tag("</details>");
}

/// Says how many of something are left out.
fn put_more(all: usize, most: usize, what: &str, out: &mut Markup) {
    if let Some(more @ 1..) = all.checked_sub(most) {
        let more = format!("{more} more {what} left out here");
        out.tag("<p class=\"note\">").text(&more).tag("</p>");
    }
}
