//! Lines as babeltrace2 2.0.4 printed them, and what is done to them.

use std::borrow::Cow;

use super::super::event::ImportedValue;
use super::*;

/// A line of LTTng-UST, with `--no-delta` and so on.
const EVENT: &str = r#"[03:52:23.727998921] (+0.000000791) vm app:request__start: { cpu_id = 1 }, { vpid = 17768, vtid = 17769, procname = "app" }, { id = 1, path = "/a \"b\" }, { c = 1\n\t\\x" }"#;

#[track_caller]
fn event(line: &[u8]) -> ImportedEvent<'_> {
    match parse(line, &mut Timestamps::default()) {
        Ok(Line::Event(event)) => event,
        other => panic!("{other:?}"),
    }
}

fn check(text: &str, time: u64) {
    let line = format!("{text}\n");
    let event = event(line.as_bytes());
    assert_eq!(event.time, time);
    assert_eq!(
        (event.cpu, event.pid, event.tid),
        (Some(1), Some(17768), Some(17769))
    );
    assert_eq!(event.comm.as_deref(), Some(&b"app"[..]));
    assert_eq!(event.probe.event(), "app:request__start");
    let values: Vec<_> = event
        .arguments
        .iter()
        .map(|one| (&*one.name, &one.value))
        .collect();
    let path = ImportedValue::Text(Cow::Borrowed(b"/a \"b\" }, { c = 1\n\t\\x"));
    assert_eq!(values, [("id", &ImportedValue::Whole(1)), ("path", &path)]);
}

#[test]
fn forms_of_headers() {
    const TIME: u64 = 13_943_727_998_921;
    let scopes = EVENT.split_once(": {").unwrap().1;
    check(EVENT, TIME);
    for (header, time) in [
        ("[03:52:23.727998921] vm app:request__start", TIME),
        (
            "[03:52:23.727998921] (+?.?????????) vm app:request__start",
            TIME,
        ),
        (
            "[03:52:23.727998921] (+0.000000791) app:request__start",
            TIME,
        ),
        (
            "[03:52:23.727998921] (+0.000000791) vm:app:(17768) app:request__start",
            TIME,
        ),
        (
            "[03:52:23.727998921] (+0.000000791) vm/ust/uid/0/64-bitvm:ust:TRACE_DEBUG_LINE (13) app:request__start",
            TIME,
        ),
        (
            "[1795492343.727998921] (+0.000000791) vm app:request__start",
            1_795_492_343_727_998_921,
        ),
        (
            "[2026-11-24 03:52:23.727998921] (+0.000000791) vm app:request__start",
            1_795_492_343_727_998_921,
        ),
        (
            "[00000003495146732888] (+000000000791) vm app:request__start",
            3_495_146_732_888,
        ),
    ] {
        check(&format!("{header}: {{{scopes}"), time);
    }
    let scopes = r#"stream.packet.context = { cpu_id = 1 }, stream.event.context = { vpid = 17768, vtid = 17769, procname = "app" }, event.fields = { id = 1, path = "/a \"b\" }, { c = 1\n\t\\x" }"#;
    for header in [
        "timestamp = 03:52:23.727998921, name = app:request__start, ",
        "timestamp = 03:52:23.727998921, delta = +0.000000791, trace:hostname = vm, name = app:request__start, ",
        "timestamp = 03:52:23.727998921, delta = +0.000000791, trace = vm/ust, , trace:hostname = vm, trace:domain = ust, loglevel = TRACE_DEBUG_LINE (13), name = app:request__start, ",
        "[03:52:23.727998921] (+0.000000791) vm app:request__start: ",
    ] {
        check(&format!("{header}{scopes}"), TIME);
    }
}

