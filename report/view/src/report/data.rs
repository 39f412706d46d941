//! The summary of a trace as JSON and CSV; `report/FIELDS.md` describes members and columns.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde_json::{Value, json};
use usdtrec_analysis::clock_facts::ClockFacts;
use usdtrec_analysis::stats::bursts::Episode;
use usdtrec_analysis::stats::frequency::{Frequency, total};
use usdtrec_analysis::stats::number::Scalar;
use usdtrec_analysis::stats::ratio::{per_second, share};
use usdtrec_analysis::summary::busiest::BusyProcess;
use usdtrec_analysis::summary::facts::SummaryFacts;
use usdtrec_analysis::summary::probe::{ArgumentFacts, ProbeFacts, Spread, TextFacts};
use usdtrec_analysis::summary::unusual::{Unusual, UnusualKind};
use usdtrec_format::escape::{escape_bytes, escape_json};
use usdtrec_format::trace::Shortfall;
use usdtrec_trace::events::no_events::NoEventsReason;
use usdtrec_trace::form::Form;

use crate::head::date_for_machines;
use crate::hints::HintWords;
use crate::report::spans_data::json_span;
use crate::sentences::Sentences;
use crate::text::quoted::Csv;
use crate::text::scalar;

/// The summary as one JSON object.
pub(crate) fn json(facts: &SummaryFacts) -> String {
    let probes: Vec<Value> = facts
        .probes
        .iter()
        .map(|probe| json_probe(probe, facts))
        .collect();
    let damage: Vec<Value> = facts
        .damage
        .iter()
        .map(|damage| json!({"offset": damage.offset, "message": damage.kind.to_string()}))
        .collect();
    let unusual = facts.unusual.iter();
    let unusual: Vec<Value> = unusual
        .map(|unusual| json_unusual(unusual, facts.start))
        .collect();
    let report = json!({
        "file": facts.origin.file,
        "host": facts.origin.host,
        "machine": facts.origin.machine,
        "kernel": facts.origin.kernel,
        "engine": facts.origin.engine,
        "producer": facts.origin.producer,
        "command": facts.origin.command,
        "start": date_for_machines(&facts.origin),
        "clock": facts.origin.clock.as_ref().map(json_clock),
        "events": facts.events,
        "begin_ns": facts.recorded.map(|time| time.first),
        "end_ns": facts.recorded.map(|time| time.last),
        "first_ns": facts.time.map(|time| time.first),
        "last_ns": facts.time.map(|time| time.last),
        "lost": facts.losses.known(facts.losses.total()),
        "lost_exact": facts.losses.exact,
        "probes": probes,
        "spans": facts.spans.iter().map(json_span).collect::<Vec<_>>(),
        "processes": facts.busiest.first.iter().map(json_process).collect::<Vec<_>>(),
        "unusual": unusual,
        "reasons": facts.reasons.sentences(HintWords::default()),
        "no_events": facts.reasons.iter().map(json_no_events).collect::<Vec<_>>(),
        "shortfalls": facts.shortfalls.iter().map(json_shortfall).collect::<Vec<_>>(),
        "damage": damage,
    });
    escape_json(&report.to_string()).into_owned() + "\n"
}

fn json_clock(clock: &ClockFacts) -> Value {
    let steps = clock.steps.iter().map(|step| {
        json!({
            "from_ns": step.before.clock_ns,
            "to_ns": step.after.clock_ns,
            "by_ns": i64::try_from(step.by_ns()).ok(),
        })
    });
    let known = clock.quality;
    let synchronized = known.filter(|quality| quality.is_synchronized);
    let nanoseconds = |microseconds: u32| u64::from(microseconds) * 1000;
    json!({
        "readings": clock.readings,
        "error_ns": clock.error_ns,
        "steps": steps.collect::<Vec<_>>(),
        "synchronized": known.map(|quality| quality.is_synchronized),
        "utc_error_ns": synchronized.map(|quality| nanoseconds(quality.estimated_us)),
        "utc_max_error_ns": synchronized.map(|quality| nanoseconds(quality.maximum_us)),
    })
}

fn json_shortfall(shortfall: &Shortfall) -> Value {
    let path = shortfall.path.as_os_str().as_bytes();
    json!({
        "kind": shortfall.kind.word(),
        "file": (!path.is_empty()).then(|| escape_bytes(path)),
        "events": shortfall.events,
        "sites": shortfall.sites,
        "pids": shortfall.pids,
        "processes": shortfall.processes,
        "found": shortfall.found,
        "effect": shortfall.effect,
        "remedy": (!shortfall.remedy.is_empty()).then_some(&shortfall.remedy),
    })
}

fn json_process(process: &BusyProcess) -> Value {
    json!({
        "comm": process.comm,
        "pid": process.pid,
        "count": process.count,
        "probes": process.probes,
    })
}

fn json_no_events(reason: &NoEventsReason) -> Value {
    let path = |path: &Path| escape_bytes(path.as_os_str().as_bytes()).into_owned();
    match reason {
        NoEventsReason::Unmapped(file) => json!({"kind": "unmapped", "file": path(file)}),
        NoEventsReason::OtherVersion { file, pids } => {
            json!({"kind": "other_version", "file": path(file), "pids": pids})
        }
        NoEventsReason::Needs {
            events,
            needs,
            filter,
        } => json!({"kind": "unmet", "events": events, "needs": needs, "filter": filter}),
    }
}

