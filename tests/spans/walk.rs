//! Spans by a plain walk over the events that `script --format json` prints, and what `report --span` must say of them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::{Event, Lab};

/// Spans as a walk over events finds them.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// ns, by group, in the order in which they ended.
    pub(super) groups: BTreeMap<String, Vec<u64>>,
    /// When each began and how long it lasted, ns.
    pub(super) spans: Vec<(u64, u64)>,
    /// Of each group, and of all (`""`), the times of its spans.
    totals: BTreeMap<String, Totals>,
    pub(super) open: usize,
    unfinished: usize,
    pub(super) unmatched: usize,
    /// How many of one key were open at once at most.
    pub(super) depth: usize,
}

/// Times of the spans of a group, ns.
#[derive(Clone, Copy, Debug)]
struct Totals {
    /// In which any of them was open.
    total: u64,
    /// In which one was open and none within it.
    own: u64,
    /// Sum of the times of each in none within it.
    own_sum: u64,
}

/// A span that began.
struct Begun<'e> {
    event: &'e Event,
    /// Those that ended directly in it, from when to when, ns.
    inner: Vec<(u64, u64)>,
}

/// The time that intervals cover, each moment once.
pub(super) fn covered(mut intervals: Vec<(u64, u64)>) -> u64 {
    intervals.sort_unstable();
    let (mut time, mut until) = (0, 0);
    for (begin, end) in intervals {
        time += end.saturating_sub(begin.max(until));
        until = end.max(until);
    }
    time
}

/// The parts of a span outside those within it.
pub(super) fn outside(span: (u64, u64), mut inner: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    inner.sort_unstable();
    let begins = std::iter::once(span.0).chain(inner.iter().map(|inner| inner.1));
    let ends = inner.iter().map(|inner| inner.0).chain([span.1]);
    begins.zip(ends).collect()
}

/// What a walk must know of a kind of spans.
pub(super) struct Asked<'a> {
    pub(super) starts: &'a [&'a str],
    pub(super) dones: &'a [&'a str],
    /// The argument to match by; `None` for the thread.
    pub(super) key: Option<&'a str>,
    /// The arguments to group by.
    pub(super) by: &'a [&'a str],
}

