//! The judgement on decoded arguments: every one is what the program passed, or missing for a reason that its operand allows.

use super::sites::{Site, site_of};
use super::{Build, Engine, Event, Expected, Hit, Number};

/// What an operand allows.
#[derive(Clone, Debug, PartialEq)]
enum Verdict {
    /// The value must be there.
    There,
    /// The value must be missing, with a reason that contains this.
    Missing(&'static str),
    /// The value may be missing.
    Either,
    /// The value may be missing only because it is below the stack pointer.
    ThereOrRedZone,
}

/// Compares the events of a single-threaded target, recorded without strings, with what it printed: the same hits in the
/// same order, every argument right.
#[track_caller]
pub(crate) fn judge(
    hits: &[Hit],
    events: &[Event],
    sites: &[Site],
    (build, engine): (Build, Engine),
) {
    let printed: Vec<&str> = hits.iter().map(|hit| hit.name.as_str()).collect();
    let recorded: Vec<&str> = events.iter().map(Event::name).collect();
    assert_eq!(printed, recorded, "hits printed, hits recorded");
    let complaints: Vec<String> = hits
        .iter()
        .zip(events)
        .flat_map(|(hit, event)| judge_hit(hit, event, site_of(event, sites), (build, engine)))
        .collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// What is wrong with one event, if anything.
fn judge_hit(hit: &Hit, event: &Event, site: &Site, how: (Build, Engine)) -> Vec<String> {
    let name = &hit.name;
    let counts = [
        hit.arguments.len(),
        site.operands.len(),
        event.argument_count(),
    ];
    if counts != [counts[0]; 3] {
        return vec![format!(
            "{name}: arguments printed, in the note, decoded: {counts:?}"
        )];
    }
    let numbered = hit.arguments.iter().zip(&site.operands).enumerate();
    numbered
        .filter_map(|(index, (expected, operand))| {
            let decoded = event.argument(index + 1);
            let complaint = judge_argument(expected, operand, name, how, &decoded)?;
            Some(format!(
                "{name} arg{} {operand}: {complaint}; decoded {decoded:?}",
                index + 1
            ))
        })
        .collect()
}

/// What is wrong with one argument, if anything.
fn judge_argument(
    expected: &Expected,
    operand: &str,
    probe: &str,
    (build, engine): (Build, Engine),
    decoded: &Result<Number, String>,
) -> Option<String> {
    let (value, verdict) = match expected {
        Expected::Missing(_, Some(value)) if engine.reads_memory() => (value, Verdict::There),
        Expected::Missing(reason, _) => {
            let right = matches!(decoded, Err(given) if given.contains(reason.as_str()));
            return (!right).then(|| format!("expected to be missing ({reason})"));
        }
        Expected::Must(value) => (value, Verdict::There),
        Expected::May(value) | Expected::Value(value) if engine.reads_memory() => {
            (value, verdict_where_memory_is_read(operand, build))
        }
        Expected::May(value) => (value, Verdict::Either),
        Expected::Value(value) => (value, verdict_on(operand, probe, build)),
    };
    let single = operand.contains("4f@");
    let allowed = match decoded {
        Ok(decoded) => value.is(*decoded, single) && !matches!(verdict, Verdict::Missing(_)),
        Err(reason) => match verdict {
            Verdict::There => false,
            Verdict::Either => true,
            Verdict::Missing(part) => reason.contains(part),
            Verdict::ThereOrRedZone => reason.contains("red zone"),
        },
    };
    (!allowed).then(|| format!("expected {value:?}, {verdict:?}"))
}

/// What an x86 operand allows where programs read memory: everything but vector registers, halves of pairs, symbols that
/// are in no symbol table, and the thread's storage of a 32-bit program.
fn verdict_where_memory_is_read(operand: &str, build: Build) -> Verdict {
    let (size, place) = operand.split_once('@').unwrap_or(("", operand));
    if place.starts_with("%gs:") || place.contains(".L") {
        return Verdict::Either;
    }
    if place.starts_with('%') && !place.contains(['(', ':']) {
        return verdict_on_register(size, place, build);
    }
    Verdict::There
}

/// What an x86 operand allows where registers and stack are captured. Written without the product's parser, on purpose.
fn verdict_on(operand: &str, probe: &str, build: Build) -> Verdict {
    let (size, place) = operand.split_once('@').unwrap_or(("", operand));
    if place.starts_with('$') {
        return Verdict::There;
    }
    if place.starts_with("%fs:") || place.starts_with("%gs:") {
        return Verdict::Either;
    }
    let Some((offset, base)) = place.split_once('(') else {
        return verdict_on_register(size, place, build);
    };
    let plain = !base.contains(',');
    match base.trim_end_matches(')').split(',').next() {
        Some("%rsp" | "%esp") if plain && offset.starts_with('-') => Verdict::Missing("red zone"),
        Some("%rsp" | "%esp") => Verdict::There,
        Some("%rbp" | "%ebp") if build.keeps_frame_pointer() && probe.starts_with("leaf") => {
            Verdict::ThereOrRedZone
        }
        Some("%rbp" | "%ebp") if build.keeps_frame_pointer() => Verdict::There,
        _ => Verdict::Either,
    }
}

/// A register, or the bare symbol of a 32-bit program.
fn verdict_on_register(size: &str, place: &str, build: Build) -> Verdict {
    if !place.starts_with('%') {
        return Verdict::Either;
    }
    if place.starts_with("%xmm") {
        return Verdict::Missing("xmm");
    }
    let wide = size.trim_matches(['-', 'f']) == "8";
    if wide && build.is_32_bit() {
        return Verdict::Missing("upper half");
    }
    Verdict::There
}
