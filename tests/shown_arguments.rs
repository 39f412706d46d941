//! Argument lists that only name, choose and order arguments: names in the trace, with every engine, beside the values that recordings
//! without a list have.

use std::io::Write;
use std::process::Stdio;

use crate::common::{Engine, Event, Lab, Perf, test};
use crate::node::NODE;

/// Records ten requests of the stand-in of Node.js, with this list after the event (`(…)`, or nothing).
fn record(lab: &Lab, engine: Engine, list: &str, filter: &[&str]) -> Vec<Event> {
    let program = NODE.make(lab, "node.c", "node");
    let program = program.to_str().expect("a path");
    let event = format!("sdt_node:http__client__request{list}@{program}");
    let mut options = engine.record("trace", &event, &[program]);
    let command = options.iter().position(|&option| option == "--");
    let at = command.expect("a command");
    options.splice(at..at, filter.iter().copied());
    let mut command = lab.command(options);
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut run = command.spawn().expect("usdtrec");
    let mut input = run.stdin.take().expect("a pipe");
    input.write_all(b"request 10\n").expect("a reader");
    drop(input);
    assert!(run.wait().expect("it ends").success());
    lab.events("trace")
}

/// The values of arguments, by name.
fn values(events: &[Event], names: [&str; 2]) -> Vec<[String; 2]> {
    let of_event = |event: &Event| names.map(|name| event.named(name).to_string());
    events.iter().map(of_event).collect()
}

fn names(event: &Event) -> Vec<&str> {
    (1..=event.argument_count())
        .map(|number| event.name_of(number))
        .collect()
}

#[test]
fn lists_that_rename_work_with_every_engine() {
    let lab = Lab::privileged();
    let list = "(r=arg1, c=arg2, host=arg3, number=port, m=arg5, u=arg6, descriptor=fd)";
    let shown = ["r", "c", "host", "number", "m", "u", "descriptor"];
    for engine in Engine::ALL {
        let own = values(&record(&lab, engine, "", &[]), ["port", "fd"]);
        assert_eq!(own[3], ["51059", "-4"], "{}", engine.option());
        let events = record(&lab, engine, list, &[]);
        assert_eq!(names(&events[0]), shown, "{}", engine.option());
        assert_eq!(values(&events, ["number", "descriptor"]), own);
        let script = lab.usdtrec(["script", "-i", "trace"]).success().stdout;
        assert!(script.contains(" number=51059 "), "{script}");
        let report = lab.usdtrec(["report", "-i", "trace"]).success().stdout;
        assert!(report.contains("request.descriptor "), "{report}");
    }
}

#[test]
fn lists_that_choose_and_order_work_with_every_engine() {
    let lab = Lab::privileged();
    for engine in Engine::ALL {
        let own = values(&record(&lab, engine, "", &[]), ["fd", "port"]);
        let events = record(&lab, engine, "(fd, to=arg4)", &[]);
        assert_eq!(names(&events[0]), ["fd", "to"], "{}", engine.option());
        assert_eq!(values(&events, ["fd", "to"]), own);
        let script = lab.usdtrec(["script", "-i", "trace"]).success().stdout;
        assert!(script.contains(") fd=-4 to=51059\n"), "{script}");
        let export = [
            "export", "-i", "trace", "--to", "perfetto", "-o", "exported",
        ];
        lab.usdtrec(export).success();
        let exported = std::fs::read(lab.file("exported")).expect("a file");
        let has = |word: &[u8]| exported.windows(word.len()).any(|part| part == word);
        assert!(has(b"to"));
        assert!(!has(b"method"));
        let grouped = ["report", "-i", "trace", "--sort", "to", "--format", "json"];
        let grouped = lab.usdtrec(grouped).success().stdout;
        assert!(grouped.contains("51059"), "{grouped}");
    }
}

/// The filter may have the list's names, and the own ones of arguments that the list leaves out.
#[test]
fn filters_beside_lists_work_with_every_engine() {
    let lab = Lab::privileged();
    for engine in Engine::ALL {
        for (list, filter, hits) in [
            (
                "(to=arg4, own=fd)",
                "to == 51060 || own == -2",
                ["-2", "-5"],
            ),
            ("(own=fd)", "port == 51060 || arg4 == 51057", ["-2", "-5"]),
            // Only the recorder can compare two arguments.
            (
                "(own=fd, to=port)",
                "own + 51065 == to || to == 51058",
                ["-3", "-5"],
            ),
        ] {
            let events = record(&lab, engine, list, &["--filter", filter]);
            let owns = events.iter().map(|event| event.named("own").to_string());
            let owns: Vec<String> = owns.collect();
            assert_eq!(owns, hits, "{filter} with {}", engine.option());
        }
    }
}

/// Stock perf has the names of the list in traces of the bpf engine.
#[test]
fn stock_perf_shows_the_names_of_a_list() {
    let lab = Lab::privileged();
    let perf = Perf::new(&lab);
    record(&lab, Engine::BpfMulti, "(own=fd, to=port)", &[]);
    let shown = perf.run(["script", "-i", "trace"]).success().stdout;
    assert!(shown.contains("own=-4 to=51059"), "{shown}");
    assert!(!shown.contains("not in the argument list"), "{shown}");
}

#[test]
fn a_list_with_one_name_twice_is_refused() {
    let lab = Lab::privileged();
    let program = NODE.make(&lab, "node.c", "node");
    let program = program.to_str().expect("a path");
    for list in ["port, arg4", "fd=port, fd"] {
        let event = format!("sdt_node:http__client__request({list})@{program}");
        lab.usdtrec(["record", "-o", "trace", "-e", &event, "--", program])
            .exits(2)
            .complains("two arguments are named");
    }
}