impl Asked<'_> {
    /// Matches the spans of events, which are in the order of time, by nothing but the key.
    pub(super) fn walk(&self, events: &[Event]) -> Walk {
        self.walk_agreed(events, &[], false)
    }

    /// The same; begin and end have these arguments in common. They need not nest if they `cross`.
    fn walk_agreed(&self, events: &[Event], agreed: &[&str], cross: bool) -> Walk {
        let mut walk = Walk::default();
        let mut open: BTreeMap<String, Vec<Begun<'_>>> = BTreeMap::new();
        // Of each group, when its spans were, and when they were in none within them.
        let mut ended: BTreeMap<String, [Vec<(u64, u64)>; 2]> = BTreeMap::new();
        for event in events {
            let marks = |event: &Event| -> Vec<Value> {
                agreed
                    .iter()
                    .map(|name| event.named(name).clone())
                    .collect()
            };
            let mut key = self.key.map_or_else(
                || event.tid.to_string(),
                |name| event.named(name).to_string(),
            );
            if cross {
                key = format!("{key} {:?}", marks(event));
            }
            let starts = self.starts.contains(&event.name());
            if !starts && !self.dones.contains(&event.name()) {
                continue;
            }
            let known = marks(event).iter().all(|value| !value.is_null());
            assert!(known, "an argument is missing: {event:?}");
            let waiting = open.entry(key.clone()).or_default();
            if starts {
                waiting.push(Begun {
                    event,
                    inner: Vec::new(),
                });
                walk.depth = walk.depth.max(waiting.len());
                continue;
            }
            let wanted = marks(event);
            let same = |begun: &Begun<'_>| marks(begun.event) == wanted;
            let Some(at) = waiting.iter().rposition(same) else {
                walk.unmatched += 1;
                continue;
            };
            let left = waiting.split_off(at + 1);
            walk.unfinished += left.len();
            let begun = waiting.pop().expect("it is there");
            let mut inner = begun.inner;
            inner.extend(left.into_iter().flat_map(|begun| begun.inner));
            let (begin, duration) = (begun.event, event.time_ns - begun.event.time_ns);
            let span = (begin.time_ns, event.time_ns);
            if let Some(outer) = waiting.last_mut() {
                outer.inner.push(span);
            }
            let own = outside(span, inner);
            let group = self.group(begin);
            for name in [group.clone(), String::new()] {
                let [total, of_own] = ended.entry(name).or_default();
                total.push(span);
                of_own.extend(&own);
            }
            walk.groups.entry(group).or_default().push(duration);
            walk.spans.push((begin.time_ns, duration));
        }
        walk.open = open.values().map(Vec::len).sum::<usize>() + walk.unfinished;
        let totals = ended.into_iter();
        let totals = totals.map(|(name, [total, own])| {
            let totals = Totals {
                total: covered(total),
                own_sum: own.iter().map(|(begin, end)| end - begin).sum(),
                own: covered(own),
            };
            (name, totals)
        });
        walk.totals = totals.collect();
        walk
    }

    fn group(&self, begin: &Event) -> String {
        let values = self.by.iter().map(|name| begin.named(name).clone());
        Value::Array(values.collect()).to_string()
    }

    /// Asserts that `report` finds the same spans of the trace, and the same figures for each group.
    #[track_caller]
    pub(super) fn compare(&self, lab: &Lab, span: &str, more: &[&str]) -> Walk {
        let events = lab.events("trace");
        let by = self.by.join(",");
        let mut arguments = vec!["--span", span];
        if !by.is_empty() {
            arguments.extend(["--by", &by]);
        }
        arguments.extend(more);
        let found = ask(lab, &arguments);
        let found = &found["spans"][0];
        assert_eq!(found["lost"], 0);
        let agreed = list(found, "agreed").iter();
        let agreed: Vec<&str> = agreed.map(|name| name.as_str().expect("a name")).collect();
        let cross = self.starts[0].contains("acquire") && self.dones[0].contains("release");
        let walk = self.walk_agreed(&events, &agreed, cross);
        assert_eq!(found["open"], walk.open, "open");
        assert_eq!(found["unfinished"], walk.unfinished, "unfinished");
        assert_eq!(found["unmatched"], walk.unmatched, "unmatched");
        if self.key.is_none() && !cross {
            let depth = Some(walk.depth).filter(|&depth| depth > 0);
            assert_eq!(found["depth"], serde_json::json!(depth), "depth");
        }
        let mut all: Vec<u64> = walk.groups.values().flatten().copied().collect();
        all.sort_unstable();
        figures(found, &all, walk.totals.get("").copied());
        if !more.contains(&"--key") && !span.contains("..") {
            let mut told = in_script(lab, found["name"].as_str().expect("a name"));
            told.sort_unstable();
            assert_eq!(told, all, "script -F +span");
        }
        let slowest = list(found, "slowest");
        slowest.iter().for_each(|slow| begins(slow, &events));
        let slowest = slowest.iter().map(|slow| number(slow, "duration_ns"));
        let slowest: Vec<u64> = slowest.collect();
        let longest: Vec<u64> = all.iter().rev().take(10).copied().collect();
        assert_eq!(slowest, longest, "the slowest");
        if !self.by.is_empty() {
            self.compare_groups(found, &walk);
        }
        walk
    }

    #[track_caller]
    fn compare_groups(&self, found: &Value, walk: &Walk) {
        let groups = list(found, "groups");
        assert_eq!(found["ungrouped"], 0);
        assert_eq!(groups.len(), walk.groups.len(), "groups");
        for group in groups {
            let values = self.by.iter().map(|name| group[*name].clone());
            let name = Value::Array(values.collect()).to_string();
            let durations = walk.groups.get(&name);
            let mut durations = durations.unwrap_or_else(|| panic!("no {name}")).clone();
            durations.sort_unstable();
            figures(group, &durations, walk.totals.get(&name).copied());
        }
    }
}

