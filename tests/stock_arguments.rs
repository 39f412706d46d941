//! What stock perf does with the events and arguments of our traces.

use crate::common::{Build, Engine, Lab, Perf, skip, test};

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
        lab.usdtrec(engine.record(name, &event, &[path])).success();
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

/// What docs/guides/export.md has for the Firefox Profiler and Trace Compass.
#[test]
fn stock_perf_writes_a_trace_for_other_viewers() {
    let lab = Lab::new();
    let perf = Perf::new(&lab);
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/traces/chunks.data");
    let script = perf.run(["script", "-F", "+pid", "-i", trace]).success();
    assert_eq!(script.stdout.lines().count(), 20);
    let first = script.stdout.lines().next().expect("a line");
    let words: Vec<_> = first.split_whitespace().collect();
    assert_eq!(words[..3], ["tgt", "6980/6980", "[000]"]);
    assert!(first.ends_with("url=\"/index.html\" bytes=0"), "{first}");
    let converted = perf.run(["data", "convert", "--to-ctf=folder", "-i", trace]);
    if converted.stderr.contains("unknown option") {
        skip("perf is built without libbabeltrace");
    }
    converted.success().complains("(20 samples)");
}
