//! Arguments in places that compilers choose for arrays of threads, tables, wide integers and structures.

use crate::common::{Build, Engine, Event, Expected, Hit, Lab, Number, Perf, events_named, test};

/// What the program printed of a probe.
fn printed(hits: &[Hit], name: &str) -> Vec<Vec<i128>> {
    let integer = |expected: &Expected| match expected {
        Expected::Value(Number::Integer(value)) => *value,
        other => panic!("the program printed {other:?}"),
    };
    let hits = hits.iter().filter(|hit| hit.name == name);
    hits.map(|hit| hit.arguments.iter().map(integer).collect())
        .collect()
}

/// The numbers of a probe's arguments.
fn decoded(events: &[Event], name: &str) -> Vec<Vec<i128>> {
    let numbers = events_named(events, name).into_iter().map(|event| {
        let places = 1..=event.argument_count();
        let numbers = places.map(|place| event.integer(place));
        numbers.collect()
    });
    numbers.collect()
}

/// Records testdata/targets/places.c, built in one way, with programs.
#[track_caller]
fn arrays_and_tables(options: &'static [&'static str]) {
    let lab = Lab::privileged();
    let build = Build {
        compiler: "gcc",
        options,
    };
    let program = build.make(&lab, "places.c", "places");
    let path = program.to_str().expect("a path in UTF-8");
    let event = format!("sdt_places:*@{path}");
    for engine in [Engine::BpfMulti, Engine::BpfPerf] {
        let recorded = lab
            .usdtrec(engine.record("trace", &event, &[path]))
            .success();
        let hits = Hit::parse_lines(&recorded.stdout);
        let events = lab.events("trace");
        for name in ["own", "entry", "named"] {
            let right = printed(&hits, name);
            assert!(!right.is_empty(), "{}", recorded.stdout);
            assert_eq!(decoded(&events, name), right, "{name} of {options:?}");
        }
    }
}

macro_rules! builds {
    ($($test:ident: [$($option:literal),*];)*) => {
        $(#[test]
        fn $test() {
            arrays_and_tables(&[$($option),*]);
        })*
    };
}

builds! {
    position_independent: ["-O2"];
    at_a_fixed_address: ["-O2", "-no-pie", "-fno-pic"];
    statically_linked: ["-O2", "-static"];
    static_and_position_independent: ["-O2", "-static-pie"];
    in_32_bits: ["-O2", "-m32"];
    in_32_bits_at_a_fixed_address: ["-O2", "-m32", "-no-pie", "-fno-pic"];
    in_32_bits_statically_linked: ["-O2", "-m32", "-static"];
}

/// The parts of integers of 16 bytes and of structures, by a list of arguments, by a filter while recording and one afterwards.
#[test]
fn parts_of_what_is_wider_than_a_word() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "places.c", "places");
    let path = program.to_str().expect("a path in UTF-8");
    let list = "a=(s64)arg1, b=*(s64*)(&arg1+8), c=*(s64*)(&arg1+16), given=(u64)arg2, low=(u64)arg3, high=hi(arg3)";
    let event = format!("sdt_places:wide({list})@{path}");
    for engine in [Engine::BpfMulti, Engine::BpfPerf] {
        let recorded = lab.usdtrec(engine.record("trace", &event, &[path]));
        let recorded = recorded.success();
        let right = printed(&Hit::parse_lines(&recorded.stdout), "wide");
        assert_eq!(right.len(), 3);
        assert_eq!(decoded(&lab.events("trace"), "wide"), right);
    }
    let event = format!("sdt_places:wide(whole=bytes(&arg1, 24))@{path}");
    let command = Engine::BpfMulti.record("trace", &event, &[path]);
    let with_texts = command.iter().filter(|word| **word != "--strings=off");
    lab.usdtrec(with_texts).success();
    let shown = lab.usdtrec(["script", "-i", "trace"]).success().stdout;
    let first = "whole=[01 00 00 00 00 00 00 00 ff ff ff ff ff ff ff ff 07 ca 9a 3b 00 00 00 00]";
    assert!(shown.contains(first), "{shown}");

    let event = format!("sdt_places:wide@{path}");
    for engine in Engine::ALL {
        lab.usdtrec(engine.record("trace", &event, &[path]))
            .success();
        let asked = ["script", "-i", "trace", "--filter", "(u64)arg2 == 11"];
        let shown = lab.usdtrec(asked).success().stdout;
        assert_eq!(shown.lines().count(), 1, "{shown}");
    }
    let mut command = Engine::BpfMulti.record("trace", &event, &[path]);
    let filter = ["--filter", "hi(arg3) == 42 && (s64)arg1 > 0"];
    let end = command.iter().position(|word| *word == "--");
    let end = end.expect("a command");
    command.splice(end..end, filter);
    lab.usdtrec(command).success();
    assert_eq!(lab.events("trace").len(), 1);
    // Afterwards memory is not there to be read.
    lab.usdtrec(["script", "-i", "trace", "--filter", "hi(arg3) == 42"])
        .exits(1)
        .complains("while recording");
}

/// perf prints the argument of that name, not its own field.
#[test]
fn an_argument_may_be_called_like_a_field_of_perf() {
    let lab = Lab::privileged();
    let program = Build::USUAL.make(&lab, "places.c", "places");
    let path = program.to_str().expect("a path in UTF-8");
    let names = "common_pid=arg1, common_type=arg1, __probe_ip=arg1, common_cpu=arg1";
    let event = format!("sdt_places:named({names})@{path}");
    lab.usdtrec(Engine::BpfMulti.record("trace", &event, &[path]))
        .success();
    let perf = Perf::new(&lab);
    let shown = perf
        .run(["script", "-i", "trace", "-F", "event,trace"])
        .success()
        .stdout;
    let arguments = "common_pid=-123456 common_type=-123456 __probe_ip=-123456 common_cpu=-123456";
    assert!(shown.contains(arguments), "{shown}");
}
