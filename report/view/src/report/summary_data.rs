//! The summary of a trace as JSON and CSV; `report/FIELDS.md` describes members and columns.

use serde_json::{Value as Json, json};
use usdtrec_analysis::stats::bursts::Episode;
use usdtrec_analysis::stats::frequency::{Frequency, total};
use usdtrec_analysis::stats::number::Scalar;
use usdtrec_analysis::stats::ratio::{per_second, share};
use usdtrec_analysis::summary::facts::SummaryFacts;
use usdtrec_analysis::summary::probe::{ArgumentFacts, ProbeFacts, Spread, StringFacts};
use usdtrec_analysis::summary::unusual::{Unusual, UnusualKind};
use usdtrec_format::escape::shown as shown_path;
use usdtrec_format::trace::Shortfall;
use usdtrec_trace::events::no_events::NoEventsReason;
use usdtrec_trace::form::Form;
use usdtrec_trace::session::joined_files::PlacedDamage;

use crate::head;
use crate::hints::HintWords;
use crate::report::losses::json_recorded;
use crate::report::spans_data::json_span;
use crate::sentences::Sentences as _;
use crate::text::quoted::Csv;
use crate::text::scalar;

/// The summary as JSON.
pub(crate) fn json(facts: &SummaryFacts) -> Json {
    let probes = facts.probes.iter().map(|probe| json_probe(probe, facts));
    let processes = facts.busiest.first.iter().map(|process| {
        json!({
            "comm": process.comm,
            "pid": process.pid,
            "count": process.count,
            "probes": process.probes,
        })
    });
    let unusual = facts.unusual.iter();
    let unusual = unusual.map(|unusual| json_unusual(unusual, facts.start));
    let mut summary = json!({
        "events": facts.events,
        "begin_ns": facts.recorded.map(|time| time.first),
        "end_ns": facts.recorded.map(|time| time.last),
        "first_ns": facts.time.map(|time| time.first),
        "last_ns": facts.time.map(|time| time.last),
        "lost": facts.losses.ledger.known_total(),
        "lost_exact": facts.losses.ledger.is_exact(),
        "processes": processes.collect::<Json>(),
        "unusual": unusual.collect::<Json>(),
        "reasons": facts.reasons.sentences(HintWords::default()),
        "no_events": facts.reasons.iter().map(json_reason).collect::<Json>(),
        "shortfalls": facts.shortfalls.iter().map(json_shortfall).collect::<Json>(),
        "damage": facts.damage.iter().map(json_damage).collect::<Json>(),
    });
    summary["probes"] = probes.collect();
    summary["spans"] = facts.spans.iter().map(json_span).collect();
    head::add_json(&facts.origin, &mut summary);
    summary
}

fn json_probe(probe: &ProbeFacts, facts: &SummaryFacts) -> Json {
    let processes = probe.processes.iter().map(
        |named| json!({"comm": named.name, "processes": named.processes, "count": named.count}),
    );
    let mut row = json!({
        "event": probe.event,
        "count": probe.count,
        "per_second": per_second(probe.count, facts.duration_of(probe)),
        "share": share(probe.count, facts.events),
        "lost": facts.losses.ledger.known(probe.lost),
        "processes": processes.collect::<Json>(),
        "processes_exact": probe.other_processes == 0,
    });
    row["arguments"] = probe.arguments.iter().map(json_argument).collect();
    if let Some(part) = &probe.part {
        row["paused"] = json_recorded(part);
        row["paused"]["estimated_hits"] = probe.estimated_hits().into();
    }
    row
}

/// An argument. Percentiles are of its numbers, and `null` without numbers.
fn json_argument(argument: &ArgumentFacts) -> Json {
    let spread = argument.spread();
    let number = |of: fn(&Spread) -> Scalar| spread.map(|spread| scalar::json(of(spread)));
    let missing = argument.missing.iter();
    let missing = missing.map(|reason| json!({"reason": reason.value, "count": reason.count}));
    let form = argument.form.clone().plain();
    let values = spread.and_then(|spread| spread.values.as_ref());
    let values = values.map(|all| {
        all.iter()
            .map(|one| json_number(*one, &form))
            .collect::<Json>()
    });
    let strings = argument.strings.as_ref();
    json!({
        "name": argument.name,
        "type": argument.kind,
        "unit": argument.unit,
        "count": spread.map_or(0, |spread| spread.count),
        "min": number(|spread| spread.min),
        "p50": number(|spread| spread.median),
        "p90": number(|spread| spread.p90),
        "p99": number(|spread| spread.p99),
        "max": number(|spread| spread.max),
        "exact": spread.is_none_or(|spread| spread.exact),
        "values": values,
        "texts": strings.map(|strings| json_strings(strings, &argument.form)),
        "nan": argument.nan,
        "nulls": argument.nulls,
        "missing": missing.collect::<Json>(),
    })
}

/// A number, and the word or other form that the schema has for it.
fn json_number(Frequency { value, count }: Frequency<Scalar>, form: &Form) -> Json {
    let mut row = json!({"value": scalar::json(value), "count": count});
    let shown = scalar::shown(value, form);
    if shown != scalar::decimal(value) {
        row["shown"] = shown.into();
    }
    row
}

