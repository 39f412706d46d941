//! `diff` of recordings made by hand: no difference is reported between like recordings, and of changed ones exactly the change.

use std::path::Path;

use crate::support::{DONE, HIT, Hit, REQUEST, Recorded, Recording, with_inner};
use serde_json::Value;
use usdtrec_report::Format;
use usdtrec_report::diff::{self, DiffOptions};
use usdtrec_report::{EventSelection, ReportError};
use usdtrec_testing::{is_deep, test};

/// What happens in a recording: `app:request` at random times, each followed by `app:done` after its latency.
#[derive(Clone, Copy, Debug)]
struct Work {
    seed: u64,
    /// Of the whole recording.
    requests: u64,
    seconds: u64,
    /// Latencies, of which one in fifty is ten times as long, ns.
    latency: u64,
    /// Of one in fifty.
    slow: u64,
    /// How many requests come together, at most, and by how much latencies of them are alike.
    burst: u64,
    /// Of how many requests one is done.
    done: u64,
    /// Phases of work and of rest, at random, are so long, ns; 0 for none.
    phase: u64,
    /// By how much requests of which the third argument is 4 are slower.
    fourth: u64,
}

const WORK: Work = Work {
    seed: 0,
    requests: 2000,
    seconds: 10,
    latency: 1_000_000,
    slow: 10_000_000,
    burst: 1,
    done: 1,
    phase: 0,
    fourth: 1,
};

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for _ in 0..8 {
            random.next();
        }
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// Exponential, of this mean.
    fn time(&mut self, mean: u64) -> u64 {
        let uniform = (self.below(1 << 53) + 1) as f64 / (1_u64 << 53) as f64;
        (-uniform.ln() * mean as f64) as u64
    }
}

impl Work {
    fn record(self) -> Recorded {
        self.record_into(Recording::usual()).finish()
    }

    fn rests(self, time: u64) -> bool {
        let phase = time.checked_div(self.phase);
        phase.is_some_and(|phase| Random::new(self.seed ^ phase << 32).below(2) == 0)
    }

    fn record_into(self, mut recording: Recording) -> Recording {
        let mut random = Random::new(self.seed);
        let length = self.seconds * 1_000_000_000;
        let mut hits = Vec::new();
        let mut left = self.requests;
        while left > 0 {
            let together = (1 + random.below(self.burst)).min(left);
            left -= together;
            let mut begin = random.below(length);
            while self.rests(begin) {
                begin = random.below(length);
            }
            // All of a burst are as slow as its first.
            let is_slow = random.below(50) == 0;
            for at in 0..together {
                let mean = if is_slow { self.slow } else { self.latency };
                // Threads that no other request has, so that spans do not nest.
                let tid = 1000 + hits.len() as i32;
                let hit = Hit {
                    tid,
                    time: HIT.time + begin + at * 1000,
                    si: random.time(4096),
                    stack: [0, random.below(5), 0, 0],
                    ..HIT
                };
                hits.push(hit);
                if random.below(self.done) == 0 {
                    let factor = if hit.stack[1] == 4 { self.fourth } else { 1 };
                    let time = hit.time + random.time(mean * factor);
                    hits.push(Hit {
                        id: DONE,
                        ax: if random.below(10) == 0 { 500 } else { 200 },
                        time,
                        ..hit
                    });
                }
            }
        }
        hits.sort_by_key(|hit| hit.time);
        // Identifiers that count up.
        let requests = hits.iter_mut().filter(|hit| hit.id == REQUEST);
        (1..).zip(requests).for_each(|(id, hit)| hit.ax = id);
        for part in hits.chunks(1000) {
            part.iter().for_each(|hit| recording.hit(*hit));
            recording.flush();
        }
        recording
    }
}

