//! What had a flight recorder write a file, as a sentence.

use std::time::Duration;

use usdtrec_analysis::origin::TriggerFacts;
use usdtrec_format::escape::escape;
use usdtrec_format::trace::{FiredTrigger, TriggerKind};
use usdtrec_format::{clock_seconds, counted};

/// What fired, where, and when: by the wall clock and by the trace's clock.
#[must_use]
pub fn sentence(trigger: &TriggerFacts) -> String {
    let fired = &trigger.fired;
    let date = trigger.wall_ns;
    let date = date.and_then(|wall| jiff::Timestamp::from_nanosecond(wall).ok());
    let date = date.map(|date| format!("{} UTC, ", date.strftime("%Y-%m-%d %H:%M:%S%.6f")));
    let more = further(fired);
    format!(
        "{} ({}{}){more}",
        cause(fired),
        date.unwrap_or_default(),
        clock_seconds(fired.time_ns)
    )
}

/// How many further triggers fired since the file before, after what fired; empty for none.
#[must_use]
pub fn further(fired: &FiredTrigger) -> String {
    match fired.more {
        0 => String::new(),
        more => format!(
            "; {} since the file before",
            counted(more, "further trigger")
        ),
    }
}

/// What fired, and where.
#[must_use]
pub fn cause(fired: &FiredTrigger) -> String {
    let what = match fired.kind {
        TriggerKind::Signal => "SIGUSR2".to_owned(),
        TriggerKind::Request if fired.pid == 0 => "dump".to_owned(),
        TriggerKind::Request => format!("dump (asked for by process {})", fired.pid),
        TriggerKind::Probe | TriggerKind::Span | TriggerKind::Other => {
            escape(&fired.condition).into_owned()
        }
    };
    format!("{what}{}{}", event(fired), thread(fired))
}

/// The event, or the span that it ended.
fn event(fired: &FiredTrigger) -> String {
    match fired.duration_ns {
        Some(duration) => {
            let duration = Duration::from_nanos(duration);
            format!(": {} took {duration:?}", escape(&fired.span))
        }
        None if fired.event.is_empty() => String::new(),
        None => format!(": {}", escape(&fired.event)),
    }
}

/// The thread that hit it, if it is known.
fn thread(fired: &FiredTrigger) -> String {
    match (fired.tid, fired.pid) {
        (0, _) => String::new(),
        (tid, pid) if tid == pid => format!(" in thread {tid}"),
        (tid, pid) => format!(" in thread {tid} of process {pid}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_say_what_fired_where_and_when() {
        let fired = FiredTrigger {
            kind: TriggerKind::Span,
            condition: "span:query > 100ms".to_owned(),
            time_ns: 15_581_656_104_999,
            event: "db:query__done".to_owned(),
            pid: 7,
            tid: 8,
            span: "db:query".to_owned(),
            duration_ns: Some(250_000_000),
            uid: None,
            more: 3,
        };
        let mut trigger = TriggerFacts {
            fired,
            wall_ns: Some(1_700_000_000_000_001_999),
        };
        assert_eq!(
            sentence(&trigger),
            "span:query > 100ms: db:query took 250ms in thread 8 of process 7 (2023-11-14 22:13:20.000001 UTC, 15581.656104); \
             3 further triggers since the file before"
        );
        trigger.fired = FiredTrigger {
            kind: TriggerKind::Request,
            pid: 7,
            time_ns: 1000,
            ..FiredTrigger::default()
        };
        trigger.wall_ns = None;
        assert_eq!(
            sentence(&trigger),
            "dump (asked for by process 7) (0.000001)"
        );
        // Of another pid namespace.
        trigger.fired.pid = 0;
        assert_eq!(sentence(&trigger), "dump (0.000001)");
    }
}