/// Asserts that one of the slowest begins with an event, and has its arguments.
#[track_caller]
fn begins(slow: &Value, events: &[Event]) {
    let (time, tid) = (number(slow, "time_ns"), number(slow, "tid"));
    let mut begin = events.iter().filter(|event| {
        event.time_ns == time && u64::from(event.tid) == tid && event.event == slow["event"]
    });
    let begin = begin
        .next()
        .unwrap_or_else(|| panic!("nothing begins {slow}"));
    assert_eq!(slow["comm"], *begin.comm);
    let arguments = slow["args"].as_object().expect("an object");
    assert_eq!(arguments.len(), begin.argument_count());
    for (name, value) in arguments {
        assert_eq!(value, begin.named(name), "{name}");
    }
}

/// How long spans of a name are, as `script` says with the events that end them.
#[track_caller]
fn in_script(lab: &Lab, name: &str) -> Vec<u64> {
    let script = ["script", "-i", "trace", "--format", "json", "-F", "+span"];
    let script = lab.usdtrec(script).success().silent();
    let name = format!("\"span\":\"{name}\",\"span_ns\":");
    let spans = script.stdout.lines().filter_map(|line| {
        let (_, behind) = line.split_once(&name)?;
        let number = behind.trim_end_matches('}');
        (number != "null").then(|| number.parse().expect("ns"))
    });
    spans.collect()
}

/// The answer to a question, as JSON.
#[track_caller]
pub(super) fn ask(lab: &Lab, question: &[&str]) -> Value {
    let mut report = lab.command(["report", "-i", "trace", "--format", "json"]);
    report.args(question);
    let answer = crate::common::run(report).success().silent();
    serde_json::from_str(&answer.stdout).expect("JSON")
}

/// Asserts that figures are those of sorted durations: percentiles within 1/256, all else exactly.
#[track_caller]
fn figures(found: &Value, sorted: &[u64], totals: Option<Totals>) {
    assert_eq!(found["count"], sorted.len(), "{found}");
    let (Some(min), Some(max)) = (sorted.first(), sorted.last()) else {
        assert_eq!(found["total_ns"], Value::Null);
        return;
    };
    let sum: u64 = sorted.iter().sum();
    let Totals {
        total,
        own,
        own_sum,
    } = totals.expect("of each group");
    for (name, exact) in [
        ("total_ns", total),
        ("self_ns", own_sum),
        ("self_total_ns", own),
        ("sum_ns", sum),
        ("mean_ns", sum / sorted.len() as u64),
        ("min_ns", *min),
        ("max_ns", *max),
    ] {
        assert_eq!(number(found, name), exact, "{name} of {found}");
    }
    for (name, thousandths) in [
        ("p50_ns", 500),
        ("p90_ns", 900),
        ("p99_ns", 990),
        ("p999_ns", 999),
    ] {
        let exact = sorted[(sorted.len() * thousandths).div_ceil(1000) - 1];
        let off = number(found, name).abs_diff(exact);
        let allowed = if found["exact"] == true {
            0
        } else {
            exact / 256
        };
        assert!(off <= allowed, "{name} is {exact}, not {found}");
    }
}

/// A member that must be a number.
#[track_caller]
pub(super) fn number(object: &Value, name: &str) -> u64 {
    let number = object[name].as_u64();
    number.unwrap_or_else(|| panic!("{name} is no number in {object}"))
}

/// A member that must be a list.
#[track_caller]
pub(super) fn list<'v>(object: &'v Value, name: &str) -> &'v [Value] {
    let list = object[name].as_array();
    list.unwrap_or_else(|| panic!("{name} is no list in {object}"))
}
