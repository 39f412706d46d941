//! Names that would move the cursor, colour the screen, turn text around or look like commands.

use std::path::Path;

use usdtrec_format::perf::{Comm, Mmap, SampleId};
use usdtrec_format::trace::{Compression, TraceWriter};

use crate::child;
use crate::fuzz::records;

/// Clears the screen, sets the title, the same by a control character of two bytes, turns text around, and begins a line.
const EVIL: &str = "\x1b[2J\x1b]0;owned\x07\u{9b}31m\u{202e}\x7f\r\nusdtrec: ok";

fn trace() -> tempfile::NamedTempFile {
    let mut info = records::info();
    for text in [
        &mut info.hostname,
        &mut info.os_release,
        &mut info.machine,
        &mut info.version,
        &mut info.cpu_description,
    ] {
        text.push_str(EVIL);
    }
    info.command = vec!["usdtrec".to_owned(), EVIL.to_owned()];
    let definitions = info.definitions.as_mut().unwrap();
    definitions.engine.push_str(EVIL);
    definitions.producer.push_str(EVIL);
    for (event, probe) in info.events.iter_mut().zip(&mut definitions.probes) {
        event.name.push_str(EVIL);
        probe.event.clone_from(&event.name);
        probe.provider.push_str(EVIL);
        probe.name.push_str(EVIL);
        for argument in &mut probe.arguments {
            argument.name.push_str(EVIL);
        }
        for site in &mut probe.sites {
            site.site.args.push_str(" 8@");
            site.site.args.push_str(EVIL);
        }
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    let id_type = info.events[0].attr.id_type();
    let mut writer = TraceWriter::create(file.reopen().unwrap(), &info, Compression::None).unwrap();
    let mut records = Vec::new();
    let id = SampleId {
        pid: 7,
        tid: 8,
        ..SampleId::default()
    };
    let comm = Comm {
        pid: 7,
        tid: 8,
        exec: false,
        name: EVIL.as_bytes(),
        id,
    };
    comm.encode(id_type, &mut records);
    Comm { tid: 7, ..comm }.encode(id_type, &mut records);
    let map = Mmap {
        id,
        ..records::mapping(EVIL.as_bytes())
    };
    map.encode(id_type, &mut records);
    writer.push(&records);
    writer.push(&records::hits(1000));
    writer.flush().unwrap();
    file
}

fn assert_harmless(text: &str, what: &str) {
    for line in text.split('\n') {
        let line = line.trim_start_matches('\t');
        let harmful = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}');
        assert!(!line.contains(harmful), "{what}: {line:?}");
        assert!(!line.starts_with("usdtrec: ok"), "{what}: {line:?}");
    }
}

#[test]
fn names_from_a_file_reach_no_terminal_as_they_are() {
    let trace = trace();
    let all = "comm,tid,pid,cpu,time,period,event,args,ip,sym,symoff,dso";
    for format in ["text", "json", "csv"] {
        for arguments in [
            &["script", "--format", format][..],
            &["script", "--format", format, "-F", all],
            &["report", "--format", format],
            &[
                "report",
                "--format",
                format,
                "--sort",
                "event,comm,pid,dso,sym",
            ],
            &["report", "--format", format, "--sort", "comm,dso", "-n"],
        ] {
            let ran = child::run(arguments, trace.path(), 200 << 20);
            let what = arguments.join(" ");
            assert!(ran.status.success(), "{what}: {}", ran.errors);
            assert!(ran.out.contains("owned"), "{what}: {}", ran.out);
            assert_harmless(&ran.out, &what);
            assert_harmless(&ran.errors, &what);
        }
    }
}

#[test]
fn refusals_name_what_a_file_has_harmlessly() {
    let trace = trace();
    for arguments in [
        &["script", "-e", "no:such"][..],
        &["report", "--sort", "nothing"],
    ] {
        let ran = child::run(arguments, trace.path(), 200 << 20);
        assert!(!ran.status.success());
        assert!(ran.errors.contains("owned"), "{}", ran.errors);
        assert_harmless(&ran.errors, &arguments.join(" "));
    }
}

/// A string of a traced program is no formula for who opens the CSV in a spreadsheet.
#[test]
fn strings_are_no_formulas() {
    const FORMULA: &str = "=cmd|'/C calc'!A0,1";
    let mut info = records::info();
    for (event, first) in info.events.iter_mut().zip("@+-".chars().cycle()) {
        event.name = format!("{first}SUM(A1):{}", event.name);
    }
    info.definitions = None;
    let file = tempfile::NamedTempFile::new().unwrap();
    let id_type = info.events[0].attr.id_type();
    let mut writer = TraceWriter::create(file.reopen().unwrap(), &info, Compression::None).unwrap();
    let comm = |tid| Comm {
        pid: 7,
        tid,
        exec: false,
        name: FORMULA.as_bytes(),
        id: SampleId {
            pid: 7,
            tid,
            ..SampleId::default()
        },
    };
    let mut records = Vec::new();
    for tid in 0..16 {
        comm(tid).encode(id_type, &mut records);
    }
    writer.push(&records);
    writer.push(&records::hits(1000));
    writer.flush().unwrap();
    for verb in [
        &["script"][..],
        &["script", "-F", "comm,event"],
        &["report"],
        &["report", "--sort", "comm,event"],
        &["report", "--rate", "1ms", "--by", "comm"],
    ] {
        let shown = |format| {
            let arguments = [verb, &["--format", format]].concat();
            let ran = child::run(&arguments, file.path(), 200 << 20);
            ran.assert_well();
            ran.out
        };
        let (guarded, raw) = (shown("csv"), shown("csv-raw"));
        assert_ne!(guarded, raw, "{verb:?}");
        let is_formula = |field: &str| {
            let text = field.trim_start_matches('"');
            text.starts_with(['=', '+', '-', '@']) && text.parse::<f64>().is_err()
        };
        for line in guarded.lines() {
            assert!(!line.split(',').any(is_formula), "{verb:?}: {line}");
        }
        // Nothing else is different.
        assert_eq!(
            guarded
                .replace("'=", "=")
                .replace("'@", "@")
                .replace("'+", "+")
                .replace("'-", "-"),
            raw
        );
    }
}

/// A trace names a file without a writer: reading it would wait for ever.
#[test]
fn a_fifo_that_a_trace_names_is_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let trace = with_map(&fifo);
    let ran = child::run(&["script", "-F", "+ip,+sym,+dso"], trace.path(), 200 << 20);
    ran.assert_well();
    assert!(ran.out.contains("fifo"), "{}", ran.out);
}

fn with_map(path: &Path) -> tempfile::NamedTempFile {
    let info = records::info();
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut writer = TraceWriter::create(file.reopen().unwrap(), &info, Compression::None).unwrap();
    let map = records::mapping(path.as_os_str().as_encoded_bytes());
    let mut records = Vec::new();
    map.encode(info.events[0].attr.id_type(), &mut records);
    writer.push(&records);
    writer.push(&records::hits(1000));
    writer.flush().unwrap();
    file
}