#[test]
fn contexts_of_a_host_and_others_that_are_arguments() {
    let line = b"[1.000000000] vm sched_switch: { cpu_id = 0 }, { pid = 7, vpid = 1, tid = 8, ip = 0xF, x = 3 }, { x = 5, pid = 9 }\n";
    let event = event(line);
    assert_eq!(
        (event.pid, event.tid, &event.comm),
        (Some(7), Some(8), &None)
    );
    assert_eq!(event.probe.event(), "ctf:sched_switch");
    let names: Vec<_> = event.arguments.iter().map(|one| &*one.name).collect();
    assert_eq!(names, ["x", "pid", "vpid", "ip", "context_x"]);
}

#[test]
fn what_is_not_known_is_left_open() {
    let event = event(b"[1.000000000] vm a:b: { }\n");
    assert_eq!((event.cpu, event.pid, event.tid), (None, None, None));
    assert!(event.arguments.is_empty());
}

/// A line that is cut anywhere is no event, and neither is one whose end is missing but for its newline, unless it ends with a structure.
#[test]
fn cut_lines() {
    let whole = format!("{EVENT}\n");
    for at in 0..whole.len() {
        let cut = &whole.as_bytes()[..at];
        let found = parse(cut, &mut Timestamps::default());
        assert!(!matches!(found, Ok(Line::Event(_))), "{at}");
        let cut = [cut, b"\n"].concat();
        let is_event = matches!(parse(&cut, &mut Timestamps::default()), Ok(Line::Event(_)));
        let ends = cut.ends_with(b" }\n");
        assert!(!is_event || ends, "{at}");
    }
}

/// No byte that is another one makes a parser panic; what it gives is an event or an error.
#[test]
fn flipped_bytes() {
    let kinds = r#"[1.000000000] (+0.1) vm a:b: { cpu_id = 0 }, { vpid = 1 }, { a = [ [0] = 1 ], b = ( "X" : container = 1 ), c = { d = "\x01" }, e = 0x1F, f = -1.5e+10 }"#;
    for line in [EVENT, kinds] {
        let whole = format!("{line}\n").into_bytes();
        for at in 0..whole.len() {
            for byte in [
                0, b'"', b'\\', b'{', b'}', b'[', b'(', b')', b' ', b',', b'=', b'\n', 0xff,
            ] {
                let mut other = whole.clone();
                other[at] = byte;
                let _ = parse(&other, &mut Timestamps::default());
                other.truncate(at + 1);
                let _ = parse(&other, &mut Timestamps::default());
            }
        }
    }
}

#[test]
fn lines_of_other_forms() {
    let many = format!(
        "[1.000000000] a:b: {{ {} }}",
        (0..200)
            .map(|at| format!("a{at} = 1"))
            .collect::<Vec<_>>()
            .join(", ")
    );
    for wrong in [
        "hello",
        "[hello] vm a:b: { }",
        "[1.000000000] vm a:b:",
        "[1.000000000] vm : { }",
        "[1.000000000] vm a:b: { }, ",
        "[1.000000000] vm a:b: { } x",
        "[1.000000000] vm a:b: {}",
        "[1.000000000] vm a:b: { 1, 2 }",
        "[1.000000000] vm a:b: { a = }",
        "[1.000000000] vm a:b: { a = 1, a = 2 }",
        "[1.000000000] vm a:b: { 1a = 1 }",
        "[1.000000000] vm a:b: { a-b = 1 }",
        "[1.000000000] vm a:b: { vpid = \"x\" }, { }",
        "[1.000000000] vm a:b: { vpid = 4294967296 }, { }",
        "[1.000000000] vm a:b: { procname = 5 }, { }",
        "timestamp = 1.000000000, delta = +0.1",
        "timestamp = 1.000000000, delta = +0.1, name = a:b",
        &many,
    ] {
        let line = format!("{wrong}\n");
        assert!(
            parse(line.as_bytes(), &mut Timestamps::default()).is_err(),
            "{wrong}"
        );
    }
    assert!(is_line(EVENT.as_bytes()));
    assert!(is_line(b"timestamp = 1.000000000, name"));
    for other in [&b""[..], b"[1]", b"[", b"timestamp = x, ", b"{}"] {
        assert!(!is_line(other), "{other:?}");
    }
}
