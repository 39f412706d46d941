//! The head of a comparison: both recordings, and their losses.

use usdtrec_analysis::diff::comparison::Comparison;
use usdtrec_analysis::diff::recording::ComparedRecording;
use usdtrec_analysis::diff::slices::total;
use usdtrec_format::escape::escape;
use usdtrec_trace::session::event_name::short_name as short;

use crate::columns::folded;
use crate::head;
use crate::losses::doubt;
use crate::report::spans::{NamedRule, matched_by, rule};
use crate::theme::Theme;

/// Appends the lines about a recording.
pub(crate) fn put_head(name: &str, side: &ComparedRecording, theme: Theme, out: &mut String) {
    let totals = head::totals(side.events(), side.duration(), true, &side.losses.ledger);
    let line = format!("# {name} {}: {totals}", escape(&side.origin.file));
    theme.put_totals(&line, side.losses.ledger.total(), out);
    for line in head::lines(&side.origin) {
        let mut lines = String::new();
        folded(&line, "#   ", theme, &mut lines);
        theme.put_remark(lines.trim_end(), out);
    }
    if let Some(reason) = &side.lacking {
        theme.put_alarm(
            &format!("#   nothing compared: {}", escape(&reason.to_string())),
            out,
        );
    }
}

/// Appends by what spans are matched: of both recordings, if that differs.
pub(crate) fn rules(comparison: &Comparison, theme: Theme, out: &mut String) {
    let of_side = |side: &ComparedRecording| {
        let rules = side.rules.iter().map(|span| NamedRule {
            name: escape(&span.name).into_owned(),
            rule: rule(&span.key, &span.agreed),
        });
        matched_by(rules)
    };
    let (a, b) = (of_side(&comparison.a), of_side(&comparison.b));
    let is_same = a == b;
    let b = b.into_iter().filter(|_| !is_same);
    let of_a = a.into_iter().map(|line| ("A: ", line));
    for (side, line) in of_a.chain(b.map(|line| ("B: ", line))) {
        let side = if is_same { "" } else { side };
        folded(&format!("{side}spans {line}"), "# ", theme, out);
    }
}

/// Appends the losses of both recordings, which make figures uncertain.
pub(crate) fn losses(comparison: &Comparison, theme: Theme, out: &mut String) {
    let mut any = false;
    for (name, side) in [("A", &comparison.a), ("B", &comparison.b)] {
        let of_probes = side.probes.iter().filter(|(_, probe)| probe.lost > 0);
        let mut parts: Vec<String> = of_probes
            .map(|(event, probe)| {
                let all = probe.lost.saturating_add(total(&probe.counts));
                format!("{} of {all} {}", probe.lost, escape(short(event)))
            })
            .collect();
        if side.losses.others > 0 {
            parts.push(format!("{} of events not compared", side.losses.others));
        }
        if let Some(why) = doubt(&side.losses.ledger) {
            parts.push(format!("not exact, as {}", escape(why)));
        }
        if !parts.is_empty() {
            any = true;
            folded(
                &format!("{name} lost {}", parts.join(", ")),
                "# ",
                theme,
                out,
            );
        }
    }
    if any {
        let line = "rates differ only if what was lost cannot explain it; shares, percentiles and spans are of what was kept";
        folded(line, "# ", theme, out);
    }
}