fn json_strings(strings: &StringFacts, form: &Form) -> Json {
    let values = strings.values.iter().map(|Frequency { value, count }| {
        let mut row = json!({"value": String::from_utf8_lossy(value), "count": count});
        if let Some(name) = form.readable_string(value) {
            row["demangled"] = name.into();
        }
        row
    });
    json!({
        "count": strings.count,
        "different": strings.different,
        "exact": strings.exact,
        "cut": strings.cut,
        "values": values.collect::<Json>(),
    })
}

/// Something that stands out; `start` is the time of the trace's first event, ns.
fn json_unusual(unusual: &Unusual, start: u64) -> Json {
    let times = |kind: &str, episodes: &[Episode]| {
        let times = episodes.iter().map(|episode| {
            let [from, to] = [episode.from, episode.to].map(|time| start.saturating_add(time));
            let mut time = json!({"from_ns": from, "to_ns": to});
            if episode.times > 0.0 {
                time["times_median"] = episode.times.into();
            }
            time
        });
        json!({"kind": kind, "times": times.collect::<Json>()})
    };
    let mut row = match &unusual.what {
        UnusualKind::Missing {
            argument,
            reason,
            count,
            of,
        } => {
            json!({"kind": "missing", "argument": argument, "reason": reason, "count": count, "of": of})
        }
        UnusualKind::Cut {
            argument,
            count,
            of,
        } => json!({"kind": "cut", "argument": argument, "count": count, "of": of}),
        UnusualKind::OneInstruction { with } => json!({"kind": "one_instruction", "with": with}),
        UnusualKind::Bursts(bursts) => times("burst", bursts),
        UnusualKind::Pauses(pauses) => times("pause", pauses),
    };
    row["event"] = json!(unusual.event);
    row
}

/// Why probes have no events. Paths are escaped.
fn json_reason(reason: &NoEventsReason) -> Json {
    match reason {
        NoEventsReason::Unmapped(file) => {
            json!({"kind": "unmapped", "file": shown_path(file).to_string()})
        }
        NoEventsReason::OtherVersion { file, pids } => {
            json!({"kind": "other_version", "file": shown_path(file).to_string(), "pids": pids})
        }
        NoEventsReason::Needs {
            events,
            needs,
            filter,
        } => json!({"kind": "unmet", "events": events, "needs": needs, "filter": filter}),
    }
}

/// What the recorder found not to work.
fn json_shortfall(shortfall: &Shortfall) -> Json {
    let file = shown_path(&shortfall.path).to_string();
    json!({
        "kind": shortfall.kind,
        "file": Some(file).filter(|file| !file.is_empty()),
        "events": shortfall.events,
        "sites": shortfall.sites,
        "pids": shortfall.pids,
        "processes": shortfall.processes,
        "build_id": shortfall.build_id.map(|build_id| build_id.to_string()),
        "gap_ns": shortfall.gap_ns,
        "found": shortfall.found,
        "effect": shortfall.effect,
        "remedy": Some(&shortfall.remedy).filter(|remedy| !remedy.is_empty()),
    })
}

/// A damaged part of the trace: what is damaged, and what is lost.
fn json_damage(PlacedDamage { file, damage }: &PlacedDamage) -> Json {
    let mut row = json!({"offset": damage.offset, "message": damage.kind.to_string()});
    if let Some(file) = file {
        row["file"] = shown_path(file).to_string().into();
    }
    row
}

/// A header line, and a line for each argument, or for each probe without arguments.
pub(crate) fn csv(csv: Csv, facts: &SummaryFacts) -> String {
    let mut lines = vec![
        "event,count,per_second,share,lost,argument,type,numbers,min,p50,p90,p99,max,exact,nan,missing,nulls,estimated_hits"
            .to_owned(),
    ];
    for probe in &facts.probes {
        let rate = per_second(probe.count, facts.duration_of(probe));
        let start = format!(
            "{},{},{},{},{}",
            csv.field(&probe.event),
            probe.count,
            rate.map_or_else(String::new, |rate| rate.to_string()),
            share(probe.count, facts.events),
            facts
                .losses
                .ledger
                .known(probe.lost)
                .map_or_else(String::new, |lost| lost.to_string())
        );
        let hits = probe.estimated_hits();
        let hits = hits.map_or_else(String::new, |hits| hits.to_string());
        if probe.arguments.is_empty() {
            lines.push(format!("{start},,,,,,,,,,,,,{hits}"));
        }
        for argument in &probe.arguments {
            lines.push(format!("{start},{},{hits}", csv_argument(csv, argument)));
        }
    }
    lines.join("\n") + "\n"
}

fn csv_argument(csv: Csv, argument: &ArgumentFacts) -> String {
    let spread = argument.spread();
    let missing = total(&argument.missing);
    let text = |of: fn(&Spread) -> Scalar| {
        spread.map_or_else(String::new, |spread| scalar::decimal(of(spread)))
    };
    format!(
        "{},{},{},{},{},{},{},{},{},{},{missing},{}",
        csv.field(&argument.name),
        csv.field(&argument.kind),
        spread.map_or(0, |spread| spread.count),
        text(|spread| spread.min),
        text(|spread| spread.median),
        text(|spread| spread.p90),
        text(|spread| spread.p99),
        text(|spread| spread.max),
        spread.is_none_or(|spread| spread.exact),
        argument.nan,
        argument.nulls,
    )
}
