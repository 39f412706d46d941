//! What stock perf prints of arguments that perf events captured: it must be what our own reader decodes from registers and stack.

use std::collections::HashMap;

use crate::common::{Build, Engine, Event, Lab, Number, Perf, skip, test};

/// `arg1=5 arg2=<xmm0 not captured> missing=0x2`, as perf prints it: the values by name.
fn shown(line: &str) -> HashMap<&str, &str> {
    let (_, arguments) = line.split_once(": ").unwrap_or((line, ""));
    let mut values = HashMap::new();
    let mut rest = arguments.trim();
    while let Some((name, behind)) = rest.split_once('=') {
        let end = match behind.strip_prefix('<') {
            Some(reason) => reason.find("> ").map(|at| at + 2),
            None => behind.find(' '),
        };
        let (value, next) = behind.split_at(end.unwrap_or(behind.len()));
        values.insert(name, value.trim());
        rest = next.trim_start();
    }
    values
}

/// The bits of an integer, however it is written: `-1`, `0xff`, `true`, `WORD(-1)`.
fn bits(text: &str) -> Option<u64> {
    let words = text
        .strip_suffix(')')
        .and_then(|text| text.rsplit_once('('));
    let text = match (text, words) {
        ("false", _) => "0",
        ("true", _) => "1",
        (_, Some((_, number))) => number,
        (number, None) => number,
    };
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse::<i128>().ok().map(|number| number as u64),
    }
}

/// Compares one argument; whether perf had a value.
fn same(event: &Event, place: usize, values: &HashMap<&str, &str>) -> bool {
    let name = event.name_of(place);
    let theirs = values[name];
    let missing = values.get("missing").and_then(|word| bits(word));
    let is_missing = missing.is_some_and(|word| word >> (place - 1).min(31) & 1 == 1);
    if event.is_literal(place) {
        assert!(bits(theirs).is_some_and(|address| address != 0), "{theirs}");
        return true;
    }
    match event.argument(place) {
        Err(reason) => {
            let is_said = theirs.starts_with('<') && theirs.contains(&reason);
            assert!(is_missing || is_said, "{theirs} for {reason}");
            false
        }
        Ok(_) if is_missing => panic!("{name} of {} is there", event.event),
        Ok(Number::Integer(ours)) => {
            assert_eq!(bits(theirs), Some(ours as u64), "{name} of {}", event.event);
            true
        }
        Ok(Number::Float(ours)) => {
            let bits = bits(theirs).unwrap_or_else(|| panic!("{theirs}"));
            let single = f32::from_bits(bits as u32);
            let theirs = f64::from_bits(bits);
            // JSON has the shortest digits of a float of 4 bytes.
            assert!(
                theirs == ours || single == ours as f32,
                "{theirs} or {single} for {ours}"
            );
            true
        }
    }
}

/// Arguments of `usdtrec` that record a command, with raw data.
fn raw<'a>(engine: Engine, trace: &'a str, event: &'a str, command: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = engine.record(trace, event, command);
    arguments.insert(1, "-R");
    arguments
}

#[track_caller]
fn perf_shows_the_same(options: &'static [&'static str]) {
    let lab = Lab::privileged();
    let build = Build {
        compiler: "gcc",
        options,
    };
    let program = build.make(&lab, "operands.c", "operands");
    let perf = Perf::new(&lab);
    let path = program.to_str().expect("a path in UTF-8");
    let event = format!("sdt_shapes:*@{path}");
    for engine in [Engine::PerfTracefs, Engine::PerfPmu] {
        lab.usdtrec(raw(engine, "trace", &event, &[path])).success();
        let events = lab.events("trace");
        let theirs = perf
            .run(["script", "-i", "trace", "-F", "event,trace"])
            .success()
            .stdout;
        assert_eq!(theirs.lines().count(), events.len());
        let (mut there, mut all) = (0, 0);
        for (line, event) in theirs.lines().zip(&events) {
            assert!(line.contains(&format!("{}:", event.event)), "{line}");
            let values = shown(line);
            for place in 1..=event.argument_count() {
                there += usize::from(same(event, place, &values));
                all += 1;
            }
        }
        assert!(there * 2 > all, "{there} of {all} arguments were there");
    }
}