fn json_unusual(unusual: &Unusual, start: u64) -> Value {
    let event = &unusual.event;
    let times = |episodes: &[Episode]| -> Vec<Value> {
        let one = |episode: &Episode| {
            let [from, to] = [episode.from, episode.to].map(|time| start.saturating_add(time));
            let mut time = json!({"from_ns": from, "to_ns": to});
            if episode.times > 0.0 {
                time["times_median"] = json!(episode.times);
            }
            time
        };
        episodes.iter().map(one).collect()
    };
    match &unusual.what {
        UnusualKind::Missing {
            argument,
            reason,
            count,
            of,
        } => {
            json!({"event": event, "kind": "missing", "argument": argument, "reason": reason, "count": count, "of": of})
        }
        UnusualKind::Cut {
            argument,
            count,
            of,
        } => {
            json!({"event": event, "kind": "cut", "argument": argument, "count": count, "of": of})
        }
        UnusualKind::Bursts(bursts) => {
            json!({"event": event, "kind": "burst", "times": times(bursts)})
        }
        UnusualKind::Pauses(pauses) => {
            json!({"event": event, "kind": "pause", "times": times(pauses)})
        }
    }
}

fn json_probe(probe: &ProbeFacts, facts: &SummaryFacts) -> Value {
    let processes: Vec<Value> = probe
        .processes
        .iter()
        .map(
            |named| json!({"comm": named.name, "processes": named.processes, "count": named.count}),
        )
        .collect();
    let arguments: Vec<Value> = probe.arguments.iter().map(json_argument).collect();
    json!({
        "event": probe.event,
        "count": probe.count,
        "per_second": per_second(probe.count, facts.duration_for(probe.count)),
        "share": share(probe.count, facts.events),
        "lost": facts.losses.known(probe.lost),
        "processes": processes,
        "processes_exact": probe.other_processes == 0,
        "arguments": arguments,
    })
}

fn json_argument(argument: &ArgumentFacts) -> Value {
    let spread = spread(argument);
    let number = |of: fn(&Spread) -> Scalar| spread.map(|spread| scalar::json(of(spread)));
    let values = spread.and_then(|spread| spread.values.as_ref());
    let values: Option<Vec<Value>> = values.map(|values| {
        let form = argument.form.clone().human(false);
        let one = |&Frequency { value, count }: &Frequency<Scalar>| {
            let shown = scalar::shown(value, &form);
            let shown = (shown != scalar::decimal(value)).then_some(shown);
            let value = scalar::json(value);
            match shown {
                Some(shown) => json!({"value": value, "shown": shown, "count": count}),
                None => json!({"value": value, "count": count}),
            }
        };
        values.iter().map(one).collect()
    });
    let missing: Vec<Value> = argument
        .missing
        .iter()
        .map(|reason| json!({"reason": reason.value, "count": reason.count}))
        .collect();
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
        "texts": argument.texts.as_ref().map(|texts| json_texts(texts, &argument.form)),
        "nan": argument.nan,
        "nulls": argument.nulls,
        "missing": missing,
    })
}

fn json_texts(texts: &TextFacts, form: &Form) -> Value {
    let one = |text: &Frequency<Vec<u8>>| {
        let mut object =
            json!({"value": String::from_utf8_lossy(&text.value), "count": text.count});
        if let Some(name) = form.readable_text(&text.value) {
            object["demangled"] = json!(name);
        }
        object
    };
    let values: Vec<Value> = texts.values.iter().map(one).collect();
    json!({
        "count": texts.count,
        "different": texts.different,
        "exact": texts.exact,
        "cut": texts.cut,
        "values": values,
    })
}

/// The numbers of an argument: those of the kind that it has more of.
fn spread(argument: &ArgumentFacts) -> Option<&Spread> {
    let spreads = [&argument.integers, &argument.floats];
    spreads
        .into_iter()
        .flatten()
        .max_by_key(|spread| spread.count)
}

/// A header line, and a line for each argument, or for each probe without arguments.
pub(crate) fn csv(csv: Csv, facts: &SummaryFacts) -> String {
    let mut lines = vec![
        "event,count,per_second,share,lost,argument,type,numbers,min,p50,p90,p99,max,exact,nan,missing,nulls"
            .to_owned(),
    ];
    for probe in &facts.probes {
        let rate = per_second(probe.count, facts.duration_for(probe.count));
        let start = format!(
            "{},{},{},{},{}",
            csv.field(&probe.event),
            probe.count,
            rate.map_or_else(String::new, |rate| rate.to_string()),
            share(probe.count, facts.events),
            facts
                .losses
                .known(probe.lost)
                .map_or_else(String::new, |lost| lost.to_string())
        );
        if probe.arguments.is_empty() {
            lines.push(format!("{start},,,,,,,,,,,,"));
        }
        for argument in &probe.arguments {
            lines.push(format!("{start},{}", csv_argument(csv, argument)));
        }
    }
    lines.join("\n") + "\n"
}

fn csv_argument(csv: Csv, argument: &ArgumentFacts) -> String {
    let spread = spread(argument);
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