fn compared(
    a: &Recorded,
    b: &Recorded,
    selection: &EventSelection,
    options: &DiffOptions,
) -> Result<String, ReportError> {
    let mut out = Vec::new();
    diff::print(&a.session(), &b.session(), selection, options, &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

/// The names of the spans that only one of both has, so that nothing says whether they differ.
fn spans_of_one(a: &Recorded, b: &Recorded, options: &DiffOptions) -> Vec<String> {
    let (a, b) = (a.session(), b.session());
    let all = EventSelection::default();
    let compared = diff::print(&a, &b, &all, options, &mut Vec::new()).unwrap();
    assert_eq!(compared.beyond(1000.0), Some(0));
    let names = compared.spans_of_one().into_iter();
    names.map(str::to_owned).collect()
}

fn json(a: &Recorded, b: &Recorded) -> Value {
    let options = DiffOptions {
        format: Format::Json,
        min: 0.0,
        ..DiffOptions::default()
    };
    let text = compared(a, b, &EventSelection::default(), &options).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The figures beyond noise: `app:request rate`, `app:request.arg3=4 share`.
fn beyond(a: &Recorded, b: &Recorded) -> Vec<String> {
    let compared = json(a, b);
    let figures = compared["figures"].as_array().unwrap();
    let beyond = figures
        .iter()
        .filter(|figure| figure["verdict"] == "beyond");
    beyond.map(name).collect()
}

fn name(figure: &Value) -> String {
    let name = figure["name"].as_str().unwrap().trim_start_matches("sdt_");
    let argument = match figure["argument"].as_str() {
        Some(argument) => format!(".{argument}"),
        None => String::new(),
    };
    let value = match &figure["value"] {
        Value::Null => String::new(),
        value => format!("={value}"),
    };
    format!(
        "{name}{argument}{value} {}",
        figure["figure"].as_str().unwrap()
    )
}

#[test]
fn like_and_like_do_not_differ() {
    let works = [
        WORK,
        Work { burst: 40, ..WORK },
        Work {
            requests: 200,
            ..WORK
        },
        Work {
            burst: 200,
            done: 3,
            ..WORK
        },
        Work {
            phase: 300_000_000,
            ..WORK
        },
    ];
    let mut alarms = Vec::new();
    let rounds = if is_deep() { 20 } else { 5 };
    for (kind, work) in works.into_iter().enumerate() {
        for round in 0..rounds as u64 {
            let seed = round * 2 + 1000 * kind as u64;
            let a = Work { seed, ..work }.record();
            // How long a recording is does not matter.
            let factor = 1 + round % 2;
            let b = Work {
                seed: seed + 1,
                requests: work.requests * factor,
                seconds: work.seconds * factor,
                ..work
            };
            let found = beyond(&a, &b.record());
            if !found.is_empty() {
                alarms.push((kind, round, found));
            }
        }
    }
    // One of a hundred comparisons for each of seven kinds of figures, as it promises.
    let most = (7 * works.len() * rounds).div_ceil(100);
    assert!(alarms.len() <= most, "{alarms:?}");
}

#[test]
fn what_was_changed_is_reported_and_nothing_else() {
    let a = WORK.record();
    let twice = Work {
        seed: 1,
        requests: 2 * WORK.requests,
        ..WORK
    };
    assert_eq!(
        beyond(&a, &twice.record()),
        ["app:done rate", "app:request rate"]
    );
    // What too few numbers do not show is reported of more only.
    let many = Work {
        seed: 2,
        requests: 8000,
        ..WORK
    };
    let slow = Work {
        seed: 3,
        slow: 100_000_000,
        ..many
    };
    assert_eq!(beyond(&many.record(), &slow.record()), ["app:request p99"]);
    let slower = Work {
        seed: 4,
        latency: 2_000_000,
        ..WORK
    };
    assert_eq!(
        beyond(&a, &slower.record()),
        ["app:request p50", "app:request p90"]
    );
}

#[test]
fn groups_of_spans_are_compared_apart() {
    let a = WORK.record();
    let slower = Work {
        seed: 5,
        fourth: 10,
        ..WORK
    };
    let b = slower.record();
    let by = |keys: &[&str], format| {
        let options = DiffOptions {
            by: keys.iter().map(|&key| key.to_owned()).collect(),
            format,
            all: true,
            ..DiffOptions::default()
        };
        compared(&a, &b, &EventSelection::default(), &options)
    };
    let text = by(&["arg3"], Format::Json).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let figures = json["figures"].as_array().unwrap();
    let groups: Vec<&Value> = figures
        .iter()
        .filter(|figure| figure["group"].is_string())
        .collect();
    // Count, three percentiles and the longest of each.
    assert_eq!(groups.len(), 5 * 5);
    let told: Vec<&Value> = groups
        .into_iter()
        .filter(|figure| figure["verdict"] == "beyond")
        .collect();
    assert!(told.iter().all(|figure| figure["group"] == "4"), "{told:?}");
    assert!(
        told.iter().any(|figure| figure["figure"] == "p50"),
        "{told:?}"
    );
    let text = by(&["arg3"], Format::Text).unwrap();
    let line = text
        .lines()
        .find(|line| line.starts_with("app:request  4 "));
    assert!(line.is_some(), "{text}");
    let error = by(&["other"], Format::Text).unwrap_err().to_string();
    assert!(
        error.contains("trace.data: there is no \"other\""),
        "{error}"
    );
    // Each has a group of its own: that is reported in few lines.
    let text = by(&["arg1"], Format::Text).unwrap();
    assert!(text.lines().count() < 150, "{text}");
}

#[test]
fn text_says_first_what_is_beyond_noise() {
    let a = WORK.record();
    let b = Work {
        seed: 1,
        requests: 25 * WORK.requests / 2,
        slow: 100_000_000,
        ..WORK
    };
    let b = b
        .record_into(Recording::usual())
        .finish_with(&[(1, DONE, 17)]);
    let text =
        |options: &DiffOptions| compared(&a, &b, &EventSelection::default(), options).unwrap();
    let short = text(&DiffOptions::default());
    let lines: Vec<&str> = short.lines().collect();
    assert!(
        lines[0].starts_with("Slower, 99% sure: app:request p99 "),
        "{short}"
    );
    assert!(lines[1].starts_with("More often, 99% sure: "), "{short}");
    let lost = lines
        .iter()
        .position(|line| line.starts_with("# B lost 17 of"));
    let changes = lines
        .iter()
        .position(|line| line.starts_with("Beyond noise"));
    assert!(lost.unwrap() < changes.unwrap(), "{short}");
    let told = &lines[changes.unwrap()..];
    let line = |start: &str| told.iter().find(|line| line.starts_with(start)).copied();
    let rate = line("app:request").unwrap();
    assert!(
        rate.contains("/s") && rate.contains("200") && rate.contains("x12"),
        "{short}"
    );
    assert!(told.iter().any(|line| line.contains("p99")), "{short}");
    assert!(line("Within noise: ").is_some(), "{short}");
    assert!(
        lines.contains(&"# spans matched by thread: app:request"),
        "{short}"
    );
    assert!(
        lines
            .iter()
            .all(|line| line.starts_with('#') || line.chars().count() <= 80),
        "{short}"
    );
    let all = text(&DiffOptions {
        all: true,
        ..DiffOptions::default()
    });
    assert!(
        all.contains("max") && all.contains("app:done.arg1=500"),
        "{all}"
    );
    let like = compared(&a, &a, &EventSelection::default(), &DiffOptions::default()).unwrap();
    assert!(
        like.starts_with("Nothing differs beyond noise.\n"),
        "{like}"
    );
    assert!(
        like.contains("\n\nWithin noise: ") && !like.contains("\n\n\n"),
        "{like}"
    );
}

#[test]
fn probes_that_come_and_go_are_reported() {
    let many = WORK.record();
    let none = Work {
        done: u64::MAX,
        ..WORK
    }
    .record();
    let rate = |a: &Recorded, b: &Recorded| {
        let text = compared(a, b, &EventSelection::default(), &DiffOptions::default()).unwrap();
        let line = text.lines().find(|line| line.starts_with("app:done"));
        line.unwrap_or_else(|| panic!("{text}")).to_owned()
    };
    assert!(rate(&many, &none).contains("gone"));
    assert!(rate(&none, &many).contains("new"));
    let mut few = Work {
        done: u64::MAX,
        ..WORK
    }
    .record_into(Recording::usual());
    for at in 1..4 {
        few.hit(Hit {
            id: DONE,
            time: HIT.time + at * 2_345_678_901,
            ..HIT
        });
    }
    let text = compared(
        &none,
        &few.finish(),
        &EventSelection::default(),
        &DiffOptions::default(),
    )
    .unwrap();
    assert!(
        text.contains("\nNew, but seldom or all at once: app:done (3)\n"),
        "{text}"
    );
}

/// As where only one has spans as long as asked, or where another thread ends them.
#[test]
fn spans_that_only_one_has_are_reported() {
    let a = WORK.record();
    let slow = Work {
        slow: 1_000_000_000,
        ..WORK
    };
    let b = slow.record();
    let mut long = DiffOptions::default();
    long.spans.least = 100_000_000;
    let compare = |a, b| compared(a, b, &EventSelection::default(), &long).unwrap();
    for (which, text) in [("B", compare(&a, &b)), ("A", compare(&b, &a))] {
        let line = format!("\nNot compared: app:request: only in {which}: ");
        assert!(text.contains(&line), "{text}");
    }
    assert_eq!(spans_of_one(&a, &b, &long), ["app:request"]);
    assert_eq!(spans_of_one(&b, &a, &long), ["app:request"]);
    let all = DiffOptions::default();
    assert_eq!(spans_of_one(&a, &a, &all), [""; 0]);
    // Of so few, nothing is said where both have them, either.
    let mut longest = DiffOptions::default();
    longest.spans.least = 2_500_000_000;
    let text = compared(&a, &b, &EventSelection::default(), &longest).unwrap();
    assert!(
        text.contains("\nNot compared: app:request: only in B: "),
        "{text}"
    );
    assert_eq!(spans_of_one(&a, &b, &longest), [""; 0]);
}

/// A recording in which `app:done` has a status, and `app:inner`, which is in no span, a number.
fn with_status(work: Work) -> Recorded {
    let recording = Recording::with(Path::new("/opt/app"), |info| {
        with_inner(info);
        let definitions = info.definitions.as_mut().unwrap();
        definitions.probes[1].arguments[0].name = "status".to_owned();
    });
    work.record_into(recording).finish()
}

/// By an argument of their end, as `report --span` does.
#[test]
fn spans_are_selected_by_what_ends_them() {
    let slower = Work {
        seed: 6,
        latency: 5_000_000,
        ..WORK
    };
    let (a, b) = (with_status(WORK), with_status(slower));
    let ask = |filter: &str, span: Option<&str>| {
        let selection = EventSelection {
            filter: Some(filter.to_owned()),
            ..EventSelection::default()
        };
        let mut options = DiffOptions {
            format: Format::Json,
            ..DiffOptions::default()
        };
        options.spans.spans = span.map(str::to_owned).into_iter().collect();
        compared(&a, &b, &selection, &options)
    };
    for span in [None, Some("request")] {
        let text = ask("status == 500", span).unwrap();
        let compared: Value = serde_json::from_str(&text).unwrap();
        let figure = |wanted: &str| {
            let mut figures = compared["figures"].as_array().unwrap().iter();
            figures.find(|figure| name(figure) == wanted).unwrap()
        };
        // One in ten.
        let count = figure("app:request count")["a"].as_u64().unwrap();
        assert!((100..400).contains(&count), "{count}");
        assert_eq!(figure("app:request p50")["verdict"], "beyond", "{text}");
        // Hits are those of the end that it selects.
        let rate = figure("app:done rate")["a"].as_f64().unwrap();
        assert!(
            (rate * 10.0 - count as f64).abs() < 0.1 * count as f64,
            "{rate}"
        );
    }
    // What is about a probe alone selects no spans, and cannot be asked of those that are named.
    let text = ask("number > 3", None).unwrap();
    assert!(!text.contains("\"app:request\""), "{text}");
    let error = ask("number > 3", Some("request")).unwrap_err().to_string();
    assert!(
        error.contains("neither what begins the span nor what ends it"),
        "{error}"
    );
}

/// A recording of another host, of a program of another build elsewhere, whose second argument has a name, and whose third is another.
fn elsewhere(work: Work) -> Recorded {
    let mut recording = Recording::with(Path::new("/usr/bin/app"), |info| {
        info.hostname = "evil\x1b[2J".to_owned();
        if let Some(clock) = &mut info.clock {
            clock.clock_ns += 77;
        }
        let definitions = info.definitions.as_mut().unwrap();
        let request = &mut definitions.probes[0];
        request.arguments[1].name = "bytes".to_owned();
        request.arguments[2].name = "other".to_owned();
        request.arguments[3].name = "evil\x1b[2J".to_owned();
        for site in definitions
            .probes
            .iter_mut()
            .flat_map(|probe| &mut probe.sites)
        {
            site.site.offset = site.site.offset.map(|offset| offset + 0x4000);
            site.site.pc += 0x4000;
        }
    });
    recording.comm(0, (100, 100), "server", false);
    work.record_into(recording).finish()
}

#[test]
fn recordings_of_other_builds_and_hosts_are_compared() {
    let a = Recording::with(Path::new("/opt/app"), |info| {
        let definitions = info.definitions.as_mut().unwrap();
        definitions.probes[0].arguments[2].name = "mode".to_owned();
    });
    let a = WORK.record_into(a).finish();
    let b = elsewhere(Work { seed: 1, ..WORK });
    let compared_json = json(&a, &b);
    assert_eq!(beyond(&a, &b), [""; 0]);
    let names: Vec<String> = compared_json["figures"]
        .as_array()
        .unwrap()
        .iter()
        .map(name)
        .collect();
    for told in [
        "app:request rate",
        "app:request.bytes p50",
        "app:request p99",
    ] {
        assert!(names.iter().any(|name| name == told), "{told}: {names:?}");
    }
    let left_out = compared_json["left_out"].as_array().unwrap().iter();
    let left_out: Vec<(&str, &str)> = left_out
        .map(|one| {
            (
                one["argument"].as_str().unwrap(),
                one["reason"].as_str().unwrap(),
            )
        })
        .collect();
    assert!(left_out.contains(&("mode", "only in A")), "{left_out:?}");
    assert!(left_out.contains(&("other", "only in B")), "{left_out:?}");
    let text = compared(&a, &b, &EventSelection::default(), &DiffOptions::default()).unwrap();
    assert!(!text.contains('\x1b'), "{text}");
    assert!(text.contains("host evil\\x1b[2J"), "{text}");
    assert!(
        text.contains("Not compared: app:request.mode: only in A"),
        "{text}"
    );
}

#[test]
fn losses_explain_differences() {
    let a = WORK.record();
    let b = Work {
        requests: WORK.requests / 2,
        ..WORK
    };
    let rates = |lost| {
        let b = b
            .record_into(Recording::usual())
            .finish_with(&[(0, REQUEST, lost)]);
        beyond(&a, &b)
    };
    assert_eq!(rates(0), ["app:done rate", "app:request rate"]);
    assert_eq!(rates(WORK.requests / 2), ["app:done rate"]);
}

#[test]
fn a_selection_that_only_one_recording_has_is_no_error() {
    let a = WORK.record();
    let ask = |selection: &EventSelection| compared(&a, &a, selection, &DiffOptions::default());
    let events = |text: &str| EventSelection {
        events: vec![usdtrec_format::Pattern::parse(text).unwrap()],
        ..EventSelection::default()
    };
    assert!(ask(&events("app:request")).is_ok());
    let error = ask(&events("app:other")).unwrap_err();
    assert!(error.to_string().contains("no event"), "{error}");
    let filter = |text: &str| EventSelection {
        filter: Some(text.to_owned()),
        ..EventSelection::default()
    };
    assert!(ask(&filter("arg1 > 200")).is_ok());
    assert!(ask(&filter("other > 200")).is_err());
    let times = EventSelection {
        time: Some("1,2".parse().unwrap()),
        ..EventSelection::default()
    };
    assert!(ask(&times).unwrap_err().to_string().contains("10%-20%"));
}

#[test]
fn csv_has_the_members_of_json() {
    let a = WORK.record();
    let options = DiffOptions {
        format: Format::Csv,
        ..DiffOptions::default()
    };
    let csv = compared(&a, &a, &EventSelection::default(), &options).unwrap();
    let mut lines = csv.lines();
    let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
    let json = json(&a, &a);
    let figures = json["figures"].as_array().unwrap();
    assert_eq!(lines.clone().count(), figures.len());
    for (line, figure) in lines.zip(figures) {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields.len(), columns.len(), "{line}");
        for (column, field) in columns.iter().zip(fields) {
            match &figure[column] {
                Value::Null => assert_eq!(field, "", "{column} of {line}"),
                Value::String(string) => assert_eq!(string, field, "{column} of {line}"),
                other => assert_eq!(*other, serde_json::from_str::<Value>(field).unwrap()),
            }
        }
        assert_ne!(figure["verdict"], "beyond", "{line}");
    }
}
