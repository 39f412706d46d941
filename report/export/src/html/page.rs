//! The page: its head, its sections in order, and the constants that browsers are told to trust.

use usdtrec_analysis::overview::Overview;
use usdtrec_view::columns::shortened;
use usdtrec_view::head;
use usdtrec_view::hints::HintWords;
use usdtrec_view::report::losses;
use usdtrec_view::report::spans::only_long;
use usdtrec_view::report::unusual::{self, UnusualClock};
use usdtrec_view::sentences::Sentences;
use usdtrec_view::trigger;

use crate::html::markup::Markup;
use crate::html::notes::put_notes;
use crate::html::{flame, spans, summary};

/// Looks, and what sorting, searching and pointing do.
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// What the page may load and run: the style and the script that it has, by their SHA-256, and nothing else.
const POLICY: &str = "default-src 'none'; \
    style-src 'sha256-3rMm/ChzQnVHskjhVEAD0De8zZCq6KlOW2jCtEbb2lo='; \
    script-src 'sha256-72ugihf9k7G469xwcJ0Ns348+xLJJYakabJoDvTJ+4Y='; \
    base-uri 'none'; form-action 'none'";

/// The name in the page's last line.
const PROGRAM: &str = "usdtrec";

/// The page. With `are_chosen`, its spans are those in detail, which the question names or bounds.
pub(crate) fn page(overview: &Overview, are_chosen: bool) -> Markup {
    let mut out = Markup::default();
    let facts = &overview.summary;
    put_start(&facts.origin.file, &mut out);
    put_header(overview, &mut out);
    let spans = spans::facts(overview, are_chosen);
    put_links(overview, !spans.is_empty(), &mut out);
    out.tag("<main>\n");
    if !spans.is_empty() {
        out.tag("<section id=\"spans\"><h2>Spans</h2>\n");
        let least = overview.spans.first().map_or(0, |found| found.report.min);
        put_notes("note", only_long(least), &mut out);
        spans::put_table(&spans, HintWords::default(), &mut out);
        out.tag("</section>\n");
    }
    out.tag("<section id=\"events\"><h2>Events</h2>\n");
    if !overview.is_filtered {
        let words = "these are all events: the filter is about spans";
        put_notes("note", [words.to_owned()], &mut out);
    }
    if facts.events == 0 {
        out.tag("<p>No events.</p>\n");
    }
    summary::put_probes(facts, &mut out);
    if let Some(rates) = &overview.rates {
        out.tag("<h3>Events over time</h3>\n");
        summary::put_rates(facts, rates, &mut out);
    }
    out.tag("</section>\n");
    let unusual = unusual::sentences(facts, UnusualClock::Trace);
    if !unusual.is_empty() {
        out.tag("<section id=\"unusual\"><h2>Unusual</h2>\n");
        put_notes("unusual", unusual, &mut out);
        out.tag("</section>\n");
    }
    spans::put_details(overview, &mut out);
    summary::put_numbers_over_time(overview, &mut out);
    summary::put_arguments(facts, &mut out);
    summary::put_processes(overview, &mut out);
    if !overview.stacks.is_empty() {
        out.tag("<section id=\"stacks\"><h2>Stacks</h2>\n");
        for stacks in &overview.stacks {
            flame::put(stacks, &mut out);
        }
        out.tag("</section>\n");
    }
    out.tag("</main>\n<footer><p>Made by ")
        .text(PROGRAM)
        .tag(" ")
        .text(env!("CARGO_PKG_VERSION"))
        .tag(". Times of day are in UTC; others are those of the trace's clock.</p></footer>\n<script>")
        .tag(SCRIPT)
        .tag("</script>\n</body>\n</html>\n");
    out
}

fn put_start(file: &str, out: &mut Markup) {
    out.tag("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\"");
    // Quotes are written as references, which browsers read as quotes.
    out.attribute("content", POLICY)
        .tag(">\n<meta name=\"referrer\" content=\"no-referrer\">\n")
        .tag("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n")
        .tag("<meta name=\"color-scheme\" content=\"light dark\">\n<title>")
        .text(&shortened(file, 200))
        .tag("</title>\n<style>")
        .tag(STYLE)
        .tag("</style>\n</head>\n<body>\n");
}

/// What was recorded where, and what is missing.
fn put_header(overview: &Overview, out: &mut Markup) {
    let facts = &overview.summary;
    let line = head::totals(
        facts.events,
        facts.duration(),
        facts.recorded.is_some(),
        &facts.losses.ledger,
    );
    out.tag("<header>\n<h1>")
        .text(&shortened(&facts.origin.file, 300))
        .tag("</h1>\n<p class=\"lead\">")
        .text(&line)
        .tag("</p>\n");
    let trigger = facts.origin.trigger.as_ref();
    let trigger = trigger.map(|trigger| format!("Trigger: {}", trigger::sentence(trigger)));
    put_notes("lead", trigger, out);
    put_notes("origin", head::lines(&facts.origin), out);
    let mut faults = losses::lines(facts);
    faults.extend(overview.notices.sentences(HintWords::default()));
    if !faults.is_empty() {
        out.tag("<div class=\"faults\" id=\"losses\"><h2>Losses and notices</h2>\n");
        put_notes("warn", faults, out);
        out.tag("</div>\n");
    }
    out.tag("</header>\n");
}

/// Links to the sections, and the field of the search, which is shown where scripts run.
fn put_links(overview: &Overview, has_spans: bool, out: &mut Markup) {
    out.tag("<nav><ul>\n");
    if has_spans {
        out.tag("<li><a href=\"#spans\">Spans</a></li>\n");
    }
    out.tag("<li><a href=\"#events\">Events</a></li>\n");
    if !overview.summary.unusual.is_empty() {
        out.tag("<li><a href=\"#unusual\">Unusual</a></li>\n");
    }
    for (at, detail) in spans::details(overview)
        .iter()
        .take(spans::MAX_DETAILS)
        .enumerate()
    {
        out.tag("<li><a")
            .attribute("href", &format!("#span-{}", at + 1))
            .tag("><code>")
            .text(&shortened(&detail.span.name, 60))
            .tag("</code></a></li>\n");
    }
    let probes = overview.summary.probes.iter();
    if probes.flat_map(|probe| &probe.arguments).next().is_some() && overview.summary.events > 0 {
        out.tag("<li><a href=\"#arguments\">Arguments</a></li>\n");
    }
    if overview.summary.busiest.all >= 2 {
        out.tag("<li><a href=\"#processes\">Processes</a></li>\n");
    }
    if !overview.stacks.is_empty() {
        out.tag("<li><a href=\"#stacks\">Stacks</a></li>\n");
    }
    out.tag("</ul>\n<div id=\"find\" role=\"search\" hidden><input type=\"search\" placeholder=\"Search\" aria-label=\"Search tables and stacks\" autocomplete=\"off\" spellcheck=\"false\"> <output></output></div>\n</nav>\n");
}