#[test]
fn of_unoptimised_programs() {
    perf_shows_the_same(&["-O0", "-g"]);
}

#[test]
fn of_optimised_programs() {
    perf_shows_the_same(&["-O2"]);
}

#[test]
fn of_32_bit_programs() {
    perf_shows_the_same(&["-O2", "-m32"]);
}

/// Without `-R` there is no raw data, and for us nothing else is different.
#[test]
fn raw_data_are_only_there_if_they_are_asked_for() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "places.c", "places");
    let perf = Perf::new(&lab);
    let path = program.to_str().expect("a path in UTF-8");
    let event = format!("sdt_places:named@{path}");
    for engine in [Engine::PerfTracefs, Engine::PerfPmu] {
        let record = engine.record("plain", &event, &[path]);
        lab.usdtrec(record).success();
        lab.usdtrec(raw(engine, "raw", &event, &[path])).success();
        let [plain, raw] = ["plain", "raw"].map(|trace| {
            let events = lab.events(trace);
            let told = |event: &Event| (event.event.clone(), event.integer(1));
            events.iter().map(told).collect::<Vec<_>>()
        });
        assert!(!plain.is_empty());
        assert_eq!(plain, raw);
        let [plain, raw] = ["plain", "raw"].map(|trace| {
            let shown = ["script", "-i", trace, "-F", "event,trace"];
            perf.run(shown).stdout
        });
        assert!(
            !plain.contains("-123456") && raw.contains("-123456"),
            "{plain}\n{raw}"
        );
    }
}

/// A report groups by the fields, as with programs.
#[test]
fn reports_group_by_arguments() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "places.c", "places");
    let perf = Perf::new(&lab);
    let path = program.to_str().expect("a path in UTF-8");
    let event = format!("sdt_places:named@{path}");
    lab.usdtrec(raw(Engine::PerfTracefs, "trace", &event, &[path]))
        .success();
    let report = perf
        .run(["report", "--stdio", "-s", "arg1", "-i", "trace"])
        .success()
        .stdout;
    assert!(report.contains("-123456"), "{report}");
}

/// Several events of one probe, as its sites have their arguments in different forms: each has a name of its own for stock perf, so
/// that it converts the file; for us all are the probe's.
#[test]
fn a_probe_of_several_events_is_converted_to_ctf() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "sites.c", "sites");
    let perf = Perf::new(&lab);
    let path = program.to_str().expect("a path in UTF-8");
    let event = format!("sdt_shapes:*@{path}");
    for (engine, name) in [(Engine::BpfMulti, "bpf"), (Engine::PerfTracefs, "perf")] {
        lab.usdtrec(raw(engine, name, &event, &[path])).success();
        let events = lab.events(name);
        assert_eq!(events.len(), 36);
        for event in &events {
            let known = ["sdt_shapes:inlined", "sdt_shapes:shared"];
            assert!(known.contains(&event.event.as_str()), "{}", event.event);
        }
        let list = perf.run(["evlist", "-i", name]).success().stdout;
        let mut names: Vec<_> = list.lines().filter(|line| line.contains(':')).collect();
        assert!(names.contains(&"sdt_shapes:shared_1"), "{list}");
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{list}");
        let script = perf.run(["script", "-i", name, "-F", "event"]).success();
        assert_eq!(script.stdout.lines().count(), events.len());
        let directory = format!("{name}.ctf");
        let convert = ["data", "convert", "--to-ctf", &directory, "-i", name];
        let converted = perf.run(convert);
        if converted.stderr.contains("unknown option") {
            skip("perf is built without libbabeltrace");
        }
        converted.success().complains("(36 samples)");
    }
}
